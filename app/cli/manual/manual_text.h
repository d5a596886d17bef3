// A page of the manual for a terminal.
#pragma once

#include <string>

#include "core/lesson/manual/manual.h"

namespace fp8lab::cli {

// The words with the id of each page that they link to; behind them the terms that the page links to, as `fp8lab list terms`
// takes them. A place that is on the page itself is no such term.
std::string manual_text(const ManualPage& page);

}  // namespace fp8lab::cli
