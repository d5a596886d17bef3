// The layouts that a checkpoint is converted to: names of a matrix's tensors, and the block of config.json.
//
//   --to           tensors of x.weight                         quantization_config
//   e4m3-block128  weight, weight_scale_inv                    quant_method fp8
//   e4m3-row       weight, weight_scale (N, 1)                 float-quantized, activations dynamic per token
//   mxfp8          weight, weight_scale U8                     mxfp8-quantized, activations dynamic
//   nvfp4          weight_packed, _scale, _global_scale (1)    nvfp4-pack-quantized, weights only
//   mxfp4          weight_packed, weight_scale U8              mxfp4-pack-quantized, weights only
//   bf16           weight                                      none
// All but the first and the last have quant_method compressed-tensors.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/code_layouts.h"

namespace fp8lab {

struct ConvertTarget {
    std::string_view name;
    std::string_view codes, scale, global;  // endings behind "x.weight"
    std::string_view format;                // of compressed-tensors; empty: another quant_method
    bool has_codes() const { return !scale.empty(); }
    const CodeLayout& layout() const { return find_code_layout(name); }
};
std::span<const ConvertTarget> convert_targets();
// Throws usage_error("--to", ...) with the names.
const ConvertTarget& find_convert_target(std::string_view name);

// quantization_config; null for bf16. `ignored`: modules that are not quantised.
nlohmann::json quantization_block(const ConvertTarget& target, const std::vector<std::string>& ignored);

}  // namespace fp8lab
