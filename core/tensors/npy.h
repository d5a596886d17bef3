// NumPy's .npy, versions 1-3. Values are read of the float types f2 f4 f8 in either order of bytes (< little-endian, >
// big-endian), C or Fortran order, header up to 1 MiB.
// Format: numpy/lib/format.py (NEP 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/files/random_file.h"

namespace fp8lab {

// What a header says. Every dtype of one character and a size is indexed; only the float types can be read.
struct NpyIndex {
    std::string dtype;               // "<f4", "|u1"
    std::vector<std::size_t> shape;  // () for a scalar
    bool fortran_order = false;
    std::uint64_t begin = 0, end = 0;  // bytes of the data
};
// Bytes up to the data, or a few more, from the first kNpyPrefix bytes.
inline constexpr std::size_t kNpyPrefix = 12;
std::size_t npy_head_size(std::span<const std::byte> head);
// Reads the header of a file of that size from its first bytes. Throws as parse_npy(), except for a dtype of
// integers, booleans or other floats, which other members of an archive may have.
NpyIndex index_npy(std::span<const std::byte> head, std::uint64_t size, const std::string& where);
// Reads only the header. Throws as parse_npy().
NpyIndex index_npy(const RandomFile& file);
// How many bytes the file has that begins with these, as its header says; more than there are where it takes so many to
// say (SizeByHead). Throws as parse_npy().
std::uint64_t npy_size(std::span<const std::byte> head, const std::string& where);
// Reverses the bytes of every element: of a big-endian array.
void swap_bytes(std::span<std::byte> bytes, std::size_t width);
// Returns the values of an array in Fortran order (first index fastest) in C order.
std::vector<float> to_c_order(const std::vector<float>& values, const std::vector<std::size_t>& shape);

struct NpyArray {
    std::string dtype;               // "<f4"
    std::vector<std::size_t> shape;  // () for a scalar
    std::vector<float> values;       // C order; <f8 rounded to nearest even
    std::size_t size() const { return values.size(); }
};

// Throw input_error naming path, byte offset or dtype: not an .npy, header too large or malformed,
// object, complex or integer dtype, truncated or oversized payload; and Error{failed} where there is not
// the memory. read_npy() looks at the header before it reads the values.
NpyArray read_npy(const std::filesystem::path& path);
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& where);

std::vector<std::byte> to_npy(std::span<const float> values, std::span<const std::size_t> shape);

}  // namespace fp8lab
