// What a model's configuration says of how its weights are stored: config.json as transformers reads it, or
// hf_quant_config.json as ModelOpt writes it. The tensors themselves decide; this decides only what their shapes leave
// open, and how many rows each part of a fused matrix has.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

// One way in which weights are stored; a model may have several.
struct WeightScheme {
    std::optional<int> bits;  // of a code
    // Rows and columns that share a scale, 0: all of them.
    std::optional<std::array<std::size_t, 2>> block;
    bool operator==(const WeightScheme&) const = default;
};

struct QuantizationConfig {
    std::string file = {};    // "config.json"
    std::string method = {};  // quant_method, or quant_algo of ModelOpt; empty: not quantised, or not said
    std::vector<WeightScheme> schemes = {};
    std::size_t heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;  // 0: not said

    // The rows of q, k and v, or of gate and up, in a fused matrix of that many rows; empty: they do not add up.
    std::vector<std::size_t> parts_of(std::size_t rows, std::size_t scales) const;
    std::string words() const;  // "blocks of 128 x 128", "8 bits, one scale per row"; empty: nothing
};

// Throws input_error(where, ...): not JSON, or not an object. What it says of other things, and members of a wrong
// type, are passed over: such files have many authors.
QuantizationConfig parse_quantization_config(std::string_view text, const std::string& where);

// Of the folder: config.json, and where that names no method, hf_quant_config.json. None: neither is there. Throws
// input_error for one that cannot be read.
std::optional<QuantizationConfig> quantization_config_in(const std::filesystem::path& folder);

}  // namespace fp8lab
