#include "core/scaling/hadamard.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kLanes = 64;                     // columns that are transformed at once
using Lanes = std::array<float, kRhtLength * kLanes>;  // element k of lane c at k * kLanes + c

enum class Turn { there, back };

// Lanes 0, ..., n - 1. The order of the sums is part of the definition (hadamard.h).
void transform(Lanes& v, std::size_t n, const RhtSigns& signs, Turn turn) {
    const auto each = [&](auto factor) {
        for (std::size_t k = 0; k < kRhtLength; ++k)
            for (std::size_t c = 0; c < n; ++c) v[k * kLanes + c] *= factor(k);
    };
    if (turn == Turn::there) each([&](std::size_t k) { return signs[k]; });
    for (std::size_t apart = 1; apart < kRhtLength; apart *= 2)
        for (std::size_t k = 0; k < kRhtLength; ++k) {
            if (k & apart) continue;
            float *const low = v.data() + k * kLanes, *const high = low + apart * kLanes;
            for (std::size_t c = 0; c < n; ++c) {
                const float a = low[c], b = high[c];
                low[c] = a + b;
                high[c] = a - b;
            }
        }
    each([](std::size_t) { return 0.25F; });  // exact
    if (turn == Turn::back) each([&](std::size_t k) { return signs[k]; });
}

// Up to kLanes groups of 16 elements at once: element k of group c lies at first + c * across + k * along.
void turn_groups(std::span<const float> in, std::span<float> out, std::size_t first, std::size_t n,
                 std::size_t across, std::size_t along, const RhtSigns& signs, Turn turn) {
    Lanes v;
    for (std::size_t k = 0; k < kRhtLength; ++k)
        for (std::size_t c = 0; c < n; ++c) v[k * kLanes + c] = in[first + c * across + k * along];
    transform(v, n, signs, turn);
    for (std::size_t k = 0; k < kRhtLength; ++k)
        for (std::size_t c = 0; c < n; ++c) out[first + c * across + k * along] = v[k * kLanes + c];
}

void turn_matrix(std::span<const float> in, std::span<float> out, std::size_t rows, std::size_t cols,
                 Along along, const RhtSigns& signs, Turn turn) {
    if (in.size() != rows * cols || out.size() != in.size())
        throw usage_error("rotate", "input and output must both have rows x cols elements");
    const std::size_t extent = along == Along::cols ? cols : rows;
    if (extent % kRhtLength != 0)
        throw usage_error("rotate", std::to_string(extent) + (along == Along::cols ? " columns" : " rows") +
                                        " are not a multiple of 16");
    // Groups lie side by side: in a row one after the other, in 16 rows one per column.
    const bool by_cols = along == Along::cols;
    const std::size_t bands = by_cols ? 1 : rows / kRhtLength, band = by_cols ? in.size() : kRhtLength * cols;
    const std::size_t groups = by_cols ? in.size() / kRhtLength : cols;
    const std::size_t across = by_cols ? kRhtLength : 1, step = by_cols ? 1 : cols;
    const std::size_t packets = (groups + kLanes - 1) / kLanes;
    constexpr std::size_t kGrain = 16;  // packets that are worth a thread
    parallel_for(bands * packets, kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t group = i % packets * kLanes;
            turn_groups(in, out, i / packets * band + group * across, std::min(kLanes, groups - group),
                        across, step, signs, turn);
        }
    });
}

}  // namespace

RhtSigns te_signs() { return {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1}; }

RhtSigns no_signs() {
    RhtSigns signs;
    signs.fill(1);
    return signs;
}

RhtSigns drawn_signs(std::uint64_t seed) {
    const std::uint32_t drawn = random_bits(seed, 0, 0);
    RhtSigns signs;
    for (std::size_t k = 0; k < kRhtLength; ++k) signs[k] = (drawn >> k & 1) != 0 ? -1.0F : 1.0F;
    return signs;
}

void rotate(std::span<const float> in, std::span<float> out, std::size_t rows, std::size_t cols, Along along,
            const RhtSigns& signs) {
    turn_matrix(in, out, rows, cols, along, signs, Turn::there);
}

void rotate_back(std::span<const float> in, std::span<float> out, std::size_t rows, std::size_t cols,
                 Along along, const RhtSigns& signs) {
    turn_matrix(in, out, rows, cols, along, signs, Turn::back);
}

}  // namespace fp8lab
