#include "labs/wide/model_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "core/threads/parallel.h"

namespace fp8lab::wide {
namespace {

constexpr std::uint64_t kValues = 1'000'003;  // stream of v; streams 64 to 131,072 are those of the scores
constexpr std::size_t kTopBin = static_cast<std::size_t>(-kLowestBinade), kBins = kTopBin + 1;

struct RowSums {
    double z = 0, log2_z = 0, largest = 0, first = 0;
    std::array<double, 4> sum = {}, lost = {}, zeros = {};
    std::vector<double> keys, mass;
    std::array<std::vector<double>, 4> lost_mass;
    std::array<double, 4> noise = {};
    double signal = 0;
};

float pairwise_sum(std::span<const float> x) {
    constexpr std::size_t kLeaf = 32;
    if (x.size() <= kLeaf) {
        float sum = 0;
        for (const float value : x) sum += value;
        return sum;
    }
    const std::size_t half = x.size() / 2;
    return pairwise_sum(x.first(half)) + pairwise_sum(x.subspan(half));
}

// exp(s - max) of one row; returns Z.
float exponentials(const AttentionSpec& spec, std::span<const float> normals, std::span<float> e) {
    const auto sigma = static_cast<float>(spec.sigma);
    float top = normals[0];
    for (const float value : normals) top = std::max(top, value);
    top *= sigma;
    if (spec.sink > 0) {
        // The sink is above the largest score of the row as it was drawn, the first one included.
        const float shift = static_cast<float>(spec.sink);
        for (std::size_t i = 0; i < e.size(); ++i) e[i] = std::exp(normals[i] * sigma - top - shift);
        e[0] = 1;
    } else {
        for (std::size_t i = 0; i < e.size(); ++i) e[i] = std::exp(normals[i] * sigma - top);
    }
    return pairwise_sum(e);
}

// One pass for all casts. What a cast keeps adds 0 to what it loses, which changes no sum.
void count_losses(std::span<const float> e, float z, float threshold, RowSums& row) {
    std::array<float, kCasts.size()> scales;
    std::array<int, kCasts.size()> zeros = {};
    std::array<double, kCasts.size()> lost = {};
    for (std::size_t c = 0; c < kCasts.size(); ++c) scales[c] = static_cast<float>(kCasts[c].scale);
    double sum = 0, sum_normalised = 0;
    for (const float value : e) {
        const float p = value / z;
        sum += static_cast<double>(value), sum_normalised += static_cast<double>(p);
        for (std::size_t c = 0; c < kCasts.size(); ++c) {
            const float x = kCasts[c].normalised ? p : value;
            const bool is_lost = !(x * scales[c] > threshold);
            lost[c] += is_lost ? static_cast<double>(x) : 0.0;
            zeros[c] += is_lost;
        }
    }
    row.z = static_cast<double>(z);
    for (std::size_t c = 0; c < kCasts.size(); ++c) {
        row.sum[c] = kCasts[c].normalised ? sum_normalised : sum;
        row.lost[c] = lost[c], row.zeros[c] = zeros[c];
    }
}

std::size_t bin_of(float e) {
    if (e >= 1) return kTopBin;
    if (e <= 0) return 0;
    return static_cast<std::size_t>(std::max(std::ilogb(e), kLowestBinade) - kLowestBinade);
}

void fill_bins(std::span<const float> e, float z, float threshold, RowSums& row) {
    row.keys.assign(kBins, 0), row.mass.assign(kBins, 0);
    for (auto& lost : row.lost_mass) lost.assign(kBins, 0);
    row.first = static_cast<double>(e[0] / z);
    row.log2_z = std::log2(static_cast<double>(z));
    for (const float value : e) {
        const float p = value / z;
        const auto mass = static_cast<double>(p);
        const std::size_t bin = bin_of(value);
        ++row.keys[bin];
        row.mass[bin] += mass;
        row.largest = std::max(row.largest, mass);
        for (std::size_t c = 0; c < kCasts.size(); ++c)
            if ((kCasts[c].normalised ? p : value) * static_cast<float>(kCasts[c].scale) <= threshold)
                row.lost_mass[c][bin] += mass;
    }
}

// o of one row, exact and of the four casts, and what is between them.
void measure_output(const AttentionSpec& spec, std::span<const float> e, float z,
                    std::span<const float> values, RowSums& row) {
    const auto head = static_cast<std::size_t>(spec.head);
    const FormatInfo& format = find_format(spec.format);
    std::vector<double> exact(head), cast(head);
    std::vector<float> x(e.begin(), e.end()), q(e.size());
    const auto multiply = [&](std::span<const float> weights, std::vector<double>& out) {
        std::ranges::fill(out, 0);
        for (std::size_t key = 0; key < weights.size(); ++key) {
            if (weights[key] == 0) continue;
            const auto weight = static_cast<double>(weights[key]);
            const float* v = values.data() + key * head;
            for (std::size_t h = 0; h < head; ++h) out[h] += weight * static_cast<double>(v[h]);
        }
    };
    for (float& value : x) value /= z;
    multiply(x, exact);
    for (const double o : exact) row.signal += o * o;
    for (std::size_t c = 0; c < kCasts.size(); ++c) {
        quantize(format, kCasts[c].normalised ? std::span<const float>(x) : e, q,
                 {.scale = static_cast<float>(kCasts[c].scale)});
        multiply(q, cast);
        double divisor = kCasts[c].normalised ? 1 : static_cast<double>(z);
        if (spec.sum_after) {
            divisor = 0;
            for (const float value : q) divisor += static_cast<double>(value);
        }
        for (std::size_t h = 0; h < head; ++h) {
            const double error = exact[h] - (divisor > 0 ? cast[h] / divisor : 0);
            row.noise[c] += error * error;
        }
    }
}

std::span<const float> row_of(const std::vector<float>& normals, std::size_t row, int keys) {
    const auto count = static_cast<std::size_t>(keys);
    return std::span(normals).subspan(row * count, count);
}

}  // namespace

std::size_t cast_index(std::string_view id) {
    for (std::size_t c = 0; c < kCasts.size(); ++c)
        if (kCasts[c].id == id) return c;
    return 0;
}

float zero_threshold(std::string_view format) {
    return static_cast<float>(min_subnormal(find_format(format)) / 2);
}

double Attention::cut_log2(std::size_t cast) const {
    const double at = std::log2(static_cast<double>(zero_threshold(spec.format)) / kCasts[cast].scale);
    return kCasts[cast].normalised ? at + log2_z : at;
}

std::shared_ptr<const std::vector<float>> Normals::of(int seed, int keys) {
    std::lock_guard lock{mutex_};
    if (seed != seed_) kept_.clear();
    seed_ = seed;
    for (const auto& [count, values] : kept_)
        if (count == keys) return values;
    auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(keys) * kRows);
    Rng(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(keys)).fill_normal(*values);
    kept_.emplace_back(keys, values);
    return values;
}

