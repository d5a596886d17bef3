#include "labs/four/model_mean.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "core/threads/parallel.h"

namespace fp8lab::four {
namespace {

constexpr std::size_t kChunk = 1024;  // elements whose sum stays in the first-level cache

// The sum of n casts of the elements from `first` on, against n times themselves.
Sums measure(std::span<const float> x, std::span<const double> sum, int n) {
    Sums out;
    for (std::size_t i = 0; i < x.size(); ++i) out.add(static_cast<double>(x[i]), sum[i] / n);
    return out;
}

Numbers compare_mean(std::span<const float> x, std::span<const double> sum, int n) {
    const Sums all = measure(x, sum, n);
    return numbers_of({&all, 1}, x.size());
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
        out.numbers.push_back(compare_mean(x.values, sum, n));
    }
    return out;
}

// The two codes that the casts of an element choose from, and how often they took the upper one.
struct ChunkChoices {
    std::array<float, kChunk> low, step;  // values of the format
    std::array<float, kChunk>
        inverse;  // what they are multiplied by: the scale, with the sign of the element
    std::array<std::uint32_t, kChunk> fraction;  // of the step, in 2^-32
    std::array<std::uint32_t, kChunk> upper;     // casts that took the upper code
};

// One request whose scales do not depend on the random numbers.
class Choices {
  public:
    Choices(const CastPlan& plan, const MeanRequest& request, std::uint64_t seed, MeanLine& line)
        : format_(plan.format), x_(request.tensor), at_(request.at), line_(&line) {
        grid_ = block_grid(plan, x_->rows, x_->cols, Along::cols);
        scales_ = block_scales(plan, x_->values, x_->cols, grid_,
                               {.rows = x_->rows, .cols = x_->cols, .seed = seed});
        sums_.assign(at_.size(), std::vector<Sums>(chunks()));
        // Codes without their sign ascend with the numbers; beyond the largest there is no step.
        const std::uint32_t largest = encode(*format_, std::numeric_limits<float>::max());
        for (std::uint32_t code = 0; code <= largest; ++code) {
            const float low = decode(*format_, code);
            low_[code] = low;
            step_[code] = code < largest ? decode(*format_, code + 1) - low : 0;
        }
    }
    std::size_t chunks() const { return (x_->values.size() + kChunk - 1) / kChunk; }
    const std::vector<int>& at() const { return at_; }
    std::span<const float> values(std::size_t chunk) const {
        const std::span<const float> all = x_->values;
        return all.subspan(chunk * kChunk, std::min(kChunk, all.size() - chunk * kChunk));
    }

    void begin(std::size_t chunk, ChunkChoices& of) const {
        const std::span<const float> x = values(chunk);
        std::array<float, kChunk> scaled;
        std::array<std::uint8_t, kChunk> codes;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const std::size_t r = (chunk * kChunk + i) / x_->cols, c = (chunk * kChunk + i) % x_->cols;
            const std::size_t block = r / grid_.height * grid_.across + c / grid_.width;
            scaled[i] = std::fabs(x[i] * scales_.scale[block]);
            of.inverse[i] = std::copysign(scales_.scale_inv[block], x[i]);
        }
        encode(*format_, std::span<const float>(scaled).first(x.size()), std::span(codes).first(x.size()),
               {.rounding = Rounding::toward_zero});
        for (std::size_t i = 0; i < x.size(); ++i) {
            of.low[i] = low_[codes[i]], of.step[i] = step_[codes[i]];
            // Exact: the step is a power of two.
            const double part = of.step[i] > 0
                                    ? (static_cast<double>(scaled[i]) - static_cast<double>(of.low[i])) /
                                          static_cast<double>(of.step[i])
                                    : 0;
            of.fraction[i] = static_cast<std::uint32_t>(0x1p32 * part);
        }
        of.upper.fill(0);
    }
    void measure_point(std::size_t point, std::size_t chunk, const ChunkChoices& of) {
        const std::span<const float> x = values(chunk);
        std::array<double, kChunk> sum;
        for (std::size_t i = 0; i < x.size(); ++i)
            sum[i] = (at_[point] * static_cast<double>(of.low[i]) +
                      of.upper[i] * static_cast<double>(of.step[i])) *
                     static_cast<double>(of.inverse[i]);
        sums_[point][chunk] = measure(x, std::span<const double>(sum).first(x.size()), at_[point]);
    }
    void finish() {
        line_->n = at_;
        for (const std::vector<Sums>& point : sums_)
            line_->numbers.push_back(numbers_of(point, x_->values.size()));
    }

  private:
    const FormatInfo* format_;
    const Tensor* x_;
    std::vector<int> at_;
    MeanLine* line_;
    BlockGrid grid_;
    BlockScales scales_;
    std::vector<std::vector<Sums>> sums_;  // of the points, of the chunks
    std::array<float, 128> low_ = {}, step_ = {};
};

// A chunk of all requests that have one, so that its random numbers are drawn once and stay in the first-level cache.
void measure_chunk(std::vector<Choices>& all, std::size_t chunk, std::uint64_t seed) {
    struct Part {
        Choices* whole;
        ChunkChoices of;
        std::size_t point = 0;
    };
    std::vector<Part> parts;
    int most = 0;
    for (Choices& one : all) {
        if (chunk >= one.chunks()) continue;
        parts.push_back({&one, {}});
        one.begin(chunk, parts.back().of);
        most = std::max(most, one.at().back());
    }
    std::array<std::uint32_t, kChunk> random;
    for (int n = 1; n <= most; ++n) {
        random_bits(seed, static_cast<std::uint64_t>(n), chunk * kChunk, random);
        for (Part& part : parts) {
            const std::vector<int>& at = part.whole->at();
            if (part.point == at.size()) continue;
            count_rounded_up(part.of.fraction, random, part.of.upper);
            if (at[part.point] == n) part.whole->measure_point(part.point++, chunk, part.of);
        }
    }
}

}  // namespace

const Numbers& MeanLine::at(int casts) const {
    return numbers.at(static_cast<std::size_t>(std::ranges::find(n, casts) - n.begin()));
}

std::vector<MeanLine> mean_lines(std::span<const MeanRequest> requests, std::uint64_t seed) {
    std::vector<MeanLine> out(requests.size());
    std::vector<Choices> all;
    std::size_t chunks = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const auto& [way, tensor, at] = requests[i];
        CastPlan plan = plan_of(way);
        plan.rounding = Rounding::stochastic;
        if (way.nvfp4 && way.target == Nvfp4Target::four_or_six) {
            out[i] = whole_casts(plan, *tensor, seed, at);
            continue;
        }
        all.emplace_back(plan, requests[i], seed, out[i]);
        chunks = std::max(chunks, all.back().chunks());
    }
    parallel_for(chunks, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t chunk = begin; chunk < end; ++chunk) measure_chunk(all, chunk, seed);
    });
    for (Choices& choices : all) choices.finish();
    return out;
}

}  // namespace fp8lab::four
