// Numbers out of text, the same with every C++ library: what LLVM's before version 20 lacks is std::from_chars for
// floating point. Written as std::from_chars reads them: no space and no '+' before a number, '.' whatever the locale,
// "inf", "infinity" and "nan" in small and capital letters, and of float and double the nearest value.
#pragma once

#include <charconv>
#include <concepts>
#include <string_view>

namespace fp8lab {

// The number that the text begins with: where it ends, or why there is none, in the words of std::from_chars. `value`
// changes only where there is one. A decimal beyond the largest number, or one that would be rounded to 0, is
// std::errc::result_out_of_range.
std::from_chars_result read_leading(std::string_view text, float& value);
std::from_chars_result read_leading(std::string_view text, double& value);

template <std::integral Int>
std::from_chars_result read_leading(std::string_view text, Int& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value);
}

// Whether all of the text is one number. `value` may have changed where it is not.
template <class Number>
bool read_number(std::string_view text, Number& value) {
    const auto [end, problem] = read_leading(text, value);
    return problem == std::errc{} && end == text.data() + text.size();
}

}  // namespace fp8lab
