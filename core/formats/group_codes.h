// Four-bit codes with an FP32 scale for every group of neighbours along K: INT4 and NF4, in which served models store
// weights. They are no rows of the formats: NF4's levels follow no exponent, and no GEMM reads either of them as it is.
//
//   id         levels                                              a group's amax becomes   group   bits of its scale
//   int4-g32   -8 ... 7                                            7.5                      32      16
//   int4-g128  -8 ... 7                                            7.5                      128     16
//   nf4        16 quantiles of N(0, 1), from -1 to 1, 0 among them   1                        64      32
//
// INT4: symmetric, as compressed-tensors stores it (scale amax / 7.5; counted as 16 bits, computed in FP32). NF4: QLoRA,
// arXiv 2305.14314, appendix E, without its second quantisation of the scales.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fp8lab {

struct GroupCodes {
    std::string_view id;
    std::string_view label;
    std::span<const float> levels;  // ascending; the code is the index
    float largest = 0;              // what the amax of a group becomes
    std::size_t group = 0;          // elements along K that share a scale; the last of a row may be fewer
    int scale_bits = 0;

    // Of `cols` elements along K.
    double bits_per_element(std::size_t cols) const;
};
std::span<const GroupCodes> group_codes();

// The nearest level; the one of an even code of two that are equally near. NaN stays NaN.
float nearest_level(const GroupCodes& codes, float value);
// largest / amax, at most the largest float32; 1 where amax is 0 or not finite.
float group_scale(const GroupCodes& codes, float amax);
// out = nearest_level(in x scale) / scale, the division as a product with 1 / scale; row-major with `cols` along K. The
// spans have one size, a multiple of cols, and may be the same memory.
void cast_in_groups(const GroupCodes& codes, std::span<const float> in, std::span<float> out,
                    std::size_t cols);

}  // namespace fp8lab
