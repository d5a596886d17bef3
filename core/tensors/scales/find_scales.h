// Finds out what each tensor of a model is, by the rules of layouts.h and scale_grid.h.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/files/random_file.h"
#include "core/tensors/safetensors.h"
#include "core/tensors/scales/quantization_config.h"
#include "core/tensors/scales/stored_tensor.h"

namespace fp8lab {

struct Model {
    std::span<StoredTensor> tensors;  // by name; role and element as from_dtype() set them
    const std::vector<RandomFile>& files;
    std::span<const std::map<std::string, std::string>> metadata;  // of each file of these tensors
    const QuantizationConfig* config = nullptr;                    // null: none
    // A tensor of another file of the model, which files[] then has; null: none has it.
    std::function<const StoredTensor*(const std::string&)> elsewhere = {};
};

// Whether a tensor of that dtype may hold codes: a float of 8 bits or fewer, or bytes.
bool may_be_codes(std::string_view dtype);
// The tensor with what its dtype alone says of it. `file`: of TensorStore::files().
StoredTensor from_safetensors(const std::string& name, const SafeTensorInfo& info, std::size_t file);

// Sets role, element, shape, scales, why and note of every tensor. Reads global scales and zero points, nothing else.
// What does not fit refuses its tensor only. Throws as RandomFile::read().
void find_scales(const Model& model);

}  // namespace fp8lab
