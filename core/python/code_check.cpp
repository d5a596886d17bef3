#include "core/python/code_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/python/element_code.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/delayed.h"
#include "core/scaling/hadamard.h"

namespace fp8lab::python {
namespace {

// Once more in kSampleFunction.
constexpr int kStep = 40503, kModulus = 65537, kHalf = 32768, kCoarse = 2048;

constexpr std::string_view kSampleFunction = R"(def sample(rows, cols):
    """256 numbers of either sign over 26 binades. Every third one has few bits: ties are among them."""
    n = [40503 * i % 65537 - 32768 for i in range(256)]
    n = [v if i % 3 else v // 2048 * 2048 for i, v in enumerate(n)]
    return torch.tensor([v * 2.0**(7 * i % 11 + i // 16 - 24) for i, v in enumerate(n)]).view(rows, cols)


def compare(name, codes, expected):
    size = len(expected) // 256
    wrong = sum(codes[i:i + size] != expected[i:i + size] for i in range(0, len(expected), size))
    assert wrong == 0 and len(codes) == len(expected), f"{name}: {wrong} of 256 codes are not FP8 Lab's"
)";

// Codes are compared where no random number decides them, and where something is cast.
bool is_compared(const CastGroup& group) { return group.cast.plan.rounding == Rounding::nearest; }

float delayed_scale(const CastGroup& group, const Recipe& recipe, const std::vector<float>& sample) {
    const CastPlan& plan = group.cast.plan;
    DelayedScale scale(recipe.history, recipe.algo, recipe.margin, recipe.interval,
                       static_cast<float>(max_finite(*plan.format)), recipe.pow2, recipe.ema_decay,
                       recipe.zero_amax);
    for (const float factor : {4.0F, 1.0F, 2.0F}) {
        std::vector<float> values = sample;
        for (float& value : values) value *= factor;
        scale.update(scale_amax(plan, values));
    }
    return scale.scale();
}

// The factor of each element before the cast.
std::vector<float> factors(const CastGroup& group, const Recipe& recipe, const std::vector<float>& sample,
                           SampleShape shape) {
    const CastPlan& plan = group.cast.plan;
    if (group.is_delayed()) return std::vector<float>(sample.size(), delayed_scale(group, recipe, sample));
    const QuantizeRequest request{.rows = shape.rows, .cols = shape.cols};
    if (plan.granularity == Granularity::tensor || !plan.scaled) {
        std::vector<float> out(sample.size());
        return std::vector<float>(sample.size(), quantize(plan, sample, out, request).scale);
    }
    const BlockGrid grid = block_grid(plan, shape.rows, shape.cols, Along::cols);
    const BlockScales scales = block_scales(plan, sample, shape.cols, grid, request);
    std::vector<float> out;
    for (std::size_t i = 0; i < sample.size(); ++i)
        out.push_back(scales.scale[i / shape.cols / grid.height * grid.across + i % shape.cols / grid.width]);
    return out;
}

std::string hex(const std::vector<std::uint8_t>& bytes) {
    std::string out;
    for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
}

// Cut into lines of Python that stand next to each other.
std::string literal(const std::string& text) {
    constexpr std::size_t kLine = 96;
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += kLine)
        out += fmt::format("{}\"{}\"", at == 0 ? "\n            " : "\n            ", text.substr(at, kLine));
    return out;
}

std::string values_check(const FormatInfo& format) {
    const std::string values = values_expression(format);
    if (values.empty()) return {};
    return fmt::format(
        "    values = {}\n    values = torch.where(values.isnan(), 1e9, values).tolist()\n"
        "    assert zlib.crc32(struct.pack(f\"<{{len(values)}}f\", *values)) == 0x{:08x}, \"{}: other "
        "values\"\n",
        values, values_crc(format), format.label);
}

std::string group_check(const CastGroup& group, const Recipe& recipe) {
    const SampleShape shape = sample_shape(group.cast.plan);
    const std::string sample = fmt::format("sample({}, {})", shape.rows, shape.cols);
    std::string out, call = group.name;
    if (group.is_delayed()) {
        call = "cast";
        out = fmt::format("    cast = {}\n    for factor in (4, 1, 2):\n        cast(factor * {})\n",
                          delayed_call(group), sample);
    }
    return out + fmt::format("    compare(\"{}\", {}_codes({}({})[0]),{})\n", group.name,
                             group.cast.plan.format->name, call, sample,
                             literal(hex(check_codes(group, recipe))));
}

}  // namespace

std::vector<float> check_sample() {
    std::vector<float> out;
    for (int i = 0; i < static_cast<int>(kSampleSize); ++i) {
        int n = static_cast<int>(std::int64_t{kStep} * i % kModulus) - kHalf;
        if (i % 3 == 0) n = static_cast<int>(std::floor(static_cast<double>(n) / kCoarse)) * kCoarse;
        out.push_back(std::ldexp(static_cast<float>(n), 7 * i % 11 + i / 16 - 24));
    }
    return out;
}

SampleShape sample_shape(const CastPlan& plan) {
    if (plan.square_blocks) return {32, 8};
    return {2, 128};
}

std::vector<std::uint8_t> check_codes(const CastGroup& group, const Recipe& recipe) {
    const CastPlan& plan = group.cast.plan;
    const SampleShape shape = sample_shape(plan);
    std::vector<float> sample = check_sample();
    if (group.cast.rotated) {
        rotate(sample, sample, shape.rows, shape.cols, Along::cols, te_signs());
        if (recipe.rht_bf16)
            quantize(find_format("bf16"), sample, sample, {.overflow = Overflow::nonsaturate});
    }
    const std::vector<float> factor = factors(group, recipe, sample, shape);
    std::vector<std::uint8_t> out;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const std::uint32_t code =
            encode(*plan.format, sample[i] * factor[i], Rounding::nearest, plan.overflow);
        for (int byte = 0; byte < storage_bytes(*plan.format); ++byte)
            out.push_back(static_cast<std::uint8_t>(code >> 8 * byte));
    }
    return out;
}

std::string check_functions(const std::vector<CastGroup>& groups, const Recipe& recipe) {
    std::string codes, body;
    std::vector<std::string_view> formats;
    for (const CastGroup& group : groups) {
        const FormatInfo& format = *group.cast.plan.format;
        const bool again = std::any_of(groups.data(), &group,
                                       [&](const CastGroup& before) { return before.cast == group.cast; });
        if (!is_compared(group) || again) continue;
        if (std::ranges::find(formats, format.name) == formats.end()) {
            formats.push_back(format.name);
            codes += codes_function(format) + "\n\n";
            body += values_check(format);
        }
        body += group_check(group, recipe);
    }
    return std::string(kSampleFunction) + "\n\n" + codes +
           "def check():\n    \"\"\"Compares the values of all codes, and 256 codes of every cast, with FP8 "
           "Lab's.\"\"\"\n" +
           body;
}

}  // namespace fp8lab::python
