// Reads a tensor of the user, "FILE[:TENSOR]": .npy, .npz, or .safetensors with floats of any size (dtype.h), or the
// .safetensors.index.json of a model in several files; codes times the scales that stand beside them (layouts.h); or .png,
// whose grey values are a tensor (picture.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/files/bounded_file.h"
#include "core/tensors/tensor.h"

namespace fp8lab {

// (rows, cols) of a tensor of any rank: the last dimension is cols, all others are rows; () is (1, 1).
struct MatrixShape {
    std::size_t rows = 1, cols = 1;
};
MatrixShape as_matrix(std::span<const std::size_t> shape);

// Only the header and the bytes of the tensor are read; "-" (stdin) and a pipe, where it may be one,
// as far as the header says. Its values are
// returned as float32 (F64 and <f8 rounded to nearest even) with what exclude() would set to 0. The name may be omitted where the file has one
// tensor. The name of a file may contain colons: the shortest prefix that is a file is taken.
//
// Throws input_error, with byte offset and reason, for a file that cannot be read or is malformed, for a tensor without
// elements, and for codes without a scale unless `unscaled_codes`, which takes them as values; Error{failed} where there is not the memory for it; usage_error, listing the file's tensors,
// for a name that it does not have or that is missing.
Tensor read_tensor(std::string_view file_and_tensor, Pipes pipes = Pipes::refused,
                   bool unscaled_codes = false);

}  // namespace fp8lab
