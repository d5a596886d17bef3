// One cast of L12 and its numbers; a matrix and the same matrix rotated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/block_scales.h"
#include "core/scaling/hadamard.h"
#include "core/scaling/quantizer.h"
#include "core/tensors/tensor.h"

namespace fp8lab::four {

// The settings of a cast. The rotation comes before it. MXFP4 has 1x32 and target 6 only.
struct Way {
    bool nvfp4 = true, square = false, stochastic = false;
    Nvfp4Target target = Nvfp4Target::six;
    bool operator==(const Way&) const = default;
};
CastPlan plan_of(const Way& way);

// Compares x with q, its values after the cast. NaN: no signal.
struct Numbers {
    double sqnr_db = 0;   // 10 log10(sum x^2 / sum (x - q)^2)
    double zero_pct = 0;  // elements that are not 0 and became 0, of all
    double gain_pct = 0;  // 100 (<x, q> / <x, x> - 1)
};
Numbers compare(std::span<const float> x, std::span<const float> q);
// What they are made of, of any part of x.
struct Sums {
    double signal = 0, noise = 0, product = 0, zeros = 0;
    void add(double x, double q) {
        signal += x * x;
        noise += (x - q) * (x - q);
        product += x * q;
        zeros += x != 0 && q == 0;
    }
};
Numbers numbers_of(std::span<const Sums> parts, std::size_t elements);

// A cast, block by block; the blocks in the order of `grid`.
struct BlockCast {
    std::vector<float> back;  // in the layout of the input
    Numbers numbers;
    double clip_pct = 0;  // blocks with an element above 6 units
    BlockGrid grid;
    float tensor_amax = 0, tensor_scale = 1;
    std::vector<float> amaxes, units;   // unit: what E2M1's 1 stands for; 0: the block is 0
    std::vector<std::uint8_t> codes;    // of the scale: E4M3, of MXFP4 E8M0
    std::vector<std::uint8_t> targets;  // 6 or 4
    std::size_t block_of(std::size_t row, std::size_t col) const {
        return row / grid.height * grid.across + col / grid.width;
    }
    // Above 6 units; what the rounding of the division leaves over 6 does not count.
    bool clips(float x, std::size_t block) const;
};
// Element (r, c) takes number r * cols + c of the stream (seed, stream).
BlockCast cast_blocks(const Way& way, const Tensor& x, std::uint64_t seed, std::uint64_t stream);
// The numbers alone, of rounding to nearest.
Numbers cast_numbers(const Way& way, const Tensor& x);

// Rows padded with zeros to a multiple of 16 columns, then rotated; the padding stays.
Tensor rotated(const Tensor& x, const RhtSigns& signs);
// The inverse, without the padding: `cols` columns.
std::vector<float> rotated_back(std::span<const float> y, std::size_t rows, std::size_t cols,
                                const RhtSigns& signs);

// Both copies of a weight W = N(0, 0.05^2), (256, 256): the one of fprop, whose blocks run along columns, and
// the one of dgrad, whose blocks run along rows.
struct Copies {
    double differ_pct = 0;  // elements that are not the same number in both
    double apart_db = 0;    // SQNR of one against the other; infinite: equal
    double sqnr_db = 0;     // of the copy of fprop
};
Tensor weights_of(int seed);  // W: 256 x 256, N(0, 0.05^2)
Copies weight_copies(const Way& way, const Tensor& w);

// SQNR of dW = dy^T x over 4096 tokens, (64, 64); dy is log-normal from token to token. Blocks run along the
// tokens, and so does the rotation.
struct WeightGradient {
    double plain_db = 0, both_db = 0, one_db = 0;  // one: only dy is rotated
};
WeightGradient weight_gradient(int seed, const RhtSigns& signs);

}  // namespace fp8lab::four
