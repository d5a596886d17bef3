#include "core/python/element_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "core/base/units.h"
#include "core/tensors/inflate.h"

namespace fp8lab::python {
namespace {

struct Dtype {
    std::string_view format, dtype;
};
constexpr std::array kDtypes = {
    Dtype{"fp16", "torch.float16"},
    Dtype{"bf16", "torch.bfloat16"},
    Dtype{"e4m3", "torch.float8_e4m3fn"},
    Dtype{"e5m2", "torch.float8_e5m2"},
    Dtype{"e4m3fnuz", "torch.float8_e4m3fnuz"},
    Dtype{"e5m2fnuz", "torch.float8_e5m2fnuz"},
};

std::string_view dtype_of(const FormatInfo& format) {
    const auto found = std::ranges::find(kDtypes, format.name, &Dtype::format);
    return found == kDtypes.end() ? std::string_view() : found->dtype;
}

bool is_wide(const FormatInfo& format) { return width_bits(format) > 8; }
bool is_stochastic(const CastPlan& plan) { return plan.rounding == Rounding::stochastic; }
// FP6, FP4 and INT8 have nothing else to become.
bool leaves_range(const CastPlan& plan) {
    return plan.overflow == Overflow::nonsaturate && (has_nan(*plan.format) || has_infinity(*plan.format));
}

// The lines between the head and the return, and what is returned.
struct Body {
    std::string lines, result;
};

Body grid_body(const CastPlan& plan) {
    const FormatInfo& format = *plan.format;
    const std::string largest = number(max_finite(format));
    Body body;
    body.lines = fmt::format("    y = y.clamp(-{0}, {0})\n", largest);
    if (format.kind == Kind::integer) {
        body.result = is_stochastic(plan) ? "torch.floor(y + torch.rand_like(y))" : "y.round()";
        return body;
    }
    body.lines +=
        "    binade = (y.view(torch.int32) & 0x7F800000).view(torch.float32)  # the power of two at or below "
        "|y|\n" +
        fmt::format("    step = binade.clamp(min={}) / {}  # between neighbours\n",
                    number(min_normal(format)), 1 << format.mantissa_bits);
    body.result = is_stochastic(plan) ? "torch.floor(y / step + torch.rand_like(y)) * step"
                                      : "torch.round(y / step) * step";
    return body;
}

Body element_body(const CastPlan& plan) {
    const std::string_view dtype = dtype_of(*plan.format);
    if (dtype.empty() || is_stochastic(plan)) return grid_body(plan);
    if (is_wide(*plan.format)) return {{}, fmt::format("y.to({}).float()", dtype)};
    return {{}, fmt::format("y.clamp(-{0}, {0}).to({1}).float()", number(max_finite(*plan.format)), dtype)};
}

std::string what_overflow_becomes(const CastPlan& plan) {
    if (!leaves_range(plan))
        return fmt::format("; what is larger becomes {}", number(max_finite(*plan.format)));
    return has_infinity(*plan.format) ? "; what overflows becomes Inf" : "; what overflows becomes NaN";
}

std::string table_name(const FormatInfo& format) {
    std::string name(format.name);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    return name + "_VALUES";
}

// Magnitudes by code: sign bit 0, up to the largest or to Inf.
std::string magnitudes(const FormatInfo& format) {
    const int mantissas = 1 << format.mantissa_bits;
    std::string out =
        fmt::format("[(m + {0} * (e > 0)) * 2.0**(max(e, 1) - {1}) for e in range({2}) for m in range({0})]",
                    mantissas, format.bias + format.mantissa_bits, 1 << format.exponent_bits);
    const std::uint32_t all = 1U << (format.exponent_bits + format.mantissa_bits);
    if (max_code(format) + 1 < all) out += fmt::format("[:{}]", max_code(format) + 1);
    return has_infinity(format) ? out + " + [torch.inf]" : out;
}

// Codes whose values values_expression() has.
std::vector<std::uint32_t> codes_of(const FormatInfo& format) {
    const std::uint32_t count = 1U << width_bits(format), half = count / 2;
    const bool by_table = dtype_of(format).empty() && format.kind == Kind::floating;
    const std::uint32_t last = max_code(format) + (has_infinity(format) ? 1 : 0);
    std::vector<std::uint32_t> out;
    for (std::uint32_t code = 0; code < count; ++code)
        if (!by_table || code % half <= last) out.push_back(code);
    return out;
}

}  // namespace

std::string number(double value) {
    int exponent = 0;
    const bool small_power = value > 0 && value < 1 && std::frexp(value, &exponent) == 0.5;
    return small_power ? fmt::format("2**{}", exponent - 1) : shortest(value);
}

std::string element_name(const CastPlan& plan) {
    std::string name(plan.format->name);
    if (leaves_range(plan) && !is_wide(*plan.format)) name += "_nonsaturate";
    return is_stochastic(plan) ? name + "_stochastic" : name;
}

std::string element_function(const CastPlan& plan) {
    const FormatInfo& format = *plan.format;
    if (format.name == "fp32") return {};
    const auto [lines, result] = element_body(plan);
    const bool own_overflow = leaves_range(plan) && (!is_wide(format) || dtype_of(format).empty());
    std::string out = fmt::format("def {}(y):\n    \"\"\"The {} of {}{}.\"\"\"\n", element_name(plan),
                                  is_stochastic(plan) ? "value above or below, by chance," : "nearest values",
                                  format.label, what_overflow_becomes(plan));
    if (!own_overflow) return out + lines + "    return " + result + "\n";
    const OverflowThreshold from = overflow_threshold(format);
    out += fmt::format("    over = y.abs() {} {}\n", from.inclusive ? ">=" : ">", number(from.value));
    out += fmt::format("    becomes = torch.full_like(y, {}).copysign(y)\n",
                       has_infinity(format) ? "torch.inf" : "torch.nan");
    return out + lines + "    return torch.where(over, becomes, " + result + ")\n";
}

std::string codes_function(const FormatInfo& format) {
    const std::string_view dtype = dtype_of(format);
    std::string codes = dtype.empty() ? "q" : fmt::format("q.to({})", dtype);
    std::string table;
    if (format.kind == Kind::integer) {
        codes = "q.to(torch.int8)";
    } else if (dtype.empty() && !is_wide(format)) {
        table = fmt::format("{} = torch.tensor({})  # by code\n\n\n", table_name(format), magnitudes(format));
        codes = fmt::format("(torch.searchsorted({}, q.abs()) + q.signbit() * {}).to(torch.uint8)",
                            table_name(format), 1 << (width_bits(format) - 1));
    }
    return table +
           fmt::format("def {}_codes(q):\n    return bytes({}.flatten().view(torch.uint8).tolist()).hex()\n",
                       format.name, codes);
}

std::string values_expression(const FormatInfo& format) {
    if (width_bits(format) > 16) return {};
    if (format.kind == Kind::integer) return "torch.arange(256).to(torch.int8).float()";
    if (const std::string_view dtype = dtype_of(format); !dtype.empty())
        return is_wide(format) ? fmt::format("torch.arange(2**16).to(torch.int16).view({}).float()", dtype)
                               : fmt::format("torch.arange(256).to(torch.uint8).view({}).float()", dtype);
    return fmt::format("torch.cat(({0}, -{0}))", table_name(format));
}

std::uint32_t values_crc(const FormatInfo& format) {
    constexpr float kInPlaceOfNan = 1e9F;
    std::vector<float> values;
    for (const std::uint32_t code : codes_of(format)) {
        const float value = decode(format, code);
        values.push_back(std::isnan(value) ? kInPlaceOfNan : value);
    }
    return crc32(std::as_bytes(std::span(values)));
}

}  // namespace fp8lab::python
