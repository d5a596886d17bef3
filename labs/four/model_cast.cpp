#include "labs/four/model_cast.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "core/nn/matrix.h"
#include "core/threads/parallel.h"

namespace fp8lab::four {
namespace {

constexpr std::size_t kWeightSide = 256, kTokens = 4096, kWidth = 64;
constexpr double kWeightSize = 0.05;
constexpr std::size_t kPiece = 8192;  // elements whose sums are added as one, whatever the number of threads

QuantizeRequest request_of(const Tensor& x, Along along = Along::cols) {
    QuantizeRequest out{.rows = x.rows, .cols = x.cols, .along = along};
    out.with_stats = false;
    return out;
}

// dW of the cast operands, exact otherwise: (kWidth, kWidth) in float64.
std::vector<double> product(const std::vector<float>& dy, const std::vector<float>& x) {
    const auto wide = [](const std::vector<float>& values) {
        Matrix<double> out(kTokens, kWidth);
        std::ranges::copy(values, out.values.begin());
        return out;
    };
    Matrix<double> out;
    multiply_tn(wide(dy), wide(x), out);
    return std::move(out.values);
}

double sqnr_of(const std::vector<double>& exact, const std::vector<double>& other) {
    Sums sums;
    for (std::size_t i = 0; i < exact.size(); ++i) sums.add(exact[i], other[i]);
    return numbers_of({&sums, 1}, exact.size()).sqnr_db;
}

}  // namespace

CastPlan plan_of(const Way& way) {
    CastPlan plan;
    plan.format = &find_format("e2m1");
    plan.granularity = way.nvfp4 ? Granularity::block16 : Granularity::block32;
    plan.scaled = true;
    plan.square_blocks = way.nvfp4 && way.square;
    if (way.nvfp4) plan.target = way.target;
    plan.rounding = way.stochastic ? Rounding::stochastic : Rounding::nearest;
    return plan;
}

Numbers numbers_of(std::span<const Sums> parts, std::size_t elements) {
    Sums all;
    for (const Sums& part : parts) {
        all.signal += part.signal, all.noise += part.noise;
        all.product += part.product, all.zeros += part.zeros;
    }
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const bool any = all.signal > 0;
    return {.sqnr_db = any ? 10 * std::log10(all.signal / all.noise) : kNone,
            .zero_pct = 100 * all.zeros / static_cast<double>(std::max<std::size_t>(elements, 1)),
            .gain_pct = any ? 100 * (all.product / all.signal - 1) : kNone};
}

Numbers compare(std::span<const float> x, std::span<const float> q) {
    std::vector<Sums> parts((x.size() + kPiece - 1) / kPiece);
    parallel_for(parts.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t p = begin; p < end; ++p)
            for (std::size_t i = p * kPiece; i < std::min(x.size(), (p + 1) * kPiece); ++i)
                parts[p].add(static_cast<double>(x[i]), static_cast<double>(q[i]));
    });
    return numbers_of(parts, x.size());
}

bool BlockCast::clips(float x, std::size_t block) const {
    constexpr double kTop = 6 * (1 + 1e-6);
    return std::fabs(static_cast<double>(x)) > kTop * static_cast<double>(units[block]) && units[block] > 0;
}

BlockCast cast_blocks(const Way& way, const Tensor& x, std::uint64_t seed, std::uint64_t stream) {
    const CastPlan plan = plan_of(way);
    QuantizeRequest request = request_of(x);
    request.seed = seed, request.stream = stream;
    BlockCast out;
    out.grid = block_grid(plan, x.rows, x.cols, Along::cols);
    out.back.resize(x.values.size());
    const QuantizeResult result = quantize(plan, x.values, out.back, request);
    if (way.nvfp4) {
        Nvfp4Blocks blocks = nvfp4_blocks(plan, x.values, request);
        out.tensor_amax = blocks.tensor_amax, out.tensor_scale = blocks.tensor_scale;
        out.amaxes = std::move(blocks.amaxes), out.units = std::move(blocks.units);
        out.codes = std::move(blocks.codes), out.targets = std::move(blocks.targets);
    } else {
        out.tensor_amax = amax(x.values);
        out.amaxes = block_amaxes(x.values, x.cols, out.grid, false);
        for (std::size_t b = 0; b < out.amaxes.size(); ++b) {
            out.units.push_back(out.amaxes[b] > 0 ? 1 / result.scales[b] : 0.0F);
            out.codes.push_back(
                static_cast<std::uint8_t>(mx_scale_code(out.amaxes[b], *plan.format, plan.mx_rule)));
        }
        out.targets.assign(out.amaxes.size(), 6);
    }
    double clipped = 0;
    for (std::size_t b = 0; b < out.amaxes.size(); ++b) clipped += out.clips(out.amaxes[b], b);
    out.clip_pct = out.amaxes.empty() ? 0 : 100 * clipped / static_cast<double>(out.amaxes.size());
    out.numbers = compare(x.values, out.back);
    return out;
}

