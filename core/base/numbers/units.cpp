#include "core/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace fp8lab {

namespace {

template <class T>
std::string shortest_of(T value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    std::array<char, 64> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return {buffer.data(), end};
}

void strip_trailing_zeros(std::string& digits) {
    if (digits.find('.') == std::string::npos) return;
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
}

}  // namespace

std::string shortest(double value) { return shortest_of(value); }
std::string shortest(float value) { return shortest_of(value); }

std::string format_number(double value, int digits, bool pretty) {
    constexpr std::string_view kMinus = "\u2212";
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : (pretty ? std::string(kMinus) + "Inf" : "-Inf");
    const double size = std::fabs(value);
    std::string out;
    if (size != 0 && (size < 1e-3 || size >= 1e6)) {
        out = fmt::format("{:.{}e}", value, digits - 1);
        const auto e = out.find('e');
        std::string mantissa = out.substr(0, e);
        strip_trailing_zeros(mantissa);
        out = fmt::format("{}e{}", mantissa, std::stoi(out.substr(e + 1)));
    } else {
        // Digits before the point are never rounded away: 57344 stays 57344 at four digits.
        const int before = size < 1 ? (size == 0 ? 1 : static_cast<int>(std::floor(std::log10(size))) + 1)
                                    : static_cast<int>(fmt::format("{:.0f}", std::floor(size)).size());
        out = fmt::format("{:.{}f}", value, std::max(0, digits - before));
        strip_trailing_zeros(out);
    }
    if (pretty && out.front() == '-') out.replace(0, 1, kMinus);
    return out;
}

std::string exact_decimal(double value) {
    if (!std::isfinite(value)) return shortest(value);
    // A double has at most 1074 digits after the point; printf's conversion of them is exact.
    std::string out = fmt::format("{:.1074f}", value);
    strip_trailing_zeros(out);
    return out;
}

std::string hex_float(double value) {
    if (!std::isfinite(value)) return shortest(value);
    // Not by fmt or to_chars: their versions have other exponents for 0 and for subnormal numbers.
    std::array<char, 32> text;
    return {text.data(), static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%a", value))};
}

NumberTexts number_texts(double value) {
    const std::string exact = shortest(value);
    NumberTexts out{format_number(value), exact, hex_float(value), exact, {}};
    if (std::isnan(value)) out.c = "NAN";
    if (std::isinf(value)) out.c = value > 0 ? "INFINITY" : "-INFINITY";
    if (std::isfinite(value) && exact.find_first_of(".e") == std::string::npos) out.c += ".0";  // no integer
    out.numpy = std::isfinite(value) ? "np.float64(" + out.c + ")" : "np.float64('" + exact + "')";
    return out;
}

std::string group_thousands(std::int64_t value) {
    std::string digits = std::to_string(value < 0 ? 0ULL - static_cast<std::uint64_t>(value)
                                                  : static_cast<std::uint64_t>(value));
    for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
        digits.insert(static_cast<std::size_t>(i), "\u2009");
    return value < 0 ? "\u2212" + digits : digits;
}

std::string format_bytes(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 5> kUnits = {"B", "KB", "MB", "GB", "TB"};
    double amount = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (amount >= 1000 && unit + 1 < kUnits.size()) amount /= 1000, ++unit;
    return fmt::format("{} {}", format_number(amount, 3), kUnits[unit]);
}

std::string power_of_two(int exponent) { return fmt::format("2^{}", exponent); }

}  // namespace fp8lab
