// A page in the look of the window, in one HTML file: no script, nothing from elsewhere, light or dark as the reader's system is.
#pragma once

#include <string>
#include <string_view>

namespace fp8lab {

// From the first line to <main>, which the caller closes. Throws input_error: the style sheet is missing.
std::string page_begin(std::string_view title);

// A number as people read it, with 4 significant digits, and the exact one in the attribute `data-value`.
std::string number_markup(double value, std::string_view unit = {});

}  // namespace fp8lab
