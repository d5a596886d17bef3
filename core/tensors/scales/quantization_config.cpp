#include "core/tensors/scales/quantization_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;
using Block = std::array<std::size_t, 2>;

constexpr Block kTensor = {0, 0}, kRow = {1, 0};

const Json* member(const Json& node, const char* name) {
    if (!node.is_object()) return nullptr;
    const auto found = node.find(name);
    return found == node.end() || found->is_null() ? nullptr : &*found;
}
const Json* object_in(const Json& node, const char* name) {
    const Json* const found = member(node, name);
    return found && found->is_object() ? found : nullptr;
}
std::string text_in(const Json& node, const char* name) {
    const Json* const found = member(node, name);
    return found && found->is_string() ? found->get<std::string>() : std::string();
}
std::size_t size_of(const Json* node) {
    constexpr std::size_t kMost = std::size_t{1} << 24;  // products of three are sizes
    if (!node || !node->is_number_unsigned()) return 0;
    const auto size = node->get<std::size_t>();
    return size <= kMost ? size : 0;
}
std::size_t size_in(const Json& node, const char* name) { return size_of(member(node, name)); }

std::optional<Block> block_in(const Json& node, const char* name) {
    const Json* const found = member(node, name);
    if (!found || !found->is_array() || found->size() != 2) return std::nullopt;
    const Block block = {size_of(&(*found)[0]), size_of(&(*found)[1])};
    return block[0] > 0 && block[1] > 0 ? std::optional(block) : std::nullopt;
}

// compressed-tensors: QuantizationArgs of a group's weights.
WeightScheme scheme_of_group(const Json& weights) {
    WeightScheme out;
    if (const std::size_t bits = size_in(weights, "num_bits")) out.bits = static_cast<int>(bits);
    const std::string strategy = text_in(weights, "strategy");
    const std::size_t group = size_in(weights, "group_size");
    if (strategy == "tensor") out.block = kTensor;
    if (strategy == "channel") out.block = kRow;
    if ((strategy == "group" || strategy == "tensor_group") && group > 0) out.block = Block{1, group};
    if (strategy == "block") out.block = block_in(weights, "block_structure");
    return out;
}

// ModelOpt's quant_algo, and quant_method where it says all.
struct Named {
    std::string_view name;
    WeightScheme scheme;
};
const std::array kNamed = {
    Named{"FP8", {8, kTensor}},
    Named{"FP8_PER_CHANNEL_PER_TOKEN", {8, kRow}},
    Named{"FP8_PB_WO", {8, Block{128, 128}}},
    Named{"NVFP4", {4, Block{1, 16}}},
    Named{"W4A16_NVFP4", {4, Block{1, 16}}},
    Named{"MXFP8", {8, Block{1, 32}}},
    Named{"mxfp4", {4, Block{1, 32}}},
};

void read_method(const Json& quantization, QuantizationConfig& out) {
    out.method = text_in(quantization, "quant_method");
    const Json* const inner = object_in(quantization, "quantization");
    const std::string algo = text_in(inner ? *inner : quantization, "quant_algo");
    if (!algo.empty()) out.method = algo;
    const auto named = std::ranges::find(kNamed, out.method, &Named::name);
    if (named != kNamed.end()) out.schemes.push_back(named->scheme);
    if (out.method == "fp8") out.schemes.push_back({8, block_in(quantization, "weight_block_size")});
    const Json* const groups = object_in(quantization, "config_groups");
    if (!groups) return;
    for (const Json& group : *groups)
        if (const Json* const weights = object_in(group, "weights"))
            out.schemes.push_back(scheme_of_group(*weights));
}

void read_heads(const Json& config, QuantizationConfig& out) {
    const Json* const text = object_in(config, "text_config");
    const Json& model = text ? *text : config;
    const auto size = [&](const char* name, const char* other) {
        const std::size_t found = size_in(model, name);
        return found > 0 ? found : size_in(model, other);
    };
    out.heads = size("num_attention_heads", "n_head");
    out.kv_heads = size("num_key_value_heads", "num_kv_heads");
    if (out.kv_heads == 0) out.kv_heads = out.heads;
    out.head_dim = size_in(model, "head_dim");
    if (out.head_dim == 0 && out.heads > 0) out.head_dim = size("hidden_size", "n_embd") / out.heads;
    out.intermediate = size_in(model, "intermediate_size");
}

}  // namespace

std::vector<std::size_t> QuantizationConfig::parts_of(std::size_t rows, std::size_t scales) const {
    std::vector<std::size_t> out;
    if (scales == 3) out = {heads * head_dim, kv_heads * head_dim, kv_heads * head_dim};
    if (scales == 2) out = {intermediate, intermediate};
    std::size_t sum = 0;
    for (const std::size_t part : out) sum += part;
    if (sum != rows || std::ranges::find(out, std::size_t{0}) != out.end()) out.clear();
    return out;
}

std::string QuantizationConfig::words() const {
    std::vector<std::string> all;
    for (const WeightScheme& scheme : schemes) {
        std::vector<std::string> parts;
        if (scheme.bits) parts.push_back(fmt::format("{} bits", *scheme.bits));
        if (scheme.block)
            parts.push_back(*scheme.block == kTensor ? "one scale"
                            : *scheme.block == kRow  ? "one scale per row"
                                                    : fmt::format("one scale per {} x {}", (*scheme.block)[0],
                                                                  (*scheme.block)[1]));
        if (!parts.empty()) all.push_back(fmt::format("{}", fmt::join(parts, ", ")));
    }
    return fmt::format("{}", fmt::join(all, "; "));
}

QuantizationConfig parse_quantization_config(std::string_view text, const std::string& where) {
    const Json node = parse_json(text, where);
    if (!node.is_object()) throw input_error(where, "is not an object with a model's configuration");
    QuantizationConfig out{.file = std::filesystem::path(where).filename().string()};
    const Json* quantization = object_in(node, "quantization_config");
    if (const Json* const inner = object_in(node, "text_config"); inner && !quantization)
        quantization = object_in(*inner, "quantization_config");
    if (!quantization && object_in(node, "quantization")) quantization = &node;
    if (quantization) read_method(*quantization, out);
    read_heads(node, out);
    return out;
}

std::optional<QuantizationConfig> quantization_config_in(const std::filesystem::path& folder) {
    std::optional<QuantizationConfig> out;
    for (const char* const name : {"config.json", "hf_quant_config.json"}) {
        const std::filesystem::path path = folder / name;
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(path, ignored)) continue;
        QuantizationConfig read = parse_quantization_config(read_text(path), path.string());
        if (!out) {
            out = std::move(read);
        } else if (out->method.empty()) {
            out->file = read.file, out->method = read.method, out->schemes = read.schemes;
        }
        if (!out->method.empty()) break;
    }
    return out;
}

}  // namespace fp8lab
