// Which tensors of a model are cast, and which matrices are fused when the model is loaded. By names: a checkpoint does not
// say what a tensor is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensors/scales/stored_tensor.h"

namespace fp8lab {

// The name of the weight whose codes a tensor holds: "up_proj.weight" of "up_proj.weight_packed", of
// "up_proj._weight_qdata"; of one without scales its own.
std::string weight_name(const StoredTensor& tensor);
// Without ".weight": the module, as lists of what is not quantised name it.
std::string module_of(std::string_view weight);

// Why a tensor of that name stays in BF16: "head"; empty: it is a matrix of a linear layer.
std::string_view stays_because(std::string_view weight, std::span<const std::size_t> shape);

// q, k and v, or gate and up, of one layer have the same text here: vLLM makes one matrix of them. Empty: it is of none.
std::string fused_group(std::string_view weight);

}  // namespace fp8lab
