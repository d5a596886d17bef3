// Sizes that the kernels (kernels/device/launch.h) and the list of what they allocate (memory_plan.h) share.
#pragma once

#include <cstdint>

namespace fp8lab::cuda {

constexpr int kHistoryCapacity = 4096;  // the longest amax history of a recipe
constexpr int kStepsPerLaunch = 8;
constexpr int kInputSlots = 4 * kStepsPerLaunch;  // batches in the trainer's ring, where they change
constexpr int kRecordSlots = 1024;                // steps whose records the device keeps for the host
constexpr int kMostFusedBatch = 64;               // up to here dW is multiplied inside the optimiser's kernel

constexpr int padded(int n) { return (n + 15) / 16 * 16; }

// How many scales a tensor has. Where it has many, the payload and its transpose have
// scales of their own, each along K of the GEMM that reads it:
//   row        one per row of the payload
//   block128   one for 1x128 elements of a row of the payload
//   square128  one for 128x128 elements, the same for both
//   block32    one power of two (E8M0) for 1x32 elements of a row of the payload
// A partial last block has its own scale. Scales come from the amax of the elements that share them, NaN
// ignored (in MX a NaN is the scale), as core/scaling/block_scales.h has them.
enum class ScaleMode { none, tensor, row, block128, square128, block32 };  // none: BF16 and FP32
constexpr int kBlock = 128, kMxBlock = 32;
static_assert(kMostFusedBatch <= kBlock);  // there 1x128 scales are one per column
constexpr int blocks_of(int n) { return (n + kBlock - 1) / kBlock; }

// Their scale_inv in device memory, in cuBLASLt's layouts (kernels/gemm/gemm.h): of a payload of m rows, k
// elements each, padded,
//   row (m), block128 (blocks_of(k), m), square128 (blocks_of(m), blocks_of(k) rounded up to 4), block32
//   (blocks_of(m), blocks_of(k)) tiles of 512 bytes: 128 FP32 each.
constexpr int scale_inv_count(ScaleMode scaling, int m, int k) {
    return scaling == ScaleMode::row         ? m
           : scaling == ScaleMode::block128  ? blocks_of(k) * m
           : scaling == ScaleMode::square128 ? blocks_of(m) * ((blocks_of(k) + 3) / 4 * 4)
           : scaling == ScaleMode::block32   ? blocks_of(m) * blocks_of(k) * 128
                                             : 0;
}

constexpr int kTileRows = 64, kTileCols = 128;  // the tile of a thread block
constexpr int tiles_down(int padded_rows) { return (padded_rows + kTileRows - 1) / kTileRows; }
constexpr int tiles_across(int padded_cols) { return (padded_cols + kTileCols - 1) / kTileCols; }

// The kernels of norms whose rows are this wide at most also cast what they give to FP8; the forward one casts to BF16 at any
// width (casts_with_norm() of kernels/layers/launch.h). kCastRows such rows fit in the shared memory of a block.
constexpr int kWidestCastNorm = 1024, kCastRows = 32;

// Partial sums of the gradient of a norm's gain, over strips of the rows, and of the sum of the squares of a gradient:
// norm_partials() and square_partials() of kernels/layers/launch.h are these. At most 256 strips: two blocks a
// multiprocessor of the largest GPUs, and few partial sums.
constexpr int rows_of_strip(int rows, int cols) {
    constexpr int kMostStrips = 256;
    const int multiple = cols <= kWidestCastNorm ? kCastRows : 8,
              each = (rows + kMostStrips - 1) / kMostStrips;
    return (each + multiple - 1) / multiple * multiple;
}
constexpr int strips_of(int rows, int cols) {
    const int strip = rows_of_strip(rows, cols);
    return (rows + strip - 1) / strip;
}
constexpr long long kSquaresOfBlock = 256 * 64;

// Bytes of a moment in 8 bits: codes in groups of 128, and an FP32 scale for each.
constexpr std::uint64_t eight_bit_moment_bytes(std::uint64_t n) {
    return (n + 127) / 128 * (128 + sizeof(float));
}

// What ranks compare in a step: the amaxes of at most all casts, of so many in a launch, and whether the arm goes on; behind these
// the rank's own amaxes.
constexpr int kMostRankValues = 192;
constexpr std::size_t rank_values(std::size_t casts) { return 2 * casts + 1; }

// Bytes of the structures of launch.h.
constexpr std::uint64_t kScaleStateBytes = 48, kScaleControlsBytes = 24, kStepInputBytes = 20,
                        kArmStateBytes = 8, kStepResultBytes = 24, kCastSumsBytes = 48,
                        kTensorResultBytes = 72, kLossScaleBytes = 44, kLossScaleResultBytes = 8,
                        kMomentCountsBytes = 16, kMomentResultBytes = 24;

}  // namespace fp8lab::cuda
