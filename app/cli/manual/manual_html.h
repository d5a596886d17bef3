// The manual as one HTML file: no script, nothing from elsewhere, light or dark as the reader's system is.
#pragma once

#include <string>
#include <vector>

#include "core/lesson/manual/manual.h"

namespace fp8lab::cli {

// Pages have the id "how-to-inspect", places that of their link. A number of a run says in its title which command printed it.
std::string manual_html(const std::vector<ManualPart>& parts);

// Some pages of it, to print or to hand out: the same without contents, and links are their words alone.
std::string pages_html(const std::vector<ManualPage>& pages);

}  // namespace fp8lab::cli
