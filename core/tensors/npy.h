// NumPy's .npy, versions 1-3. Values are read of the float types <f2 <f4 <f8, C or Fortran order, header up to 1 MiB.
// Format: numpy/lib/format.py (NEP 1).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fp8lab {

// What a header says. Every dtype of one character and a size is indexed; only the float types can be read.
struct NpyIndex {
    std::string dtype;               // "<f4", "|u1"
    std::vector<std::size_t> shape;  // () for a scalar
    bool fortran_order = false;
    std::size_t begin = 0, end = 0;  // bytes of the data
};
// Reads only the header. Throws as parse_npy(), but for a dtype of integers, booleans or other floats.
NpyIndex index_npy(std::span<const std::byte> bytes, const std::string& where);
// The values of an array in Fortran order (first index fastest) in C order.
std::vector<float> to_c_order(const std::vector<float>& values, const std::vector<std::size_t>& shape);

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
