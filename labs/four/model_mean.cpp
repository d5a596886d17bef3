#include "labs/four/model_mean.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/threads/parallel.h"

namespace fp8lab::four {
namespace {

constexpr std::size_t kChunk = 1024;  // elements whose sum stays in the first-level cache

struct MeanSums {
    double signal = 0, noise = 0, product = 0, zeros = 0;
};

Numbers numbers_of(const std::vector<MeanSums>& pieces, std::size_t count) {
    MeanSums all;
    for (const MeanSums& piece : pieces) {
        all.signal += piece.signal, all.noise += piece.noise;
        all.product += piece.product, all.zeros += piece.zeros;
    }
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const bool any = all.signal > 0;
    return {.sqnr_db = any ? 10 * std::log10(all.signal / all.noise) : kNone,
            .zero_pct = 100 * all.zeros / static_cast<double>(std::max<std::size_t>(count, 1)),
            .gain_pct = any ? 100 * (all.product / all.signal - 1) : kNone};
}

// The sum of n casts of the elements from `first` on, against n times themselves.
MeanSums measure(std::span<const float> x, std::span<const double> sum, int n) {
    MeanSums out;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto value = static_cast<double>(x[i]), mean = sum[i] / n;
        out.signal += value * value;
        out.noise += (value - mean) * (value - mean);
        out.product += value * mean;
        out.zeros += value != 0 && mean == 0;
    }
    return out;
}

// Every cast anew, in up to kGroups sums at once; which cast is in which sum does not depend on the threads.
MeanLine whole_casts(const CastPlan& plan, const Tensor& x, std::uint64_t seed, const std::vector<int>& at) {
    constexpr int kGroups = 4;
    MeanLine out{.n = at, .numbers = {}};
    std::vector<double> sum(x.values.size());
    int done = 0;
    for (const int n : at) {
        const int groups = std::min(kGroups, n - done);
        std::vector<std::vector<double>> sums(static_cast<std::size_t>(groups));
        const auto add_group = [&](int group) {
            std::vector<double>& into = sums[static_cast<std::size_t>(group)];
            into.resize(sum.size());
            std::vector<float> back(x.values.size());
            QuantizeRequest request{.rows = x.rows, .cols = x.cols, .seed = seed};
            request.with_stats = false;
            for (int cast = done + group; cast < n; cast += groups) {
                request.stream = static_cast<std::uint64_t>(cast) + 1;
                quantize(plan, x.values, back, request);
                for (std::size_t i = 0; i < back.size(); ++i) into[i] += static_cast<double>(back[i]);
            }
        };
        parallel_for(sums.size(), 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t group = begin; group < end; ++group) add_group(static_cast<int>(group));
        });
        for (const std::vector<double>& group : sums)
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += group[i];
        done = n;
        out.numbers.push_back(numbers_of({measure(x.values, sum, n)}, x.values.size()));
    }
    return out;
}

}  // namespace

const Numbers& MeanLine::at(int casts) const {
    return numbers.at(static_cast<std::size_t>(std::ranges::find(n, casts) - n.begin()));
}

MeanLine mean_line(Way way, const Tensor& x, std::uint64_t seed, const std::vector<int>& at) {
    way.stochastic = true;
    const CastPlan plan = plan_of(way);
    if (way.nvfp4 && way.target == Nvfp4Target::four_or_six) return whole_casts(plan, x, seed, at);
    const BlockGrid grid = block_grid(plan, x.rows, x.cols, Along::cols);
    const BlockScales scales =
        block_scales(plan, x.values, x.cols, grid, {.rows = x.rows, .cols = x.cols, .seed = seed});
    const std::size_t chunks = (x.values.size() + kChunk - 1) / kChunk;
    std::vector<std::vector<MeanSums>> sums(at.size(), std::vector<MeanSums>(chunks));
    const auto one_chunk = [&](std::size_t chunk) {
        const std::size_t first = chunk * kChunk, count = std::min(kChunk, x.values.size() - first);
        const std::span<const float> values = std::span(x.values).subspan(first, count);
        std::array<float, kChunk> scaled, codes, inverse;
        std::array<float, kChunk> total = {};
        std::array<double, kChunk> sum;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t r = (first + i) / x.cols, c = (first + i) % x.cols;
            const std::size_t block = r / grid.height * grid.across + c / grid.width;
            scaled[i] = values[i] * scales.scale[block];
            inverse[i] = scales.scale_inv[block];
        }
        int done = 0;
        for (std::size_t point = 0; point < at.size(); ++point) {
            for (; done < at[point]; ++done) {
                quantize(*plan.format, std::span<const float>(scaled).first(count),
                         std::span(codes).first(count),
                         {.rounding = Rounding::stochastic,
                          .seed = seed,
                          .stream = static_cast<std::uint64_t>(done) + 1,
                          .first = first});
                for (std::size_t i = 0; i < count; ++i) total[i] += codes[i];
            }
            for (std::size_t i = 0; i < count; ++i)
                sum[i] = static_cast<double>(total[i]) * static_cast<double>(inverse[i]);
            sums[point][chunk] = measure(values, std::span<const double>(sum).first(count), at[point]);
        }
    };
    parallel_for(chunks, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t chunk = begin; chunk < end; ++chunk) one_chunk(chunk);
    });
    MeanLine out{.n = at, .numbers = {}};
    for (const std::vector<MeanSums>& point : sums) out.numbers.push_back(numbers_of(point, x.values.size()));
    return out;
}

}  // namespace fp8lab::four
