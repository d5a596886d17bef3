// The layouts that a checkpoint is converted to, a row each: what a matrix's tensors are called, and the block of
// config.json that loaders read.
//
//   --to           tensors of x.weight                                         quantization_config
//   e4m3-block128  x.weight, x.weight_scale_inv                                quant_method fp8 (transformers, vLLM)
//   e4m3-row       x.weight, x.weight_scale (N, 1)                             compressed-tensors, float-quantized; dynamic tokens
//   mxfp8          x.weight, x.weight_scale in U8                              compressed-tensors, mxfp8-quantized
//   nvfp4          x.weight_packed, x.weight_scale, x.weight_global_scale (1)  compressed-tensors, nvfp4-pack-quantized; weights only
//   mxfp4          x.weight_packed, x.weight_scale in U8                       compressed-tensors, mxfp4-pack-quantized; weights only
//   bf16           x.weight                                                    none
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/code_layouts.h"

namespace fp8lab {

struct ConvertTarget {
    std::string_view name, codes, scale, global,
        format;  // endings behind "x.weight"; compressed-tensors' format
    bool has_codes() const { return !scale.empty(); }
    const CodeLayout& layout() const { return find_code_layout(name); }
};
std::span<const ConvertTarget> convert_targets();
// Throws usage_error("--to", ...) with the names.
const ConvertTarget& find_convert_target(std::string_view name);

// quantization_config; null for bf16. `ignored`: modules that are not quantised.
nlohmann::json quantization_block(const ConvertTarget& target, const std::vector<std::string>& ignored);

}  // namespace fp8lab
