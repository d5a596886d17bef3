#include "labs/wide/model_optimiser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "core/scaling/scale_rule.h"
#include "core/threads/parallel.h"

namespace fp8lab::wide {
namespace {

constexpr std::uint64_t kGradients = 5000,
                        kRounds = 6000;  // first streams; one per chunk of elements, per step
constexpr std::size_t kChunk = 512;      // elements that one thread carries through all steps

struct Storage {
    const FormatInfo* format;
    bool stochastic, blocks, pow2;
};

Storage storage_of(const OptimiserSpec& spec, bool stochastic) {
    return {&find_format(spec.format), stochastic, spec.scale != "one", spec.scale == "block128_pow2"};
}

float block_scale(const Storage& storage, std::span<const float> block) {
    const auto top = static_cast<float>(max_finite(*storage.format));
    return scale_from_amax(amax(block), top, 0, 1, storage.pow2);
}

// Stores x, in place; returns the scale of the first block.
float store(const Storage& storage, std::span<float> x, std::uint64_t seed, std::size_t step,
            std::size_t first) {
    CastOptions options{.seed = seed, .stream = kRounds + step, .first = first};
    options.rounding = storage.stochastic ? Rounding::stochastic : Rounding::nearest;
    if (!storage.blocks) {
        quantize(*storage.format, x, x, options);
        return 1;
    }
    float scale_of_first = 1;
    for (std::size_t at = 0; at < x.size(); at += kScaleBlock) {
        const std::span<float> block = x.subspan(at, std::min<std::size_t>(kScaleBlock, x.size() - at));
        options.scale = block_scale(storage, block);
        options.first = first + at;
        if (at == 0) scale_of_first = options.scale;
        quantize(*storage.format, block, block, options);
    }
    return scale_of_first;
}

// The elements of a chunk as one storage keeps them.
struct Lane {
    Storage storage;
    std::vector<float> v, x;
    std::vector<double> sum;  // of v, per step
    bool stuck = false;
    float scale = 1;
};
struct Chunk {
    std::vector<Lane> lanes;
    std::vector<double> exact;  // what float64 has
};

// Elements [first, first + count) through all steps, each storage with the same gradients.
Chunk carry(const OptimiserSpec& spec, std::span<const Storage> storages, std::size_t first,
            std::size_t count) {
    Chunk out;
    const auto steps = static_cast<std::size_t>(spec.length());
    const auto beta2 = static_cast<float>(spec.beta2), rest = static_cast<float>(1 - spec.beta2);
    const auto seed = static_cast<std::uint64_t>(spec.seed);
    const bool noise = spec.signal == "noise";
    std::vector<float> g(count);
    std::vector<double> exact(count, spec.v0);
    for (const Storage& storage : storages) {
        Lane& lane = out.lanes.emplace_back(Lane{
            storage, std::vector<float>(count, static_cast<float>(spec.v0)), std::vector<float>(count), {}});
        lane.scale = store(storage, lane.v, seed, 0, first);
    }
    const auto add = [&] {
        for (Lane& lane : out.lanes) {
            double sum = 0;
            for (const float v : lane.v) sum += static_cast<double>(v);
            lane.sum.push_back(sum);
        }
        double truth = 0;
        for (const double v : exact) truth += v;
        out.exact.push_back(truth);
    };
    add();
    Rng rng(seed, kGradients + first / kChunk);
    for (std::size_t step = 1; step <= steps; ++step) {
        if (noise) rng.fill_normal(g);
        for (float& value : g) value *= value;
        for (std::size_t i = 0; i < count; ++i)
            exact[i] = spec.beta2 * exact[i] + (1 - spec.beta2) * static_cast<double>(g[i]);
        for (Lane& lane : out.lanes) {
            for (std::size_t i = 0; i < count; ++i) lane.x[i] = beta2 * lane.v[i] + rest * g[i];
            lane.scale = store(lane.storage, lane.x, seed, step, first);
            if (step == steps) lane.stuck = lane.x == lane.v;
            lane.v.swap(lane.x);
        }
        add();
    }
    return out;
}

// The averages of the storages, and the exact one. count: elements; one where all are equal.
std::vector<Average> averages_of(const OptimiserSpec& spec, std::span<const Storage> storages,
                                 std::size_t count, std::vector<double>& exact) {
    const std::size_t chunks = (count + kChunk - 1) / kChunk;
    std::vector<Chunk> parts(chunks);
    parallel_for(chunks, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            parts[i] = carry(spec, storages, i * kChunk, std::min(kChunk, count - i * kChunk));
    });
    const std::size_t length = parts.front().exact.size();
    const auto elements = static_cast<double>(count);
    std::vector<Average> out(storages.size());
    exact.assign(length, 0);
    for (const Chunk& part : parts)
        for (std::size_t i = 0; i < length; ++i) exact[i] += part.exact[i] / elements;
    for (std::size_t s = 0; s < out.size(); ++s) {
        Average& average = out[s];
        average.v.assign(length, 0);
        average.stuck = true;
        for (const Chunk& part : parts) {
            for (std::size_t i = 0; i < length; ++i) average.v[i] += part.lanes[s].sum[i] / elements;
            average.stuck = average.stuck && part.lanes[s].stuck;
        }
        const Lane& lane = parts.front().lanes[s];
        average.last = static_cast<double>(lane.v.front()), average.scale = lane.scale;
    }
    return out;
}

// The averages rounded to nearest and stochastically. Without noise all elements are equal to nearest.
std::pair<Average, Average> both(const OptimiserSpec& spec, std::vector<double>& exact) {
    const std::array storages = {storage_of(spec, false), storage_of(spec, true)};
    if (spec.format == "fp32") {  // what is computed in FP32 is not rounded to it
        Average only = averages_of(spec, std::span(storages).first(1), kElements, exact).front();
        return {only, only};
    }
    if (spec.signal == "noise") {
        std::vector<Average> averages = averages_of(spec, storages, kElements, exact);
        return {std::move(averages[0]), std::move(averages[1])};
    }
    Average stochastic = averages_of(spec, std::span(storages).subspan(1), kElements, exact).front();
    return {averages_of(spec, std::span(storages).first(1), 1, exact).front(), std::move(stochastic)};
}

// The values of a format beside v, at a scale.
void find_neighbours(Optimiser& out) {
    const FormatInfo& format = find_format(out.spec.format);
    const double v = out.chosen().last;
    out.below = out.at = out.above = v;
    if (!(v > 0)) return;
    if (width_bits(format) > 16) {  // FP32
        const auto here = static_cast<float>(v);
        out.below = static_cast<double>(std::nextafter(here, 0.0F));
        out.above = static_cast<double>(std::nextafter(here, HUGE_VALF));
        return;
    }
    const auto scale = static_cast<double>(out.chosen().scale);
    const std::vector<CodeValue> values = positive_values(format);
    const auto up = std::ranges::upper_bound(values, v * scale * (1 + 1e-6), {}, &CodeValue::value);
    const auto here = up - 1;
    if (here == values.begin()) return;
    out.below = (here - 1)->value / scale, out.at = here->value / scale;
    out.above = up == values.end() ? 2 * out.at - out.below : up->value / scale;
}

Cliff cliff_of(std::string_view name) {
    constexpr int kPoints = 29;
    const FormatInfo& format = find_format(name);
    std::vector<float> starts;
    for (const CodeValue& value : positive_values(format))
        if (value.value >= 1 && value.value < 2) starts.push_back(static_cast<float>(value.value));
    Cliff out{name, {}};
    for (int i = 0; i < kPoints; ++i) {
        const double step = std::pow(10, -4 + (std::log10(0.3) + 4) * i / (kPoints - 1));
        const int half_life = std::max(1, static_cast<int>(std::lround(std::log(2) / -std::log1p(-step))));
        std::vector<float> v = starts;
        const auto keep = static_cast<float>(1 - step);
        for (int t = 0; t < half_life; ++t) {
            const std::vector<float> before = v;
            for (float& value : v) value *= keep;
            quantize(format, v, v);
            if (v == before) break;  // it will not move any more
        }
        double ratio = 0;
        const double left = std::pow(1 - step, half_life);
        for (std::size_t j = 0; j < v.size(); ++j)
            ratio += static_cast<double>(v[j]) / (static_cast<double>(starts[j]) * left) /
                     static_cast<double>(v.size());
        out.points.push_back({step, ratio});
    }
    return out;
}

}  // namespace

