#include "core/convert/parts.h"

#include <algorithm>
#include <array>

namespace fp8lab {
namespace {

constexpr std::string_view kWeight = ".weight";

struct Rule {
    std::string_view part;
    bool anywhere;  // in the name of the module; else that is its last part
    std::string_view why;
};
constexpr std::array kStays = {
    Rule{"embed", true, "embedding"},
    Rule{"relative_attention_bias", true, "embedding"},
    Rule{"wte", false, "embedding"},
    Rule{"wpe", false, "embedding"},
    Rule{"shared", false, "embedding"},
    Rule{"lm_head", false, "head"},
    Rule{"score", false, "head"},
    Rule{"classifier", false, "head"},
    Rule{"router", true, "router"},
    Rule{"gate", false, "router"},
    Rule{"shared_expert_gate", false, "router"},
};
// Of a whole model, in Meta's files.
constexpr std::array<std::string_view, 2> kHeads = {"output.weight", "head.weight"};

// As vLLM fuses them: packed_modules_mapping of its models.
constexpr std::array<std::array<std::string_view, 3>, 5> kFused = {{
    {"q_proj", "k_proj", "v_proj"},
    {"gate_proj", "up_proj", ""},
    {"w1", "w3", ""},
    {"wq", "wk", "wv"},
    {"query", "key", "value"},
}};

std::string_view last_part(std::string_view module) { return module.substr(module.rfind('.') + 1); }

}  // namespace

std::string module_of(std::string_view weight) {
    if (weight.ends_with(kWeight)) weight.remove_suffix(kWeight.size());
    return std::string(weight);
}

std::string weight_name(const StoredTensor& tensor) {
    std::string name = tensor.name;
    const auto without = [&](std::string_view ending) {
        if (!name.ends_with(ending)) return false;
        name.resize(name.size() - ending.size());
        return true;
    };
    if (!tensor.scales) return name;
    const std::string_view layout = tensor.scales->layout;
    if (layout == "compressed-tensors") without("_packed");
    if (layout == "gpt-oss" && !without("_blocks")) without(".blocks");
    if (layout == "torchao" && without("_qdata"))
        if (const std::size_t at = name.rfind("._"); at != name.npos) name.erase(at + 1, 1);
    return name;
}

std::string_view stays_because(std::string_view weight, std::span<const std::size_t> shape) {
    if (shape.size() < 2) return "vector";
    const std::string module = module_of(weight);
    const auto rule = std::ranges::find_if(kStays, [&](const Rule& each) {
        return each.anywhere ? module.find(each.part) != module.npos : last_part(module) == each.part;
    });
    if (rule != kStays.end()) return rule->why;
    if (std::ranges::find(kHeads, weight) != kHeads.end()) return "head";
    if (shape.size() > 2) return "more than two dimensions";
    if (!weight.ends_with(kWeight)) return "not called .weight";
    return shape[0] == 0 || shape[1] == 0 ? "empty" : "";
}

std::string fused_group(std::string_view weight) {
    const std::string module = module_of(weight);
    const std::string_view last = last_part(module);
    for (const auto& group : kFused)
        if (std::ranges::find(group, last) != group.end())
            return module.substr(0, module.size() - last.size()).append(group[0]);
    return {};
}

}  // namespace fp8lab
