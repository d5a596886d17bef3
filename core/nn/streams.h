// Which Philox stream a random number comes from: one per purpose, layer and step, never per arm, so that all
// arms start equal, see the same batches and round with the same dice, and a resumed run draws what the whole
// run would have drawn.
#pragma once

#include <cstdint>

namespace fp8lab {

enum class Draw : std::uint64_t { initial_weights, data, batch, teacher_in, teacher_out, cast, update };

// `detail` (0..15) tells apart the draws of one layer and step.
constexpr std::uint64_t stream(Draw draw, int layer = 0, int step = 0, unsigned detail = 0) {
    return static_cast<std::uint64_t>(step) << 32 | static_cast<std::uint64_t>(layer) << 8 |
           std::uint64_t{detail} << 4 | static_cast<std::uint64_t>(draw);
}

}  // namespace fp8lab
