// A tensor of the user's own, "FILE[:TENSOR]": .npy, or .safetensors with F64 F32 F16 BF16 F8_E4M3 F8_E5M2
// F8_E8M0.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/tensors/tensor.h"

namespace fp8lab {

// (rows, cols) of a tensor of any rank: the last dimension is cols, all others are rows; () is (1, 1).
struct MatrixShape {
    std::size_t rows = 1, cols = 1;
};
MatrixShape as_matrix(std::span<const std::size_t> shape);

// The file is memory-mapped for the time of the call; only the tensor's own bytes are touched, and its values
// come back as float32 (F64 and <f8 rounded to nearest even). The name may be left out where the file has one
// tensor. A file's name may hold colons itself: the shortest part that is a file counts.
//
// Throws input_error, with byte offset and reason, for a file that cannot be read or is malformed and for a
// tensor without elements; usage_error, listing the file's tensors, for a name that it does not have or that
// is missing.
Tensor read_tensor(std::string_view file_and_tensor);

}  // namespace fp8lab
