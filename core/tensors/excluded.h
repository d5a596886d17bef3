// Values of a file that no cast is judged on. One rule for every verb and lab: they are counted, named, and then
// treated as 0, so that one of them does not decide the scale and the error of all others.
#pragma once

#include <cstdint>
#include <string>

namespace fp8lab {

// What float32 does not hold of values that are stored in float64, or as codes and scales.
struct Narrowed {
    std::int64_t beyond = 0;  // finite there, above the largest float32: they are read as Inf
    std::int64_t below = 0;   // not 0 there, nearer to 0 than to the smallest float32: they are read as 0
    Narrowed& operator+=(const Narrowed& other);
};

struct Excluded {
    std::int64_t nan = 0, inf = 0;  // in the file; inf without those of `beyond`
    std::int64_t beyond = 0, below = 0;
    std::int64_t not_finite() const { return nan + inf + beyond; }  // as float32
    std::int64_t count() const { return not_finite() + below; }
    Excluded& operator+=(const Excluded& other);
    bool operator==(const Excluded&) const = default;

    std::string words() const;  // "1 NaN, 2 Inf and 1 beyond float32"; empty: none
    std::string note() const;   // ", 1 NaN counts as 0", behind what a tensor is; empty: none
    std::string sentence(std::int64_t n) const;  // "1 NaN among 2,048 values counts as 0"; empty: none
};

}  // namespace fp8lab
