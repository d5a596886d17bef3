#include "core/plan/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/backend/grid_plan.h"
#include "core/backend/layer_probe.h"
#include "core/base/error.h"
#include "core/base/match.h"

namespace fp8lab::plan {
namespace {

constexpr double kFar = 1;  // log2: a factor 2
constexpr int kMultiple = padded_to_16(1);
constexpr int kBlockRows = 128;  // of the rows of an expert under block128
constexpr int kTestedHidden = 4096;
constexpr double kErrorThere = 0.08, kErrorElsewhere = 0.12;

double log2_between(double a, double b) { return std::fabs(std::log2(a / b)); }

// A recorded time, with the layer's M, N and K.
const GridPoint* nearest(const GemmGrid& grid, std::string_view product, std::string_view kind, double m,
                         double weights) {
    const GridPoint* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const GridPoint& point : grid.points) {
        if (point.product != product || point.kind != kind || !point.ran()) continue;
        const double away = log2_between(point.m, m) + log2_between(1.0 * point.n * point.k, weights);
        if (away >= least) continue;
        least = away;
        best = &point;
    }
    return best;
}

double rows_of(const Linear& linear, const StepSize& step) {
    const double tokens = 1.0 * step.batch * step.tokens;
    const double each = std::ceil(tokens * linear.chosen / linear.experts);
    const int to = linear.experts > 1 && step.recipe == "block128" ? kBlockRows : kMultiple;
    return std::ceil(each / to) * to;
}

double launches_of(const Linear& linear, const StepSize& step) {
    const double busy = std::min<double>(linear.experts, 1.0 * step.batch * step.tokens * linear.chosen);
    return linear.layers * busy;
}

void require(const StepSize& step, const Recording& gpu) {
    if (std::ranges::find(grid_recipes(), step.recipe) == grid_recipes().end())
        throw unknown_name("--recipe", "recipe with recorded products", step.recipe, grid_recipes(),
                           [](std::string_view id) { return id; });
    if (step.batch < 1 || step.tokens < 1 || 1.0 * step.batch * step.tokens > kMostTokens)
        throw usage_error("--batch, --seq", "must be at least 1, and their product at most 2^24 tokens");
    if (!gpu.grid) throw usage_error("--gpu", fmt::format("the recording of {} has no products", gpu.id));
}

StepProduct product_of(const Linear& linear, std::string_view product, double tokens,
                       const std::string& recipe, const Recording& gpu) {
    const double weights = linear.out * linear.in;
    const GridPoint* bf16 = nearest(*gpu.grid, product, "bf16", tokens, weights);
    const GridPoint* fp8 =
        nearest(*gpu.grid, product, kind_of(LayerProbe{.recipe = recipe}, product), tokens, weights);
    if (!bf16 || !fp8)
        throw usage_error("--gpu",
                          fmt::format("the recording of {} has no {} of {}", gpu.id, product, recipe));
    StepProduct out{.linear = linear.name, .product = product};
    if (product == "fprop") out.m = tokens, out.n = linear.out, out.k = linear.in;
    if (product == "dgrad") out.m = tokens, out.n = linear.in, out.k = linear.out;
    if (product == "wgrad") out.m = linear.out, out.n = linear.in, out.k = tokens;
    const double flop = 2 * tokens * weights;
    out.bf16_ms = flop / bf16->flop() * bf16->median_ms;
    out.fp8_ms = flop / fp8->flop() * fp8->median_ms;
    out.near_m = fp8->m, out.near_n = fp8->n, out.near_k = fp8->k;
    out.far = log2_between(fp8->m, tokens) > kFar || log2_between(1.0 * fp8->n * fp8->k, weights) > kFar;
    return out;
}

void require_multiples(const Linear& linear, const std::string& where) {
    for (const auto& [size, field] :
         {std::pair(linear.in, linear.in_from), std::pair(linear.out, linear.out_from)})
        if (std::fmod(size, kMultiple) != 0)
            throw input_error(
                where, fmt::format("'{}' makes the weight of {} {} x {}: FP8 GEMMs need multiples of {}",
                                   field, linear.name, linear.out, linear.in, kMultiple));
}

std::vector<StepParts> parts_of(const ModelSize& model, const StepSize& step, const Recording& gpu,
                                double ratio) {
    std::vector<StepParts> out;
    if (model.has_experts()) return out;  // those of no recorded blocks
    for (const RecordedBlocks& blocks : gpu.blocks) {
        const RecordedArm *bf16 = blocks.step.find("bf16"), *fp8 = blocks.step.find(step.recipe);
        const auto size = [&](const char* name) {
            const auto found = blocks.sizes.find(name);
            return found == blocks.sizes.end() ? 0 : found->second;
        };
        const double tokens = 1.0 * blocks.step.batch * size("context");
        if (blocks.steps > 0 || !bf16 || !fp8 || tokens <= 0 || size("d") <= 0) continue;
        if (log2_between(size("d"), model.hidden) > kFar ||
            log2_between(tokens, 1.0 * step.batch * step.tokens) > kFar)
            continue;
        const double gemm = bf16->part_ms("GEMM"), others = fp8->median_ms - fp8->part_ms("GEMM");
        if (gemm <= 0 || fp8->part_ms("GEMM") <= 0) continue;
        out.push_back({&blocks, gemm / bf16->median_ms, bf16->median_ms / (others + gemm * ratio)});
    }
    return out;
}

}  // namespace

double ratio_error(int hidden) { return hidden >= kTestedHidden ? kErrorThere : kErrorElsewhere; }

StepProducts step_products(const ModelSize& model, const StepSize& step, const Recording& gpu,
                           const std::string& where) {
    require(step, gpu);
    StepProducts out;
    out.error = ratio_error(model.hidden);
    for (const Linear& linear : model.linears) {
        require_multiples(linear, where);
        for (const std::string_view product : kGridProducts) {
            out.products.push_back(product_of(linear, product, rows_of(linear, step), step.recipe, gpu));
            StepProduct& row = out.products.back();
            row.count = launches_of(linear, step);
            if (row.far) out.far_share += row.count * row.bf16_ms;
            out.bf16_ms += row.count * row.bf16_ms;
            out.fp8_ms += row.count * row.fp8_ms;
        }
    }
    out.far_share /= out.bf16_ms;
    out.parts = parts_of(model, step, gpu, out.ratio());
    return out;
}

}  // namespace fp8lab::plan
