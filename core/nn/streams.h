// The numbers of Philox streams: one per purpose, layer and step, and none per arm. So all arms have the same
// initial weights, batches and random numbers for stochastic rounding, and a resumed run draws the same
// numbers as a run without interruption.
#pragma once

#include <cstdint>

namespace fp8lab {

enum class Draw : std::uint64_t {
    initial_weights,
    data,
    batch,
    teacher_in,
    teacher_out,
    cast,
    update,
    sample
};

// `detail` (0..15) distinguishes several draws of one layer and step, `micro` (0..4095) the micro-batches of a step. A
// layer has 12 bits.
inline constexpr int kMostMicroBatches = 4096;
constexpr std::uint64_t stream(Draw draw, int layer = 0, int step = 0, unsigned detail = 0, int micro = 0) {
    return static_cast<std::uint64_t>(step) << 32 | static_cast<std::uint64_t>(micro) << 20 |
           static_cast<std::uint64_t>(layer) << 8 | std::uint64_t{detail} << 4 |
           static_cast<std::uint64_t>(draw);
}

}  // namespace fp8lab
