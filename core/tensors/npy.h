// NumPy's .npy, versions 1-3, the float types only: <f2 <f4 <f8, C or Fortran order, header up to 1 MiB.
// Format: numpy/lib/format.py (NEP 1).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fp8lab {

struct NpyArray {
    std::string dtype;               // "<f4"
    std::vector<std::size_t> shape;  // () for a scalar
    std::vector<float> values;       // C order; <f8 rounded to nearest even
    std::size_t size() const { return values.size(); }
};

// Throw input_error naming path, byte offset or dtype: not an .npy, header too large or malformed,
// big-endian, object, complex or integer dtype, truncated or oversized payload.
NpyArray read_npy(const std::filesystem::path& path);
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& where);

std::vector<std::byte> to_npy(std::span<const float> values, std::span<const std::size_t> shape);

}  // namespace fp8lab
