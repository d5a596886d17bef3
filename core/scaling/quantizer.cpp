#include "core/scaling/quantizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/delayed.h"
#include "core/threads/parallel.h"

namespace fp8lab {

namespace {

// Elements are cast and measured chunk by chunk, while the chunk is in the first-level cache; a piece of
// chunks is one unit of parallel work. Both sizes are fixed, so that sums do not depend on the number of
// threads.
constexpr std::size_t kChunk = 1024, kPiece = 64 * kChunk;
using Chunk = std::array<float, kChunk>;

// A matrix on its way through the cast, as one row-major sequence.
class Cast {
  public:
    Cast(const CastPlan& plan, std::span<const float> in, std::span<float> out,
         const QuantizeRequest& request)
        : plan_(plan), request_(request), in_(in), out_(out), copies_(plan.format->name == "fp32") {
        threshold_ = copies_ ? OverflowThreshold{std::numeric_limits<double>::infinity(), false}
                             : overflow_threshold(*plan.format);
        largest_ = static_cast<float>(max_finite(*plan.format));
    }

    void use_scale(float scale) { scale_[0] = scale; }
    void use_blocks(const BlockGrid& grid, const BlockScales& scales) { grid_ = &grid, blocks_ = &scales; }

    void run(QuantizeResult& result) const {
        const std::size_t pieces = (in_.size() + kPiece - 1) / kPiece;
        std::vector<CastStats> stats(pieces);
        std::vector<ErrorSums> errors(pieces);
        parallel_for(pieces, 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t piece = begin; piece < end; ++piece)
                for (std::size_t i = piece * kPiece; i < std::min(in_.size(), (piece + 1) * kPiece);
                     i += kChunk)
                    stats[piece] += cast_chunk(i, std::min(kChunk, in_.size() - i), errors[piece]);
        });
        for (const CastStats& piece : stats) result.stats += piece;
        for (const ErrorSums& piece : errors) result.errors += piece;
    }

  private:
    CastStats cast_chunk(std::size_t first, std::size_t n, ErrorSums& errors) const {
        const std::span<const float> x = in_.subspan(first, n);
        const std::span<float> out = out_.subspan(first, n);
        Chunk scratch, scale, scale_inv;
        // The statistics compare with x, so that a cast in place goes through the scratch chunk.
        const bool in_place = (request_.with_stats || request_.with_errors) && x.data() == out.data();
        const std::span<float> q = in_place ? std::span(scratch).first(n) : out;
        std::span<const float> scales = scale_;
        CastStats stats;
        if (!request_.with_stats) {
            stats.n = static_cast<std::int64_t>(n);
            stats.amax = amax(x);
        }
        if (blocks_) {
            spread_scales(first, n, scale, scale_inv);
            scales = std::span(scale).first(n);
            for (std::size_t i = 0; i < n; ++i) q[i] = x[i] * scale[i];
            quantize(*plan_.format, q, q, options(first, 1));
            for (std::size_t i = 0; i < n; ++i) q[i] *= scale_inv[i];
        } else if (!copies_) {
            quantize(*plan_.format, x, q, options(first, scale_[0]));
        } else if (x.data() != q.data()) {
            std::copy(x.begin(), x.end(), q.begin());
        }
        if (request_.with_stats) stats = measure_cast(x, q, scales, threshold_);
        if (request_.with_errors) errors += chunk_errors(x, q, scale_inv);
        if (in_place) std::copy(q.begin(), q.end(), out.begin());
        return stats;
    }

    ErrorSums chunk_errors(std::span<const float> x, std::span<const float> q, Chunk& scale_inv) const {
        std::array<float, 1> top = {largest_ * (1 / scale_[0])};
        if (!blocks_) return measure_errors(x, q, top);
        for (std::size_t i = 0; i < x.size(); ++i) scale_inv[i] *= largest_;
        return measure_errors(x, q, std::span(scale_inv).first(x.size()));
    }

    CastOptions options(std::size_t first, float scale) const {
        return {plan_.rounding, plan_.overflow, scale, request_.seed, request_.stream, first};
    }

    // The scales of elements first, ..., first + n - 1, one each.
    void spread_scales(std::size_t first, std::size_t n, Chunk& scale, Chunk& scale_inv) const {
        std::size_t r = first / request_.cols, c = first % request_.cols;
        for (std::size_t i = 0; i < n;) {
            const std::size_t block = r / grid_->height * grid_->across + c / grid_->width;
            std::size_t run = std::min(n - i, request_.cols - c);
            if (grid_->width == 1) {  // one block per column: neighbours have neighbouring scales
                std::copy_n(blocks_->scale.data() + block, run, scale.data() + i);
                std::copy_n(blocks_->scale_inv.data() + block, run, scale_inv.data() + i);
            } else {
                run = std::min(run, grid_->width - c % grid_->width);
                std::fill_n(scale.data() + i, run, blocks_->scale[block]);
                std::fill_n(scale_inv.data() + i, run, blocks_->scale_inv[block]);
            }
            i += run;
            c += run;
            if (c == request_.cols) ++r, c = 0;
        }
    }

    const CastPlan& plan_;
    const QuantizeRequest& request_;
    std::span<const float> in_;
    std::span<float> out_;
    bool copies_;
    OverflowThreshold threshold_{};
    float largest_ = 0;  // finite value of the format
    std::array<float, 1> scale_ = {1};
    const BlockGrid* grid_ = nullptr;
    const BlockScales* blocks_ = nullptr;
};

float parallel_amax(std::span<const float> values) {
    std::vector<float> amaxes((values.size() + kPiece - 1) / kPiece);
    parallel_for(amaxes.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            amaxes[i] = amax(values.subspan(i * kPiece, std::min(kPiece, values.size() - i * kPiece)));
    });
    return amax(amaxes);
}

