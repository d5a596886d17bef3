#include "labs/blocks/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "labs/seeded.h"

namespace fp8lab::blocks {

namespace {

// The tensor of the request before is kept: most sliders leave it as it is. Lives with the job, used by its
// thread only.
struct Computation {
    std::optional<TensorSpec> drawn = {};
    Tensor tensor = {};

    Outcome operator()(const Params& params) {
        if (drawn != params.tensor) {
            tensor = make_tensor(params.tensor);
            drawn = params.tensor;
        }
        Outcome out;
        out.tensor = tensor;
        for (Scheme& scheme : schemes(find_format(params.element), params.pow2)) {
            Copy by_cols = quantized_copy(scheme.plan, tensor, Along::cols);
            Copy by_rows = quantized_copy(scheme.plan, tensor, Along::rows);
            const Score scored = score(scheme.plan, tensor, by_cols, by_rows);
            if (scheme.id == params.scheme_id()) {
                out.chosen = out.contenders.size();
                out.maps = make_maps(tensor, scheme, by_cols, by_rows);
                out.by_cols = std::move(by_cols);
                out.by_rows = std::move(by_rows);
            }
            out.contenders.push_back({std::move(scheme), scored});
        }
        return out;
    }
};

}  // namespace

BlocksLab::BlocksLab() : job_(Computation{}) { update(); }

namespace {
constexpr LabInfo kInfo = {"blocks",
                           6,
                           "Block scales",
                           "One scale, many scales",
                           "More scales cost bits. What do they buy, and which tensors need them?",
                           20,
                           "L4"};
}  // namespace

const LabInfo& BlocksLab::info() const { return kInfo; }

std::vector<Field> BlocksLab::fields_of(Params& params) {
    TensorSpec& tensor = params.tensor;
    return {
        choice({.name = "scheme",
                .label = "Scales",
                .help = "Which elements share a scale. Blocks run along K, the dimension that a GEMM sums "
                        "over; 128×128 is for weights."},
               &params.scheme,
               {{"tensor", "One per tensor"},
                {"row", "One per row"},
                {"1x128", "Blocks 1×128"},
                {"128x128", "Blocks 128×128"},
                {"mx32", "MX, blocks of 32"},
                {"nvfp4", "NVFP4, blocks of 16"}}),
        choice({.name = "rule",
                .label = "Power of two",
                .help = "How MX rounds amax / max to a power of two. Up: NVIDIA’s rule. Floor: OCP’s rule, "
                        "the exponent of the amax only. Even: floor after rounding the amax."},
               &params.rule, {{"up", "Up"}, {"floor", "Floor"}, {"even", "Even"}}),
        toggle({.name = "pow2",
                .label = "Powers of two",
                .te_name = "force_pow_2_scales",
                .help = "The FP32 scales are rounded down to powers of two."},
               &params.pow2),
        choice({.name = "maps",
                .label = "Maps",
                .help = "Error: the error of the copy for the forward pass. Transposed: that copy beside the "
                        "one for the transposed product, whose blocks run along the rows."},
               &params.maps, {{"error", "Error"}, {"transpose", "Transposed"}}),
        tensor_or_picture_field(tensor),
        tensor_field(tensor, "row_spread"),
        tensor_field(tensor, "outlier_column"),
        choice({.name = "element",
                .label = "Element",
                .help = "The format of the stored elements. NVFP4’s elements are always E2M1.",
                .more = true},
               &params.element, format_choices([](const FormatInfo& f) { return f.mx; })),
        tensor_field(tensor, "sigma", true),
        tensor_field(tensor, "rows", true),
        tensor_field(tensor, "cols", true),
        tensor_field(tensor, "seed", true),
        tensor_field(tensor, "file", true),
    };
}

bool BlocksLab::applies(std::string_view field) const {
    if (field == "rule") return params_.scheme == "mx32";
    if (field == "pow2") return params_.scheme != "mx32" && params_.scheme != "nvfp4";
    if (field == "element") return params_.scheme != "nvfp4";
    if (field == "scheme" || field == "maps") return true;
    return has_effect(params_.tensor, field);
}

void BlocksLab::update() {
    if (asked_ != params_) {
        asked_ = params_;
        job_.request(params_);
    }
    if (auto outcome = job_.take()) outcome_ = std::move(*outcome);
}

void BlocksLab::reset() { params_ = {}; }

Block BlocksLab::block_at(std::size_t row, std::size_t col, bool by_rows) const {
    const Tensor& tensor = outcome_.tensor;
    const Copy& copy = by_rows ? outcome_.by_rows : outcome_.by_cols;
    const BlockGrid& grid = copy.grid;
    Block out;
    out.row = row / grid.height * grid.height;
    out.col = col / grid.width * grid.width;
    out.rows = std::min(grid.height, tensor.rows - out.row);
    out.cols = std::min(grid.width, tensor.cols - out.col);
    const FormatInfo& format = *outcome_.contenders[outcome_.chosen].scheme.plan.format;
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

std::vector<Figure> BlocksLab::figures() const {
    std::vector<Figure> out = map_figures(outcome_, params_);
    out.push_back(schemes_figure(outcome_));
    if (!has_effect(params_.tensor, "seed")) return out;
    return of_seed(params_.tensor.seed, std::move(out), {"magnitude", "error", "difference", "schemes"});
}

Figure BlocksLab::thumbnail() const {
    Params params;
    params.scheme = "mx32";
    params.tensor.row_spread = 2;
    params.tensor.rows = params.tensor.cols = 128;
    return map_figures(Computation{}(params), params)[1];
}

std::vector<Metric> BlocksLab::metrics() const {
    std::vector<Metric> out = {{.name = "scheme_id", .text = outcome_.contenders[outcome_.chosen].scheme.id}};
    for (const Contender& contender : outcome_.contenders) {
        const auto add = [&](const char* name, double value, std::string unit = {}) {
            out.push_back({.name = fmt::format("{}.{}", contender.scheme.id, name),
                           .value = value,
                           .unit = std::move(unit)});
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

LabEntry entry() { return entry_of<BlocksLab>(kInfo); }

}  // namespace fp8lab::blocks
