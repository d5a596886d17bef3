#include "labs/bits/model_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/units.h"

namespace fp8lab::bits {

namespace {

constexpr std::string_view kMinus = "\u2212";
constexpr std::string_view kJoin = "\u00a0";  // a space that does not end an exponent

std::uint32_t magnitude_mask(const FormatInfo& format) {
    return (1U << (format.exponent_bits + format.mantissa_bits)) - 1U;
}

// The power of two that multiplies the significand. Subnormals share the exponent of the lowest normal
// binade.
int power_of(const FormatInfo& format, const CodeFields& fields) {
    const int stored = static_cast<int>(fields.exponent);
    return (format.specials == Specials::scale ? stored : std::max(stored, 1)) - format.bias;
}

bool is_subnormal_exponent(const FormatInfo& format, const CodeFields& fields) {
    return fields.exponent == 0 && format.specials != Specials::scale;
}

Formula formula_of(const FormatInfo& format, const CodeFields& fields, const std::string& result) {
    const int power = power_of(format, fields);
    const std::uint32_t steps = 1U << format.mantissa_bits;
    const int leading = is_subnormal_exponent(format, fields) ? 0 : 1;
    const double significand = leading + static_cast<double>(fields.mantissa) / steps;
    const std::string power_value = value_text(std::ldexp(1.0, power));

    Formula out;
    out.power.written = fmt::format("2^{}{}{}{}{}", power + format.bias, kJoin,
                                    format.bias < 0 ? "+" : kMinus, kJoin, std::abs(format.bias));
    out.power.value = fmt::format("{} = {}", power_text(power), power_value);
    std::string product = power_value;
    if (format.mantissa_bits > 0) {
        out.significand = {fmt::format("({} + {}/{})", leading, fields.mantissa, steps),
                           value_text(significand, leading == 1 ? 5 : 3)};
        product += " × " + out.significand.value;
    } else if (leading == 0) {
        out.significand = {"0", "0"};
        product += " × 0";
    }
    if (format.is_signed) {
        out.sign = {fmt::format("({}1)^{}", kMinus, fields.sign),
                    fields.sign ? fmt::format("{}1", kMinus) : "1"};
        product = out.sign.value + " × " + product;
    }
    out.result = {result, format.is_signed || format.mantissa_bits > 0
                              ? product
                              : ""};  // one term: nothing to multiply
    return out;
}

// What stands one step above the largest finite value: "NaN", "Inf", or nothing.
std::string_view beyond(const FormatInfo& format) {
    switch (format.specials) {
        case Specials::fn:
        case Specials::scale:
            return "NaN";
        case Specials::ieee:
            return "Inf";
        case Specials::fnuz:
        case Specials::finite:
            return "";
    }
    return "";
}

std::string note_of(const FormatInfo& format, const Reading& reading) {
    const std::uint32_t magnitude = reading.code & magnitude_mask(format);
    switch (reading.code_class) {
        case CodeClass::nan:
            return format.specials == Specials::fnuz ? "not a number, where −0 would be" : "not a number";
        case CodeClass::infinity:
            return "infinity: larger than any number";
        default:
            break;
    }
    if (magnitude == max_code(format))
        return beyond(format).empty() ? "largest value, no code is left"
                                      : fmt::format("largest finite, next: {}", beyond(format));
    const double next = exact_value(format, reading.code + 1);
    const std::string_view kind = reading.code_class == CodeClass::zero        ? "zero"
                                  : reading.code_class == CodeClass::subnormal ? "subnormal"
                                                                               : "normal";
    return fmt::format("{}, next: {}", kind, value_text(next));
}

std::string nan_codes_text(const FormatInfo& format, const CodeCounts& counts) {
    const std::uint32_t last = static_cast<std::uint32_t>(counts.total) - 1;
    if (counts.nans == 0) return "";
    if (counts.nans == 1)
        return code_text(format, format.specials == Specials::fnuz ? 1U << (width_bits(format) - 1) : last);
    const std::uint32_t half = magnitude_mask(format);
    if (counts.nans == 2) return fmt::format("{:X} {:X}", half, last);
    return fmt::format("±{:X}\u2013{:X}", half - static_cast<std::uint32_t>(counts.nans) / 2 + 1, half);
}

std::string infinity_codes_text(const FormatInfo& format) {
    const std::uint32_t infinity = max_code(format) + 1;
    return fmt::format("{:X} {:X}", infinity, infinity | (magnitude_mask(format) + 1));
}

}  // namespace

std::string code_text(const FormatInfo& format, std::uint32_t code) {
    return fmt::format("0x{:0{}X}", code, (width_bits(format) + 3) / 4);
}

std::string value_text(double value, int digits) {
    if (value == 0) return std::signbit(value) ? fmt::format("{}0", kMinus) : "0";
    return format_number(value, digits, true);
}

std::string power_text(int exponent) {
    return fmt::format("2^{}{}", exponent < 0 ? kMinus : "", std::abs(exponent));
}

double ulp(const FormatInfo& format, std::uint32_t code) {
    return std::ldexp(1.0, power_of(format, split(format, code)) - format.mantissa_bits);
}

double exact_value(const FormatInfo& format, std::uint32_t code) {
    const CodeFields fields = split(format, code);
    const double sign = fields.sign ? -1.0 : 1.0;
    switch (classify(format, code)) {
        case CodeClass::nan:
            return std::numeric_limits<double>::quiet_NaN();
        case CodeClass::infinity:
            return sign * std::numeric_limits<double>::infinity();
        default:
            break;
    }
    const std::uint32_t leading = is_subnormal_exponent(format, fields) ? 0U : 1U << format.mantissa_bits;
    return sign * std::ldexp(static_cast<double>(leading + fields.mantissa),
                             power_of(format, fields) - format.mantissa_bits);
}

Reading read_code(const FormatInfo& format, std::uint32_t code) {
    Reading out;
    out.code = code;
    out.code_class = classify(format, code);
    out.fields = split(format, code);
    out.value = exact_value(format, code);
    out.code_text = code_text(format, code);
    out.exact = exact_decimal(out.value);
    constexpr std::size_t kHeadlineLength = 11;  // at 32 px in the column beside the bits
    out.headline_exact = !std::isfinite(out.value) || out.exact.size() <= kHeadlineLength;
    out.headline =
        std::isfinite(out.value) && out.value != 0 && out.headline_exact ? out.exact : value_text(out.value);
    if (out.headline.front() == '-') out.headline.replace(0, 1, kMinus);
    out.note = note_of(format, out);
    if (!std::isfinite(out.value)) return out;
    out.gap = ulp(format, code);
    out.hex = hex_float(out.value);
    out.formula = formula_of(format, out.fields, out.headline);
    return out;
}

LineEnd line_end(const FormatInfo& format) {
    constexpr std::uint32_t kRows = 8;
    const std::uint32_t last_code = (1U << width_bits(format)) - 1U;
    const std::uint32_t largest = max_code(format);
    const std::uint32_t after =
        format.specials == Specials::ieee ? 2 : 1;  // Inf and its first NaN, or the one code
    LineEnd out;
    const std::uint32_t last = std::min(largest + after, last_code);
    for (std::uint32_t code = last + 1 > kRows ? last + 1 - kRows : 0; code <= last; ++code) {
        const double value = exact_value(format, code);
        out.codes.push_back({code, code_text(format, code), value_text(value), code <= largest});
    }
    out.phantom = max_finite(format) + ulp(format, largest);
    out.notes = {value_text(out.phantom) + " would be next."};
    switch (format.specials) {
        case Specials::fn:
            out.notes.emplace_back(format.name == "e4m3" ? "OCP made it NaN." : "FN makes it NaN.");
            break;
        case Specials::ieee:
            out.notes.emplace_back("IEEE rules make it Inf.");
            break;
        case Specials::scale:
            out.notes.emplace_back("All ones is NaN.");
            break;
        case Specials::fnuz:
        case Specials::finite:
            out.notes.emplace_back("No code is left for it.");
            break;
    }
    return out;
}

std::vector<Fact> facts(const FormatInfo& format) {
    const CodeCounts counts = count_codes(format);
    const auto power_and_value = [](double value) {
        return std::ldexp(1.0, std::ilogb(value)) == value
                   ? fmt::format("{} = {}", power_text(std::ilogb(value)), value_text(value, 3))
                   : value_text(value);
    };
    const std::uint32_t lowest_normal = format.specials == Specials::scale ? 0U : 1U << format.mantissa_bits;
    std::vector<Fact> out;
    out.push_back({"Largest", value_text(max_finite(format)), code_text(format, max_code(format))});
    out.push_back({"Min normal", power_and_value(min_normal(format)), code_text(format, lowest_normal)});
    if (counts.subnormals > 0)
        out.push_back({"Min subnormal", power_and_value(min_subnormal(format)), code_text(format, 1)});
    out.push_back({"Finite codes", std::to_string(counts.finite), "of " + std::to_string(counts.total)});
    const auto count_text = [](std::int64_t n) { return n ? std::to_string(n) : std::string("none"); };
    out.push_back({"NaN codes", count_text(counts.nans), nan_codes_text(format, counts)});
    out.push_back(
        {"Infinities", count_text(counts.infinities), counts.infinities ? infinity_codes_text(format) : ""});
    return out;
}

std::vector<Fact> elsewhere(const FormatInfo& format, std::uint32_t code) {
    std::vector<Fact> out;
    for (const FormatInfo& other : formats()) {
        const bool told =
            other.kind == Kind::floating && other.is_signed && width_bits(other) == width_bits(format);
        if (!told || other.name == format.name) continue;
        out.push_back({std::string(other.label), value_text(exact_value(other, code)),
                       "max " + value_text(max_finite(other))});
    }
    return out;
}

}  // namespace fp8lab::bits
