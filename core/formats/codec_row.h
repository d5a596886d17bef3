// Internal to core/formats: the numbers that the codec needs for one format, rounding and overflow policy. The
// scalar codec (codec.cpp) and the vector kernels (codec_simd.cpp) use the same row.
#pragma once

#include <cstdint>

#include "core/formats/codec.h"

namespace fp8lab {

// The vector kernels. nearest_narrow is a faster one for the formats that allow it.
enum class Kernel { nearest_narrow, nearest, toward_zero, stochastic, up };

// How sign and magnitude are combined.
enum class SignRule { sign_magnitude, no_negative_zero, twos_complement, none };

// Magnitudes are right-aligned codes without the sign. "float32 pattern" is the 32 bits of a float.
struct CodecRow {
    Rounding rounding = Rounding::nearest;
    Kernel kernel = Kernel::nearest;
    SignRule sign_rule = SignRule::sign_magnitude;
    int magnitude_bits = 0;    // E + M
    int align = 0;             // left shift of the finished code (TF32: 13)
    int discard = 0;           // significand bits that a normal value loses: 23 - M
    int min_exponent = 0;      // float32 exponent field of the smallest normal value
    std::uint32_t rebias = 0;  // float32 pattern to subtract: takes float32's exponent bias to the format's
    std::uint32_t finite_limit = 0;    // the magnitude that a finite value beyond the range becomes
    std::uint32_t infinite_limit = 0;  // the magnitude that Inf becomes
    std::uint32_t nan_code = 0;        // what NaN becomes
    std::uint32_t clamp = 0;           // the float32 pattern of finite_limit, were it a number
    // Decoding. A subnormal is (float of pattern base + magnitude) - offset: the addition of the integers
    // puts the magnitude into the significand of a float whose ulp is the format's smallest step.
    std::uint32_t subnormal_base = 0;
    float subnormal_offset = 0;
    std::uint32_t infinity = 0;         // this magnitude is Inf ...
    std::uint32_t largest_not_nan = 0;  // ... and those above this one are NaN
};

// Throws usage_error when the format does not have this rounding: `up` is E8M0's, which has only up and
// toward_zero.
CodecRow make_row(const FormatInfo& format, Rounding rounding, Overflow overflow);

// One value that has been multiplied by the scale already.
std::uint32_t encode_one(const CodecRow& row, float value, std::uint32_t random_bits);

}  // namespace fp8lab
