#include "core/ranks/sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/formats/codec.h"

namespace fp8lab {
namespace {

constexpr std::array kSums = {RankSum{"fp32", "FP32, ring", "fp32"},
                              RankSum{"bf16", "BF16, ring", "bf16"},
                              RankSum{"bf16-tree", "BF16, tree", "bf16", Hops::tree},
                              RankSum{"e4m3", "E4M3, ring", "e4m3"},
                              RankSum{"e5m2", "E5M2, ring", "e5m2"},
                              RankSum{"e4m3-wire", "E4M3 sent, FP32 sum", "e4m3", Hops::wire}};

void round_to(const FormatInfo& format, std::span<float> values) {
    if (format.name == "fp32") return;
    quantize(format, values, values, {.overflow = default_overflow(format)});
}

// sum += addend, as one hop does.
void hop(const RankSum& how, std::span<float> sum, std::span<const float> addend) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += addend[i];
    if (how.hops == Hops::wire) return;
    if (how.is_scaled()) round_to(find_format("fp16"), sum);
    round_to(how.sent(), sum);
}

using Ranks = std::span<const std::span<const float>>;

void add_in_ring(const RankSum& how, Ranks ranks, std::span<float> out) {
    const std::size_t count = ranks.size(), n = out.size();
    std::vector<float> addend(n);
    // Where chunk c begins: the first i with floor(i N / n) >= c.
    const auto begin = [&](std::size_t c) { return (c * n + count - 1) / count; };
    for (std::size_t step = 1; step <= count; ++step) {
        const std::span<float> to = step == 1 ? out : std::span(addend);
        for (std::size_t c = 0; c < count; ++c) {
            const std::span<const float> from = ranks[(c + step) % count];
            std::copy(from.begin() + static_cast<std::ptrdiff_t>(begin(c)),
                      from.begin() + static_cast<std::ptrdiff_t>(begin(c + 1)),
                      to.begin() + static_cast<std::ptrdiff_t>(begin(c)));
        }
        if (step > 1) hop(how, out, addend);
    }
}

void add_in_tree(const RankSum& how, Ranks ranks, std::span<float> out) {
    std::vector<std::vector<float>> sums;
    for (const auto& values : ranks) sums.emplace_back(values.begin(), values.end());
    for (std::size_t apart = 1; apart < sums.size(); apart *= 2)
        for (std::size_t r = 0; r + apart < sums.size(); r += 2 * apart) hop(how, sums[r], sums[r + apart]);
    std::ranges::copy(sums[0], out.begin());
}

void add_in_order(const RankSum& how, Ranks ranks, std::span<float> out) {
    std::ranges::copy(ranks[0], out.begin());
    for (const auto& values : ranks.subspan(1)) hop(how, out, values);
}

double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::span<const RankSum> rank_sums() { return kSums; }

const RankSum& find_rank_sum(std::string_view id, std::string_view where) {
    const auto row = std::ranges::find(kSums, id, &RankSum::id);
    if (row == kSums.end())
        throw unknown_name(std::string(where), "sum", id, kSums, std::mem_fn(&RankSum::id));
    return *row;
}

float shared_scale(const RankSum& sum, float amax, int ranks) {
    if (!sum.is_scaled()) return 1;
    const float largest = sum.hops == Hops::wire ? amax : amax * static_cast<float>(ranks);
    if (!(largest > 0) || !std::isfinite(largest)) return 1;
    return std::min(static_cast<float>(max_finite(sum.sent())) / largest, std::numeric_limits<float>::max());
}

void cast_to_send(const RankSum& sum, std::span<const float> in, float scale, std::span<float> out) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] * scale;
    round_to(sum.sent(), out);
}

void add_ranks(const RankSum& sum, Ranks ranks, std::span<float> out) {
    if (ranks.empty()) throw usage_error("sum over ranks", "there is no rank");
    for (const auto& values : ranks)
        if (values.size() != out.size()) throw usage_error("sum over ranks", "ranks differ in length");
    if (sum.hops == Hops::ring) return add_in_ring(sum, ranks, out);
    if (sum.hops == Hops::tree) return add_in_tree(sum, ranks, out);
    add_in_order(sum, ranks, out);
}

void sum_over_ranks(const RankSum& sum, Ranks ranks, std::span<float> out) {
    float largest = 0;
    for (const auto& values : ranks) largest = std::max(largest, amax(values));
    const float scale = shared_scale(sum, largest, static_cast<int>(ranks.size()));
    std::vector<std::vector<float>> sent;
    std::vector<std::span<const float>> views;
    for (const auto& values : ranks) {
        cast_to_send(sum, values, scale, sent.emplace_back(values.size()));
        views.emplace_back(sent.back());
    }
    add_ranks(sum, views, out);
    const float scale_inv = 1 / scale;
    for (float& value : out) value *= scale_inv;
}

Distance& Distance::operator+=(const Distance& other) {
    error += other.error, size += other.size, along += other.along;
    return *this;
}
double Distance::error_pct() const { return percent(std::sqrt(error), std::sqrt(size)); }
double Distance::kept_pct() const { return percent(along, size); }

Distance distance_of_sum(std::span<const float> sum, Ranks ranks) {
    Distance out;
    for (std::size_t i = 0; i < sum.size(); ++i) {
        double truth = 0;
        for (const auto& values : ranks) truth += static_cast<double>(values[i]);
        out.add(static_cast<double>(sum[i]), truth);
    }
    return out;
}

}  // namespace fp8lab