Attention attention_of(const AttentionSpec& spec, Normals& normals) {
    Attention out;
    out.spec = spec;
    const auto drawn = normals.of(spec.seed, spec.keys);
    const bool with_output = spec.keys <= kMostOutputKeys;
    std::vector<float> values;
    if (with_output) {
        values.resize(static_cast<std::size_t>(spec.keys * spec.head));
        Rng(static_cast<std::uint64_t>(spec.seed), kValues).fill_normal(values);
    }
    std::vector<RowSums> rows(kRows);
    const float threshold = zero_threshold(spec.format);
    parallel_for(rows.size(), 1, [&](std::size_t begin, std::size_t end) {
        std::vector<float> e(static_cast<std::size_t>(spec.keys));
        for (std::size_t r = begin; r < end; ++r) {
            const float z = exponentials(spec, row_of(*drawn, r, spec.keys), e);
            count_losses(e, z, threshold, rows[r]);
            fill_bins(e, z, threshold, rows[r]);
            if (with_output) measure_output(spec, e, z, values, rows[r]);
        }
    });
    out.keys_pct.assign(kBins, 0), out.mass_pct.assign(kBins, 0);
    for (auto& lost : out.lost_pct) lost.assign(kBins, 0);
    std::array<double, 4> sum = {}, lost = {}, zeros = {}, noise = {};
    double signal = 0;
    for (const RowSums& row : rows) {
        for (std::size_t c = 0; c < kCasts.size(); ++c) {
            sum[c] += row.sum[c], lost[c] += row.lost[c], zeros[c] += row.zeros[c], noise[c] += row.noise[c];
            for (std::size_t b = 0; b < kBins; ++b) out.lost_pct[c][b] += 100 * row.lost_mass[c][b] / kRows;
        }
        for (std::size_t b = 0; b < kBins; ++b) {
            out.keys_pct[b] += 100 * row.keys[b] / (static_cast<double>(spec.keys) * kRows);
            out.mass_pct[b] += 100 * row.mass[b] / kRows;
        }
        signal += row.signal;
        out.log2_z += row.log2_z / kRows;
        out.largest_pct += 100 * row.largest / kRows;
        out.sink_mass_pct += 100 * row.first / kRows;
    }
    for (std::size_t c = 0; c < kCasts.size(); ++c)
        out.casts[c] = {.zero_pct = 100 * zeros[c] / (static_cast<double>(spec.keys) * kRows),
                        .lost_pct = 100 * lost[c] / sum[c],
                        .output_db = with_output ? 10 * std::log10(signal / noise[c])
                                                 : std::numeric_limits<double>::quiet_NaN()};
    return out;
}

std::vector<SweepPoint> sweep_of(const AttentionSpec& spec, Normals& normals) {
    std::vector<SweepPoint> out;
    const float threshold = zero_threshold(spec.format);
    for (int keys = kLeastKeys; keys <= kMostKeys; keys *= 2) {
        const auto drawn = normals.of(spec.seed, keys);
        std::vector<RowSums> rows(kRows);
        parallel_for(rows.size(), 1, [&](std::size_t begin, std::size_t end) {
            std::vector<float> e(static_cast<std::size_t>(keys));
            for (std::size_t r = begin; r < end; ++r)
                count_losses(e, exponentials(spec, row_of(*drawn, r, keys), e), threshold, rows[r]);
        });
        SweepPoint point{.keys = keys};
        for (std::size_t c = 0; c < kCasts.size(); ++c) {
            double sum = 0, lost = 0;
            for (const RowSums& row : rows) sum += row.sum[c], lost += row.lost[c];
            point.lost_pct[c] = 100 * lost / sum;
        }
        out.push_back(point);
    }
    return out;
}

}  // namespace fp8lab::wide