double OptimiserSpec::bits() const {
    const double element = fp8lab::width_bits(find_format(format));
    if (scale == "block128") return element + 32.0 / kScaleBlock;
    return scale == "block128_pow2" ? element + 8.0 / kScaleBlock : element;
}

double Optimiser::error_pct() const {
    const double truth = exact.back();
    return truth > 0 ? 100 * std::fabs(v_end() - truth) / truth : v_end() > 0 ? HUGE_VAL : 0;
}
double Optimiser::step_pct() const { return 100 * (1 - spec.beta2); }
double Optimiser::half_gap_pct() const { return at > 0 ? 100 * (at - below) / 2 / at : 0; }

Optimiser optimiser_of(const OptimiserSpec& spec) {
    Optimiser out;
    out.spec = spec;
    std::tie(out.nearest, out.stochastic) = both(spec, out.exact);
    if (spec.signal == "forget") {
        for (std::size_t i = 0; i < out.exact.size(); ++i)
            out.exact[i] = spec.v0 * std::pow(spec.beta2, static_cast<double>(i));
        std::vector<double> exact;
        for (const std::string_view format : {"bf16", "e4m3", "e5m2"}) {
            OptimiserSpec other = spec;
            other.format = format, other.scale = "one";
            const auto [nearest, stochastic] =
                format == spec.format ? std::pair(out.nearest, out.stochastic) : both(other, exact);
            out.ends.push_back({format, nearest.v.back(), stochastic.v.back()});
        }
    }
    find_neighbours(out);
    return out;
}

const std::vector<Cliff>& cliffs() {
    static const std::vector<Cliff> kCliffs = {cliff_of("bf16"), cliff_of("e4m3"), cliff_of("e5m2")};
    return kCliffs;
}

}  // namespace fp8lab::wide
