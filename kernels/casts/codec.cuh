// core/formats' codec on the device, driven by the same CodecRow: quantise and dequantise one FP32 value of
// any format.
#pragma once

#include "core/formats/codec_row.h"

namespace fp8lab::cuda {

// What |x| rounds to, as a right-aligned code without its sign; `pattern`: the bits of |x|, finite. See
// round_magnitude() in core/formats/codec.cpp.
__device__ inline std::uint32_t round_magnitude(const CodecRow& row, std::uint32_t pattern,
                                                std::uint32_t random_bits) {
    constexpr std::uint32_t kMantissa = 0x7FFFFF, kImplicitOne = 0x800000, kHalf = 0x80000000;
    if (row.rounding == Rounding::up)
        return (pattern + (pattern < kImplicitOne ? kMantissa / 2 : kMantissa)) >> 23;
    const int exponent = static_cast<int>(pattern >> 23);
    std::uint32_t significand = pattern - row.rebias;
    int shift = row.discard;
    if (exponent < row.min_exponent) {
        significand = (pattern & kMantissa) | (exponent != 0 ? kImplicitOne : 0);
        shift = min(row.discard + row.min_exponent - max(exponent, 1), 63);
    }
    const std::uint64_t steps = (std::uint64_t{significand} << 32) >> shift;
    const auto whole = static_cast<std::uint32_t>(steps >> 32), fraction = static_cast<std::uint32_t>(steps);
    if (row.rounding == Rounding::nearest)
        return whole + (fraction > kHalf || (fraction == kHalf && whole % 2 == 1));
    if (row.rounding == Rounding::stochastic) return whole + (fraction > ~random_bits);
    return whole;
}

__device__ inline float value_of(const CodecRow& row, std::uint32_t magnitude) {
    if (magnitude == row.infinity) return __uint_as_float(0x7F800000);
    if (magnitude > row.largest_not_nan) return __uint_as_float(0x7FC00000);
    if (magnitude >= 1u << (23 - row.discard))
        return __uint_as_float((magnitude << row.discard) + row.rebias);
    return __uint_as_float(row.subnormal_base + magnitude) - row.subnormal_offset;
}

// decode(encode(x)); nan_value: what NaN becomes in this format.
__device__ inline float quantized(const CodecRow& row, float nan_value, float x, std::uint32_t random_bits) {
    const std::uint32_t all = __float_as_uint(x), pattern = all & 0x7FFFFFFFu;
    if (pattern > 0x7F800000u) return nan_value;
    const std::uint32_t magnitude = pattern == 0x7F800000u
                                        ? row.infinite_limit
                                        : min(round_magnitude(row, pattern, random_bits), row.finite_limit);
    const float size = value_of(row, magnitude);
    if (all == pattern || row.sign_rule == SignRule::none) return size;
    return magnitude == 0 && row.sign_rule != SignRule::sign_magnitude ? 0.0F : -size;
}

}  // namespace fp8lab::cuda
