// Text that goes into XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace fp8lab {

// Escapes & < > " and replaces control characters, which XML 1.0 does not allow, by spaces. The result is
// safe as text and between double quotes.
std::string escaped_markup(std::string_view text);

}  // namespace fp8lab
