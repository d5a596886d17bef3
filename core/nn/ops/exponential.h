// An exponential that a loop over FP32 numbers vectorises: no branch, no table, no call. The kernels compile the same
// function, and give the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#ifdef __CUDACC__
#define FP8LAB_ALSO_IN_KERNELS __host__ __device__
#else
#define FP8LAB_ALSO_IN_KERNELS
#endif

namespace fp8lab {

// The relative error of exponential(float) against e^x is at most kExponentialError from kLeastExponent to
// kMostExponent. Below it is 0 (e^x < 2.5e-38, so that no result is subnormal), above it is infinity, and of
// NaN it is NaN.
inline constexpr float kExponentialError = 1e-7F;
inline constexpr float kLeastExponent = -86.6F;
inline constexpr float kMostExponent = 88.72283F;  // the largest number whose e^x is finite in FP32

// e^x = 2^n e^r, n = round(x / ln 2), so that |r| <= ln(2) / 2. n ln 2 is subtracted in two parts, the first
// short enough for an exact product (Cody and Waite, "Software Manual for the Elementary Functions", chapter
// 6). e^r is Taylor's polynomial of degree 7, whose remainder is below 6e-9.
FP8LAB_ALSO_IN_KERNELS inline float exponential(float x) {
    constexpr float kInverseLn2 = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
    constexpr float kRound = 0x1.8p23F;  // adding it leaves the nearest integer in the last bits
    const float shifted = x * kInverseLn2 + kRound, n = shifted - kRound;
    const float r = (x - n * kLn2High) - n * kLn2Low;
    float power = 1.0F / 5040;
    power = power * r + 1.0F / 720;
    power = power * r + 1.0F / 120;
    power = power * r + 1.0F / 24;
    power = power * r + 1.0F / 6;
    power = power * r + 0.5F;
    power = power * r * r + r + 1.0F;
    // 2^(n - 1), and doubled: 2^128 is not a number of FP32.
    const std::uint32_t exponent =
        std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound) + 126U;
    float value = power * std::bit_cast<float>(exponent << 23) * 2.0F;
    value = x < kLeastExponent ? 0.0F : value;
    return x > kMostExponent ? std::numeric_limits<float>::infinity() : value;
}

inline double exponential(double x) { return std::exp(x); }

}  // namespace fp8lab

#undef FP8LAB_ALSO_IN_KERNELS
