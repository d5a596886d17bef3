// The golden data, computed with NVIDIA's host functions (cuda_fp8.h, cuda_fp6.h, cuda_fp4.h): the codes of every
// conversion at the edges of every format, and counts and checksums over all 2^32 float32 inputs. Tests and
// `validate` compare the codec with them (numerics.md 4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/codec.h"

namespace fp8lab {

struct GoldenConversion {
    std::string_view column;  // in the golden files
    std::string_view format;
    Rounding rounding;
    Overflow overflow;
    std::uint64_t checksum;  // over all 2^32 inputs, see golden_hash
};
std::span<const GoldenConversion> golden_conversions();

// The checksum is the sum of golden_hash() modulo 2^64 over all float32 patterns, so it does not depend on the
// order. The hash is splitmix64's finaliser of pattern and code (Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t golden_hash(std::uint32_t pattern, std::uint32_t code) {
    std::uint64_t x = (std::uint64_t{pattern} << 8 | code) + 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

// A golden file: the key of a row is a float32 pattern (edges) or a code (histogram); values[c] belongs to
// columns[c].
struct GoldenTable {
    struct Row {
        std::uint32_t key;
        std::vector<std::uint32_t> values;
    };
    std::vector<std::string> columns;
    std::vector<Row> rows;
};

// Both throw input_error naming file and line.
GoldenTable golden_edges();  // inputs around every value and midpoint, NaN, Inf, zeros, denormals -> codes
GoldenTable golden_histogram();  // how many of the 2^32 inputs become each code

}  // namespace fp8lab