float per_tensor_scale(const CastPlan& plan, std::span<const float> values, const QuantizeRequest& request) {
    if (!plan.scaled) return 1;
    if (request.tensor_scale != 0) return request.tensor_scale;
    const float largest = request.tensor_amax < 0 ? scale_amax(plan, values) : request.tensor_amax;
    return scale_from_amax(largest, static_cast<float>(max_finite(*plan.format)), plan.margin, 1, plan.pow2,
                           plan.zero_amax == ZeroAmax::inf);
}

}  // namespace

namespace {

CastPlan plan_of(const Recipe& recipe, TensorClass tensor) {
    const bool backward = tensor == TensorClass::dy;
    CastPlan plan;
    plan.format = !backward ? recipe.fwd : recipe.fake ? &find_format("fp32") : recipe.bwd;
    // Formats above 8 bits have range enough: they are cast without a scale, and overflow to Inf as hardware
    // does.
    const bool wide = width_bits(*plan.format) > 8;
    plan.scaled = !wide && recipe.scale != ScaleSource::none;
    plan.granularity = plan.scaled ? recipe.granularity : Granularity::tensor;
    plan.square_blocks =
        tensor == TensorClass::w && (plan.granularity == Granularity::block128 ||
                                     (plan.granularity == Granularity::block16 && recipe.square_weights));
    plan.amax_percentile =
        plan.granularity == Granularity::tensor && plan.scaled ? recipe.amax_percentile : 0;
    plan.pow2 = recipe.pow2;
    if (plan.granularity == Granularity::tensor && plan.scaled) plan.zero_amax = recipe.zero_amax;
    plan.margin = recipe.margin;
    plan.mx_rule = recipe.mx_rule;
    plan.target = recipe.target;
    plan.rounding = backward ? recipe.round_bwd : recipe.round;
    plan.overflow = wide ? Overflow::nonsaturate : recipe.overflow;
    return plan;
}

}  // namespace

float scale_amax(const CastPlan& plan, std::span<const float> values) {
    if (plan.amax_percentile == 0 || values.empty()) return parallel_amax(values);
    std::vector<float> sizes(values.size());
    std::ranges::transform(values, sizes.begin(), [](float v) {
        return std::isnan(v) ? std::numeric_limits<float>::infinity() : std::fabs(v);
    });
    const auto n = static_cast<double>(sizes.size());
    constexpr double kRounding = 1 - 1e-12;  // of the product: 99.9 % of 1000 are 999
    const double rank = std::ceil(plan.amax_percentile * n / 100 * kRounding);
    const auto at = sizes.begin() + static_cast<std::ptrdiff_t>(std::clamp(rank, 1.0, n)) - 1;
    std::ranges::nth_element(sizes, at);
    return *at;
}

Gemm gemm_of(TensorClass tensor, Along along) {
    if (along == Along::cols) return tensor == TensorClass::dy ? Gemm::dgrad : Gemm::fprop;
    return tensor == TensorClass::w ? Gemm::dgrad : Gemm::wgrad;
}

CastPlan cast_plan(const Recipe& recipe, TensorClass tensor) {
    return cast_plan(recipe, tensor, gemm_of(tensor, Along::cols));
}

CastPlan cast_plan(const Recipe& recipe, TensorClass tensor, Gemm gemm) {
    return has_inputs(recipe) ? plan_of(recipe_of_gemm(recipe, gemm), tensor) : plan_of(recipe, tensor);
}

CastPlan cast_plan(const Recipe& recipe, TensorClass tensor, int layer, int layers) {
    return cast_plan(recipe_of_layer(recipe, layer, layers), tensor);
}

QuantizeResult quantize(const CastPlan& plan, std::span<const float> in, std::span<float> out,
                        const QuantizeRequest& request) {
    if (in.size() != request.rows * request.cols || out.size() != in.size())
        throw usage_error("quantize", "input and output must both have rows x cols elements");
    QuantizeResult result;
    Cast cast(plan, in, out, request);
    if (plan.granularity == Granularity::tensor) {
        result.scale = per_tensor_scale(plan, in, request);
        cast.use_scale(result.scale);
        cast.run(result);
    } else {
        const BlockGrid grid = block_grid(plan, request.rows, request.cols, request.along);
        BlockScales scales = block_scales(plan, in, request.cols, grid, request);
        cast.use_blocks(grid, scales);
        cast.run(result);
        result.scale = scales.tensor_scale;
        result.scales = std::move(scales.scale);
    }
    return result;
}

double bits_per_element(const Recipe& recipe, std::size_t rows, std::size_t cols) {
    return bits_per_element(cast_plan(recipe, TensorClass::x), rows, cols);
}

double bits_per_element(const CastPlan& plan, std::size_t rows, std::size_t cols) {
    const double n = static_cast<double>(rows) * static_cast<double>(cols);
    double bits_per_scale = 32, tensor_bits = 0;                       // FP32, unless
    if (plan.granularity == Granularity::block32) bits_per_scale = 8;  // E8M0
    if (plan.granularity == Granularity::block16)
        bits_per_scale = 8, tensor_bits = 32;  // E4M3 under an FP32 scale
    // cuBLASLt reads one E4M3 scale per 1x16 (VEC16_UE4M3): 16x16 stores each of its scales 16 times.
    CastPlan stored = plan;
    if (plan.granularity == Granularity::block16) stored.square_blocks = false;
    const auto scales = static_cast<double>(block_grid(stored, rows, cols, Along::cols).count());
    return width_bits(*plan.format) +
           (plan.scaled && n > 0 ? (scales * bits_per_scale + tensor_bits) / n : 0);
}

}  // namespace fp8lab
