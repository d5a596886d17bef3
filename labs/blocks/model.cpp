#include "labs/blocks/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "labs/seeded.h"

namespace fp8lab::blocks {

using table::Experiment;

Outcome Compute::operator()(const Params& params) {
    if (drawn_ != params.tensor) {
        tensor_ = make_tensor(params.tensor);
        drawn_ = params.tensor;
    }
    Outcome out;
    out.tensor = tensor_;
    for (Scheme& scheme : schemes(find_format(params.element), params.pow2)) {
        Copy by_cols = quantized_copy(scheme.plan, tensor_, Along::cols);
        Copy by_rows = quantized_copy(scheme.plan, tensor_, Along::rows);
        const Score scored = score(scheme.plan, tensor_, by_cols, by_rows);
        if (scheme.id == params.scheme_id()) {
            out.chosen = out.contenders.size();
            out.maps = make_maps(tensor_, scheme, by_cols, by_rows);
            out.by_cols = std::move(by_cols);
            out.by_rows = std::move(by_rows);
        }
        out.contenders.push_back({std::move(scheme), scored});
    }
    return out;
}

const LabInfo Blocks::kInfo = {"blocks",
                               6,
                               "Block scales",
                               "One scale, many scales",
                               "More scales cost bits. What do they buy, and which tensors need them?",
                               20,
                               "L4"};

std::span<const Experiment<Blocks>> Blocks::experiments() {
    static constexpr std::array<Experiment<Blocks>, 1> kOne = {
        {{.figures = &Blocks::figures, .metrics = &Blocks::metrics}}};
    return kOne;
}

std::vector<table::Row> Blocks::rows(Params& params) {
    const Family& family = find_family(params.scheme);
    std::vector<Choice> all;
    for (const Family& each : families()) all.push_back({each.id, each.label});
    TensorSpec& tensor = params.tensor;
    return {
        {choice({.name = "scheme",
                 .label = "Scales",
                 .help = "Which elements share a scale. Blocks run along K, the dimension that a GEMM sums "
                         "over; 128×128 is for weights."},
                &params.scheme, std::move(all))},
        {.field = choice(
             {.name = "rule",
              .label = "Power of two",
              .help = "How MX rounds amax / max to a power of two. Up: NVIDIA’s rule. Floor: OCP’s rule, "
                      "the exponent of the amax only. Even: floor after rounding the amax."},
             &params.rule, {{"up", "Up"}, {"floor", "Floor"}, {"even", "Even"}}),
         .shown = family.has_mx_rule()},
        {.field = toggle({.name = "pow2",
                          .label = "Powers of two",
                          .te_name = "force_pow_2_scales",
                          .help = "The FP32 scales are rounded down to powers of two."},
                         &params.pow2),
         .shown = family.has_fp32_scales()},
        {choice(
            {.name = "maps",
             .label = "Maps",
             .help = "Error: the error of the copy for the forward pass. Transposed: that copy beside the "
                     "one for the transposed product, whose blocks run along the rows."},
            &params.maps, {{"error", "Error"}, {"transpose", "Transposed"}})},
        {tensor_or_picture_field(tensor)},
        {.field = tensor_field(tensor, "row_spread"), .shown = has_effect(tensor, "row_spread")},
        {.field = tensor_field(tensor, "outlier_column"), .shown = has_effect(tensor, "outlier_column")},
        {.field = choice({.name = "element",
                          .label = "Element",
                          .help = "The format of the stored elements. NVFP4’s elements are always E2M1.",
                          .more = true},
                         &params.element, format_choices([](const FormatInfo& f) { return f.mx; })),
         .shown = family.takes_element()},
        {.field = tensor_field(tensor, "sigma", true), .shown = has_effect(tensor, "sigma")},
        {.field = tensor_field(tensor, "rows", true), .shown = has_effect(tensor, "rows")},
        {.field = tensor_field(tensor, "cols", true), .shown = has_effect(tensor, "cols")},
        {.field = tensor_field(tensor, "seed", true), .shown = has_effect(tensor, "seed")},
        {.field = tensor_field(tensor, "file", true), .shown = has_effect(tensor, "file")},
    };
}

Block Blocks::block_at(std::size_t row, std::size_t col, bool by_rows) const {
    const Tensor& tensor = outcome->tensor;
    const Copy& copy = by_rows ? outcome->by_rows : outcome->by_cols;
    const BlockGrid& grid = copy.grid;
    Block out;
    out.row = row / grid.height * grid.height;
    out.col = col / grid.width * grid.width;
    out.rows = std::min(grid.height, tensor.rows - out.row);
    out.cols = std::min(grid.width, tensor.cols - out.col);
    const FormatInfo& format = *outcome->contenders[outcome->chosen].scheme.plan.format;
    const OverflowThreshold limit = overflow_threshold(format);
    const float scale = copy.scales[row / grid.height * grid.across + col / grid.width];
    out.scale = static_cast<double>(scale);
    out.top = scale > 0 ? max_finite(format) / out.scale : 0;
    double signal = 0, noise = 0;
    for (std::size_t r = out.row; r < out.row + out.rows; ++r)
        for (std::size_t c = out.col; c < out.col + out.cols; ++c) {
            const float value = tensor.values[r * tensor.cols + c], back = copy.values[r * tensor.cols + c];
            const double x = static_cast<double>(value), e = x - static_cast<double>(back);
            const auto scaled = static_cast<double>(std::fabs(value * scale));
            out.amax = std::max(out.amax, std::fabs(x));
            out.underflow += value != 0 && back == 0;
            out.saturated += limit.is_passed_by(scaled);
            signal += x * x;
            noise += e * e;
        }
    out.sqnr_db = 10 * std::log10(signal / noise);
    return out;
}

std::vector<Figure> Blocks::figures() const {
    std::vector<Figure> out = map_figures(*outcome, params);
    out.push_back(schemes_figure(*outcome));
    if (!has_effect(params.tensor, "seed")) return out;
    return of_seed(params.tensor.seed, std::move(out), {"magnitude", "error", "difference", "schemes"});
}

Figure Blocks::thumbnail() const {
    Params small;
    small.scheme = "mx32";
    small.tensor.row_spread = 2;
    small.tensor.rows = small.tensor.cols = 128;
    return map_figures(Compute()(small), small)[1];
}

std::vector<table::MetricRow> Blocks::metrics() const {
    std::vector<table::MetricRow> out = {
        table::known_word("scheme_id", outcome->contenders[outcome->chosen].scheme.id)};
    for (const Contender& contender : outcome->contenders) {
        const auto add = [&](const char* name, double value, std::string unit = {}) {
            out.push_back(
                table::known(fmt::format("{}.{}", contender.scheme.id, name), value, std::move(unit)));
        };
        const Score& score = contender.score;
        add("scales", score.scales);
        add("bits_per_element", score.bits_per_element, "bit");
        add("sqnr_db", score.sqnr_db, "dB");
        add("rel_l2_pct", 100 * std::pow(10, -score.sqnr_db / 20), "%");
        add("worst_row_db", score.worst_row_db, "dB");
        add("underflow_pct", score.underflow_pct, "%");
        add("lost_l1_pct", score.lost_l1_pct, "%");
        add("lost_energy_pct", score.lost_energy_pct, "%");
        add("overflow_pct", score.overflow_pct, "%");
        add("copies_differ_pct", score.differ_pct, "%");
        add("copies_max_difference", score.max_difference);
    }
    return out;
}

std::vector<std::string> Blocks::recipes() const {
    std::vector<std::string> out;
    for (const Family& family : families()) {
        std::string text = recipe_text(family.recipe);
        if (family.takes_element()) text += ":fwd=" + params.element;
        if (family.has_fp32_scales()) text += params.pow2 ? ":pow2=1" : ":pow2=0";
        if (family.has_mx_rule()) text += ":mxrule=" + params.rule;
        out.push_back(recipe_text(parse_recipe(text)));
    }
    return out;
}

LabEntry entry() { return entry_of<BlocksLab>(Blocks::kInfo); }

}  // namespace fp8lab::blocks
