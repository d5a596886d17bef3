// A tensor of a file: where it is, what it is, and how its bytes become values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensors/file.h"
#include "core/tensors/npz.h"
#include "core/tensors/scales/scale_grid.h"

namespace fp8lab {

// values: numbers, codes with their scales included. unscaled: codes for which no scale is found; they are read as values
// only where that is asked for. scale, aside: of other tensors; never judged. refused: known, and not read. other: no
// float.
enum class TensorRole { values, unscaled, scale, aside, refused, other };

// Where the scales of codes are.
struct StoredScales {
    std::string name;          // of their tensor
    std::string_view layout;   // layouts.h
    std::string_view element;  // decode_stored()'s dtype
    std::size_t file = 0;      // of TensorStore::files()
    std::uint64_t begin = 0;   // byte
    std::size_t count = 0;
    ScaleGrid grid = {};
    std::optional<GlobalScale> global = {};
};

struct StoredTensor {
    std::string name;                  // as the file has it; of an .npy the file's name without its extension
    std::size_t prefix = 0;            // of a list of files: so many characters of the name are the file's
    std::string dtype;                 // as the file spells it: "F8_E4M3", "<f4"
    std::vector<std::size_t> shape;    // of the values; () for a scalar. Two FP4 codes in a byte are two
    std::size_t file = 0;              // of TensorStore::files()
    std::uint64_t begin = 0, end = 0;  // bytes of that file, or of the unpacked member
    PackedMember packed = {};          // of a compressed archive
    bool fortran_order = false, big_endian = false;
    std::string_view element = {};  // decode_stored()'s dtype of its elements; empty: they are not read
    TensorRole role = TensorRole::other;
    std::string why = {};  // of one that is not values: what it is, or why it is not read
    bool is_broken =
        false;  // of a refused one: the file contradicts itself, rather than that its layout is not known
    std::string note = {};  // of values: what is odd about their scales, for stderr; empty: nothing
    std::optional<StoredScales> scales = {};  // values are codes times these

    std::string_view own_name() const { return std::string_view(name).substr(prefix); }
    MatrixShape matrix() const { return as_matrix(shape); }
    std::uint64_t values() const;  // 0 where a dtype is not known and the shape overflows
    bool is_float() const { return !element.empty(); }  // its elements can be read
    // Whether casts are judged on it. `unscaled`: codes without a scale are taken as values.
    bool is_judged(bool unscaled) const {
        return role == TensorRole::values || (unscaled && role == TensorRole::unscaled);
    }
    // "w_scale_inv, one scale per 128 x 128", or "none found" of codes that have none; empty: it needs none.
    std::string scale_words() const;
};

}  // namespace fp8lab