Numbers cast_numbers(const Way& way, const Tensor& x) {
    Way nearest = way;
    nearest.stochastic = false;
    std::vector<float> back(x.values.size());
    quantize(plan_of(nearest), x.values, back, request_of(x));
    return compare(x.values, back);
}

Tensor rotated(const Tensor& x, const RhtSigns& signs) {
    Tensor out{x.rows, rht_padded(x.cols), {}, x.name, {}, x.picture};
    out.values.resize(out.rows * out.cols);
    for (std::size_t r = 0; r < x.rows; ++r)
        std::copy_n(x.values.begin() + static_cast<std::ptrdiff_t>(r * x.cols), x.cols,
                    out.values.begin() + static_cast<std::ptrdiff_t>(r * out.cols));
    rotate(out.values, out.values, out.rows, out.cols, Along::cols, signs);
    return out;
}

std::vector<float> rotated_back(std::span<const float> y, std::size_t rows, std::size_t cols,
                                const RhtSigns& signs) {
    const std::size_t padded = rht_padded(cols);
    std::vector<float> wide(y.size()), out(rows * cols);
    rotate_back(y, wide, rows, padded, Along::cols, signs);
    for (std::size_t r = 0; r < rows; ++r)
        std::copy_n(wide.begin() + static_cast<std::ptrdiff_t>(r * padded), cols,
                    out.begin() + static_cast<std::ptrdiff_t>(r * cols));
    return out;
}

Tensor weights_of(int seed) {
    return make_tensor({.size = kWeightSize,
                        .seed = seed,
                        .rows = static_cast<int>(kWeightSide),
                        .cols = static_cast<int>(kWeightSide)});
}

Copies weight_copies(const Way& way, const Tensor& w) {
    Way nearest = way;
    nearest.stochastic = false;
    const CastPlan plan = plan_of(nearest);
    std::vector<float> fprop(w.values.size()), dgrad(w.values.size());
    quantize(plan, w.values, fprop, request_of(w, Along::cols));
    quantize(plan, w.values, dgrad, request_of(w, Along::rows));
    double differ = 0;
    for (std::size_t i = 0; i < fprop.size(); ++i) differ += fprop[i] != dgrad[i];
    return {.differ_pct = 100 * differ / static_cast<double>(fprop.size()),
            .apart_db = compare(fprop, dgrad).sqnr_db,
            .sqnr_db = compare(w.values, fprop).sqnr_db};
}

WeightGradient weight_gradient(int seed, const RhtSigns& signs) {
    enum Stream : std::uint64_t { x_stream = 1001, dy_stream, token_stream };
    const auto rng = [&](Stream stream) { return Rng(static_cast<std::uint64_t>(seed), stream); };
    Tensor x{kTokens, kWidth, std::vector<float>(kTokens * kWidth), "x", {}}, dy = x;
    rng(x_stream).fill_normal(x.values);
    rng(dy_stream).fill_normal(dy.values);
    Rng tokens = rng(token_stream);
    for (std::size_t t = 0; t < kTokens; ++t) {
        const auto size = static_cast<float>(std::exp(static_cast<double>(tokens.normal())));
        for (float& value : std::span(dy.values).subspan(t * kWidth, kWidth)) value *= size;
    }
    const auto cast = [&](const Tensor& tensor, bool rotates) {
        std::vector<float> values = tensor.values;
        if (rotates) rotate(values, values, kTokens, kWidth, Along::rows, signs);
        quantize(plan_of({}), values, values, request_of(tensor, Along::rows));
        return values;
    };
    const std::vector<double> exact = product(dy.values, x.values);
    const std::vector<float> turned = cast(dy, true), straight = cast(x, false);
    return {.plain_db = sqnr_of(exact, product(cast(dy, false), straight)),
            .both_db = sqnr_of(exact, product(turned, cast(x, true))),
            .one_db = sqnr_of(exact, product(turned, straight))};
}

}  // namespace fp8lab::four
