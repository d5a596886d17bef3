// Four ways to round a number to a format, two of them right; and what happens when the result is added to
// again and again.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/rng.h"
#include "core/formats/format.h"

namespace fp8lab::adding {

// nearest, stochastic: the codec's. integer: what notebooks call stochastic rounding, round(x + U(-1/2, 1/2))
// to whole numbers, not to the format's gap at x. constant: the same noise everywhere, of half the gap
// at 1, then nearest.
enum class Method { nearest, stochastic, integer, constant };
inline constexpr std::array kMethods = {Method::nearest, Method::stochastic, Method::integer,
                                        Method::constant};
std::string_view id_of(Method method);
std::string_view label_of(Method method);
Method parse_method(std::string_view id);

// The two values of the format around x; both are x where x is a value of the format or beyond its range.
struct Neighbours {
    double below = 0, above = 0;
};
Neighbours neighbours(const FormatInfo& format, double x);

class Rounder {
  public:
    Rounder(const FormatInfo& format, Method method, std::uint64_t seed, std::uint64_t stream = 0);
    // The result of the method. Method::integer may return a number that is not a value of the format.
    float round(float x);
    // The value that a tensor of the format stores for such a result: the nearest one.
    float stored(float result) const;

  private:
    const FormatInfo* format_;
    Method method_;
    Rng rng_;
    float limit_, noise_;
};

// start, start + addend, ...: every sum added in FP32 and kept in the format. (terms + 1)
std::vector<double> running_sum(const FormatInfo& format, Method method, float start, float addend, int terms,
                                std::uint64_t seed, std::uint64_t stream = 0);

// The sum at which adding this addend stops under rounding to nearest: the first one that the addend does not change.
// Infinity where that never happens within 2^26 additions. A sum from 0 of 1.0 stops at 2^(M + 1).
double stall_of(const FormatInfo& format, float start, float addend);

// One number rounded many times, at least once.
struct RoundedDraws {
    Method method = Method::nearest;
    int draws = 0;
    std::map<double, int> returned, stored;  // value -> how often
    double mean = 0, deviation = 0;          // of what is stored
    double off_grid_pct = 0;                 // of what is returned
    double standard_error() const;           // of the mean
};
RoundedDraws draw_rounded(const FormatInfo& format, Method method, double x, int draws, std::uint64_t seed);

// A tensor cast once, with the scale that brings its amax to the format's largest value.
struct TensorCast {
    double sqnr_db = 0, off_grid_pct = 0;
};
TensorCast cast_tensor(const FormatInfo& format, Method method, std::span<const float> tensor,
                       std::uint64_t seed);

}  // namespace fp8lab::adding
