// Which tensors of a model are cast, and which are fused when it is loaded: by their names, since a checkpoint says no more.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensors/scales/stored_tensor.h"

namespace fp8lab {

// The weight whose codes a tensor holds: "up_proj.weight" of "up_proj.weight_packed" and of "up_proj._weight_qdata". Of a
// tensor without scales its own name.
std::string weight_name(const StoredTensor& tensor);
// Without ".weight": the module, as lists of what is not quantised name it.
std::string module_of(std::string_view weight);

// Why a tensor of that name stays in BF16: "head"; empty: it is a matrix of a linear layer.
std::string_view stays_because(std::string_view weight, std::span<const std::size_t> shape);

// The same text for q, k and v, or gate and up, of one layer: vLLM makes one matrix of them. Empty: it is of none.
std::string fused_group(std::string_view weight);

}  // namespace fp8lab
