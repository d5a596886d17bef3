// What AdamW keeps between two updates in 16 or 8 bits. An update reads what is kept as FP32 numbers and computes the new
// moments and weights in FP32; then they are rounded to what is kept, which is what the next update reads. So rounding is
// all that is modelled: on the CPU kept values stay FP32 numbers on the grid of their format.
//
// Where it is from: FP8-LM (arXiv 2310.18313), Fishman et al. (2409.12517), COAT (2410.19313), whose expansion of the range
// is not modelled. Transformer Engine's FusedAdam keeps moments in BF16, or E4M3 with one scale per tensor; in FP16 too, with
// a scale that ours does not have.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/scaling/quantizer.h"

namespace fp8lab {

// How m, v and weights that GEMMs read are rounded; nullopt: they are kept in FP32. 16 bits have no scale, and overflow gives
// Inf. 8 bits saturate under FP32 scales max / amax (1 where the amax is 0 or not finite), one per 128 values of the
// flattened matrix, of which the last may be fewer, or one for all (Recipe::moment_block).
struct MomentStorage {
    std::optional<CastPlan> m, v, weights;  // weights: master=bf16
};
MomentStorage moment_storage(const Recipe& recipe);

// Rounds the values in place. Element i of a stochastic cast uses random_bits(seed, stream, i). Returns how many values that
// were not 0 became 0; without `count` it does not count them, and returns 0.
std::int64_t store(const std::optional<CastPlan>& how, std::span<float> values, std::uint64_t seed,
                   std::uint64_t stream, bool count = false);

// A moment in E4M3 or E5M2 with a scale for each 128 values, as a GPU has it in memory: 1 + 4 / 128 bytes a value.
inline constexpr std::size_t kMomentGroup = 128;
struct MomentCodes {
    std::vector<std::uint8_t> codes;  // one per value
    std::vector<float> scale_inv;     // one per group: what a code is multiplied by
};
// What store() has left, under either rounding, comes back from moment_values() to the bit: a checkpoint has the values alone.
// A group of other values is rounded to nearest as store() does.
MomentCodes moment_codes(const FormatInfo& format, std::span<const float> values);
std::vector<float> moment_values(const FormatInfo& format, const MomentCodes& codes);

}  // namespace fp8lab
