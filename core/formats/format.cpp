#include "core/formats/format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/match.h"

namespace fp8lab {
namespace {

// Words for the last columns of the table.
constexpr bool kTrains = true, kMx = true, kNo = false;

// INT8 is the row with no exponent bits: every code is a "subnormal" with step 2^(1 - bias - M) = 1.
constexpr FormatInfo kFormats[] = {
    {"fp32", "FP32", Kind::floating, true, 8, 23, 127, Specials::ieee, Role::truth, kTrains},
    {"fp16", "FP16", Kind::floating, true, 5, 10, 15, Specials::ieee, Role::truth, kTrains},
    {"bf16", "BF16", Kind::floating, true, 8, 7, 127, Specials::ieee, Role::bf16, kTrains},
    {"tf32", "TF32", Kind::floating, true, 8, 10, 127, Specials::ieee},
    {"e4m3", "E4M3", Kind::floating, true, 4, 3, 7, Specials::fn, Role::e4m3, kTrains, kMx},
    {"e5m2", "E5M2", Kind::floating, true, 5, 2, 15, Specials::ieee, Role::e5m2, kTrains, kMx},
    {"e4m3fnuz", "E4M3 FNUZ", Kind::floating, true, 4, 3, 8, Specials::fnuz, Role::e4m3},
    {"e5m2fnuz", "E5M2 FNUZ", Kind::floating, true, 5, 2, 16, Specials::fnuz, Role::e5m2},
    {"e4m3ieee", "E4M3 IEEE", Kind::floating, true, 4, 3, 7, Specials::ieee, Role::e4m3},
    {"e3m4", "E3M4", Kind::floating, true, 3, 4, 3, Specials::ieee},
    {"e3m2", "E3M2", Kind::floating, true, 3, 2, 3, Specials::finite, Role::block, kNo, kMx},
    {"e2m3", "E2M3", Kind::floating, true, 2, 3, 1, Specials::finite, Role::block, kNo, kMx},
    {"e2m1", "E2M1", Kind::floating, true, 2, 1, 1, Specials::finite, Role::block, kNo, kMx},
    {"e8m0", "E8M0", Kind::floating, false, 8, 0, 127, Specials::scale, Role::block},
    {"int8", "INT8", Kind::integer, true, 0, 7, -6, Specials::finite, Role::truth, kNo, kMx},
};

bool is_scale(const FormatInfo& format) { return format.specials == Specials::scale; }
bool is_integer(const FormatInfo& format) { return format.kind == Kind::integer; }

int magnitude_bits(const FormatInfo& format) { return format.exponent_bits + format.mantissa_bits; }

// Codes of 17 to 32 bits stand at the top of 32 (TF32 in a float32 pattern).
int alignment(const FormatInfo& format) { return width_bits(format) > 16 ? 32 - width_bits(format) : 0; }

// The largest finite magnitude, right-aligned, and how many magnitude codes above it there are.
std::uint32_t max_magnitude(const FormatInfo& format) {
    const std::uint32_t all_ones = (1U << magnitude_bits(format)) - 1;
    switch (format.specials) {
        case Specials::ieee:
            return all_ones - (1U << format.mantissa_bits);
        case Specials::fn:
        case Specials::scale:
            return all_ones - 1;
        case Specials::fnuz:
        case Specials::finite:
            return all_ones;
    }
    return all_ones;
}

// The formula also holds for the phantom code after the largest: rounding treats the grid as if it continued.
double magnitude_value(const FormatInfo& format, std::uint32_t magnitude) {
    const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
    if (is_scale(format)) return std::ldexp(1.0, exponent - format.bias);
    const int lowest = 1 - format.bias - format.mantissa_bits;
    if (exponent == 0) return std::ldexp(mantissa, lowest);
    return std::ldexp((1U << format.mantissa_bits) + mantissa, lowest + exponent - 1);
}

void require(bool holds, std::string_view why) {
    if (!holds) throw usage_error("custom format", std::string(why));
}

}  // namespace

std::span<const FormatInfo> formats() { return kFormats; }

const FormatInfo& find_format(std::string_view name, std::string_view where) {
    const std::string wanted = lower_case(name);
    for (const FormatInfo& format : kFormats) {
        if (format.name == wanted) return format;
    }
    throw unknown_name(std::string(where), "format", name, kFormats,
                       [](const FormatInfo& f) { return f.name; });
}

FormatInfo custom_format(int exponent_bits, int mantissa_bits, int bias, Specials specials,
                         std::string_view name) {
    require(exponent_bits >= 1 && exponent_bits <= 8, "exponent bits must be 1 to 8");
    require(mantissa_bits >= 0 && mantissa_bits <= 10, "mantissa bits must be 0 to 10");
    require(bias >= -64 && bias <= 127, "bias must be -64 to 127");
    require(specials != Specials::scale, "special values must be ieee, fn, fnuz or finite");
    require(specials != Specials::ieee || (exponent_bits >= 2 && mantissa_bits >= 1),
            "ieee special values need 2 exponent bits and 1 mantissa bit at least");
    require(specials != Specials::fn || exponent_bits + mantissa_bits >= 2,
            "fn special values need 2 bits beside the sign at least");
    const FormatInfo format{name, name, Kind::floating, true, exponent_bits, mantissa_bits, bias, specials};
    require(max_finite(format) < 0x1p128, "the largest value must be a float32: raise the bias");
    return format;
}

bool is_fp8(const FormatInfo& format) {
    return format.kind == Kind::floating && format.is_signed && width_bits(format) == 8;
}

bool is_element(const FormatInfo& format) { return format.is_signed && width_bits(format) <= 8; }

const FormatInfo& family(const FormatInfo& format) {
    const auto same = [&](const FormatInfo& f) {
        return f.kind == format.kind && f.exponent_bits == format.exponent_bits &&
               f.mantissa_bits == format.mantissa_bits;
    };
    const auto first = std::find_if(std::begin(kFormats), std::end(kFormats), same);
    return first == std::end(kFormats) ? format : *first;
}

std::vector<Choice> format_choices(bool (*property)(const FormatInfo&), std::vector<Choice> first) {
    std::vector<const FormatInfo*> chosen;
    for (const FormatInfo& format : kFormats)
        if (property(format)) chosen.push_back(&format);
    std::stable_sort(chosen.begin(), chosen.end(), [](const FormatInfo* a, const FormatInfo* b) {
        const auto order = [](const FormatInfo& f) {
            return width_bits(f) <= 8 ? std::pair(8, 0) : std::pair(width_bits(f), -f.exponent_bits);
        };
        return order(*a) < order(*b);
    });
    for (const FormatInfo* format : chosen)
        first.push_back({std::string(format->name), std::string(format->label)});
    return first;
}

int width_bits(const FormatInfo& format) { return (format.is_signed ? 1 : 0) + magnitude_bits(format); }

int storage_bytes(const FormatInfo& format) {
    return width_bits(format) <= 8 ? 1 : width_bits(format) <= 16 ? 2 : 4;
}

double max_finite(const FormatInfo& format) { return magnitude_value(format, max_magnitude(format)); }

std::uint32_t max_code(const FormatInfo& format) { return max_magnitude(format) << alignment(format); }

double min_normal(const FormatInfo& format) {
    if (is_integer(format)) return min_subnormal(format);
    return std::ldexp(1.0, is_scale(format) ? -format.bias : 1 - format.bias);
}

double min_subnormal(const FormatInfo& format) {
    return is_scale(format) ? min_normal(format) : std::ldexp(1.0, 1 - format.bias - format.mantissa_bits);
}

bool has_infinity(const FormatInfo& format) { return format.specials == Specials::ieee; }

bool has_nan(const FormatInfo& format) { return format.specials != Specials::finite; }

std::uint32_t canonical_nan(const FormatInfo& format) {
    const std::uint32_t all_ones = (1U << magnitude_bits(format)) - 1;
    if (is_integer(format)) return 0;
    const std::uint32_t code = format.specials == Specials::fnuz ? all_ones + 1 : all_ones;
    return code << alignment(format);
}

double unit_roundoff(const FormatInfo& format) {
    return is_integer(format) ? 0.5 : std::ldexp(1.0, -format.mantissa_bits - 1);
}

OverflowThreshold overflow_threshold(const FormatInfo& format) {
    if (is_scale(format)) return {max_finite(format), false};
    const std::uint32_t largest = max_magnitude(format);
    const double phantom = magnitude_value(format, largest + 1);
    return {(max_finite(format) + phantom) / 2, largest % 2 == 1};
}

float OverflowThreshold::largest_below() const {
    const float nearest = static_cast<float>(value);
    return is_passed_by(static_cast<double>(nearest)) ? std::nextafter(nearest, 0.0F) : nearest;
}

std::string_view to_string(CodeClass code_class) {
    switch (code_class) {
        case CodeClass::zero:
            return "zero";
        case CodeClass::subnormal:
            return "subnormal";
        case CodeClass::normal:
            return "normal";
        case CodeClass::infinity:
            return "infinity";
        case CodeClass::nan:
            return "nan";
    }
    return "";
}

CodeFields split(const FormatInfo& format, std::uint32_t code) {
    const std::uint32_t aligned = code >> alignment(format);
    const auto field = [&](int low, int width) { return (aligned >> low) & ((1U << width) - 1); };
    return {format.is_signed ? field(magnitude_bits(format), 1) : 0,
            field(format.mantissa_bits, format.exponent_bits), field(0, format.mantissa_bits)};
}

CodeClass classify(const FormatInfo& format, std::uint32_t code) {
    const CodeFields fields = split(format, code);
    const std::uint32_t magnitude = fields.exponent << format.mantissa_bits | fields.mantissa;
    const bool negative = fields.sign != 0;
    if (is_integer(format)) return magnitude == 0 && !negative ? CodeClass::zero : CodeClass::normal;
    if (format.specials == Specials::fnuz && negative && magnitude == 0) return CodeClass::nan;
    if (magnitude > max_magnitude(format)) {
        return has_infinity(format) && fields.mantissa == 0 ? CodeClass::infinity : CodeClass::nan;
    }
    if (is_scale(format) || fields.exponent != 0) return CodeClass::normal;
    return fields.mantissa == 0 ? CodeClass::zero : CodeClass::subnormal;
}

CodeCounts count_codes(const FormatInfo& format) {
    const std::int64_t total = std::int64_t{1} << width_bits(format);
    const std::int64_t mantissas = std::int64_t{1} << format.mantissa_bits;
    if (is_integer(format)) return {total, total, total, 0, 0, 0};
    if (is_scale(format)) return {total, total - 1, total - 1, 0, 1, 0};
    const std::int64_t infinities = has_infinity(format) ? 2 : 0;
    std::int64_t nans = 0;
    if (format.specials == Specials::ieee) nans = 2 * (mantissas - 1);
    if (format.specials == Specials::fn) nans = 2;
    if (format.specials == Specials::fnuz) nans = 1;
    const std::int64_t finite = total - infinities - nans;
    const std::int64_t negative_zero = format.specials == Specials::fnuz ? 0 : 1;
    return {total, finite, finite - negative_zero, infinities, nans, 2 * (mantissas - 1)};
}

double value_of(const FormatInfo& format, std::uint32_t code) {
    const CodeFields fields = split(format, code);
    if (is_integer(format)) return static_cast<double>(fields.mantissa) - (fields.sign != 0 ? 128.0 : 0.0);
    const CodeClass code_class = classify(format, code);
    if (code_class == CodeClass::nan) return std::numeric_limits<double>::quiet_NaN();
    const double magnitude =
        code_class == CodeClass::infinity
            ? std::numeric_limits<double>::infinity()
            : magnitude_value(format, fields.exponent << format.mantissa_bits | fields.mantissa);
    return fields.sign != 0 ? -magnitude : magnitude;
}

std::vector<CodeValue> positive_values(const FormatInfo& format) {
    if (width_bits(format) > 16) {
        throw usage_error("positive values",
                          std::string(format.name) + " has too many codes to list; 16 bits at most");
    }
    std::vector<CodeValue> values;
    for (std::uint32_t code = 0; code <= max_magnitude(format); ++code) {
        values.push_back({code, magnitude_value(format, code)});
    }
    return values;
}

}  // namespace fp8lab
