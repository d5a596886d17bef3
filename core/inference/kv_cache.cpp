#include "core/inference/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/rng.h"
#include "core/inference/lowering.h"
#include "core/scaling/block_scales.h"

namespace fp8lab {
namespace {

constexpr std::size_t kKeys = 2048, kChannels = 128, kQueries = 64, kOutliers = 4;

Matrix<float> normal(std::size_t rows, std::uint64_t seed, std::uint64_t stream, float sigma = 1) {
    Matrix<float> m(rows, kChannels);
    Rng(seed, stream).fill_normal(m.values, sigma);
    return m;
}

// softmax(q k^T / sqrt(d)) v in float64.
std::vector<double> attention(const Matrix<float>& q, const Matrix<float>& k, const Matrix<float>& v) {
    std::vector<double> out(q.rows * v.cols), p(k.rows);
    const double scale = 1 / std::sqrt(static_cast<double>(q.cols));
    for (std::size_t r = 0; r < q.rows; ++r) {
        for (std::size_t i = 0; i < k.rows; ++i) {
            double sum = 0;
            for (std::size_t c = 0; c < q.cols; ++c)
                sum += static_cast<double>(q.row(r)[c]) * static_cast<double>(k.row(i)[c]);
            p[i] = sum * scale;
        }
        const double top = *std::ranges::max_element(p);
        double total = 0;
        for (double& value : p) total += value = std::exp(value - top);
        for (std::size_t i = 0; i < k.rows; ++i)
            for (std::size_t c = 0; c < v.cols; ++c)
                out[r * v.cols + c] += p[i] / total * static_cast<double>(v.row(i)[c]);
    }
    return out;
}

double row_bits(const LowFormat& format, std::size_t values) {
    constexpr double kFp32 = 32, kEight = 8;  // of a scale: E8M0 and E4M3 have 8
    const auto n = static_cast<double>(values);
    if (format.groups) return n * format.groups->bits_per_element(values);
    const CastPlan& plan = format.activations;
    double scale = 0;
    if (plan.granularity == Granularity::block32 || plan.granularity == Granularity::block16) scale = kEight;
    if (plan.granularity == Granularity::block128 || plan.granularity == Granularity::row) scale = kFp32;
    const bool blocks = scale > 0 && plan.granularity != Granularity::row;
    const double scales = blocks ? static_cast<double>(block_grid(plan, 1, values, Along::cols).count()) : 1;
    return static_cast<double>(width_bits(*plan.format)) * n + scale * scales;
}

double relative_pct(const std::vector<double>& o, const std::vector<double>& reference) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < o.size(); ++i) {
        error += (o[i] - reference[i]) * (o[i] - reference[i]);
        size += reference[i] * reference[i];
    }
    return 100 * std::sqrt(error / size);
}

}  // namespace

double kv_bytes_per_token(const KvShape& shape, const LowFormat& format) {
    const bool latent = shape.latent > 0;
    const double rows = latent ? 1 : 2.0 * shape.heads;
    return rows * shape.layers *
           row_bits(format, static_cast<std::size_t>(latent ? shape.latent : shape.head_dim)) / 8;
}

double kv_tokens(double bytes, double bytes_per_token) { return std::floor(bytes / bytes_per_token); }

KvError kv_error(const KvCase& kv, const LowFormat& format) {
    const auto seed = static_cast<std::uint64_t>(kv.seed);
    const auto outlier = static_cast<float>(kv.outlier);
    Matrix<float> k = normal(kKeys, seed, 0), v = normal(kKeys, seed, 1);
    std::vector<std::size_t> channels(kChannels);
    std::iota(channels.begin(), channels.end(), std::size_t{0});
    Rng rng(seed, 2);
    for (std::size_t i = 0; i < kOutliers; ++i) {  // Fisher and Yates
        std::swap(channels[i], channels[i + rng.below(static_cast<std::uint32_t>(kChannels - i))]);
        for (std::size_t r = 0; r < kKeys; ++r) k.row(r)[channels[i]] *= outlier;
    }
    const float longer =
        std::sqrt(1 + kOutliers * (outlier * outlier - 1) / static_cast<float>(kChannels));  // of a key
    const Matrix<float> q = normal(kQueries, seed, 3, static_cast<float>(kv.sharpness) / longer);
    const LowFormat& bf16 = find_low_format("bf16", "format");
    k = lowered_input(k, bf16), v = lowered_input(v, bf16);
    const Matrix<float> low_k = lowered_input(k, format), low_v = lowered_input(v, format);
    const std::vector<double> exact = attention(q, k, v);
    return {.k_pct = relative_pct(attention(q, low_k, v), exact),
            .v_pct = relative_pct(attention(q, k, low_v), exact),
            .both_pct = relative_pct(attention(q, low_k, low_v), exact)};
}

}  // namespace fp8lab
