#include "core/tensors/scales/layouts.h"

#include <algorithm>
#include <array>

namespace fp8lab {
namespace {

constexpr std::array kLayouts = {
    Layout{.id = "torchao", .codes = "_qdata", .scale = "_scale", .global = "_per_tensor_scale"},
    Layout{.id = "compressed-tensors",
           .codes = "_packed",
           .scale = "_scale",
           .global = "_global_scale",
           .divides = true},
    Layout{.id = "gpt-oss", .codes = "_blocks", .scale = "_scales", .in_blocks = true},
    Layout{.id = "gpt-oss", .codes = ".blocks", .scale = ".scales", .in_blocks = true},
    Layout{.id = "hf-fp8", .codes = "", .scale = "_scale_inv"},
    Layout{.id = "scale", .codes = "", .scale = "_scale", .global = "_scale_2"},
    Layout{.id = "comfy", .codes = ".weight", .scale = ".scale_weight"},
    Layout{.id = "ds4", .codes = ".weight", .scale = ".scale", .plain_name = true},
};

struct Aside {
    std::string_view ending, what;
};
constexpr std::array kAsides = {
    Aside{"input_scale", "a scale of activations"},
    Aside{"input_global_scale", "a scale of activations"},
    Aside{"activation_scale", "a scale of activations"},
    Aside{"scale_input", "a scale of activations"},
    Aside{"output_scale", "a scale of outputs"},
    Aside{"q_scale", "a scale of queries"},
    Aside{"k_scale", "a scale of the KV cache"},
    Aside{"v_scale", "a scale of the KV cache"},
    Aside{"kv_scale", "a scale of the KV cache"},
    Aside{"input_amax", "an amax of activations"},
    Aside{"weight_shape", "the shape of packed codes"},
    Aside{"zero_point", "zero points"},
    Aside{"qzeros", "zero points"},
    Aside{"g_idx", "an order of groups"},
    Aside{"absmax", "scales of bitsandbytes"},
    Aside{"quant_map", "a code book"},
    Aside{"comfy_quant", "a note of ComfyUI"},
    Aside{"scaled_fp8", "a note of ComfyUI"},
    Aside{"SCB", "scales of bitsandbytes"},
};
constexpr std::string_view kQuantState = ".quant_state";  // what follows names the format

constexpr std::array<std::string_view, 6> kScaleNames = {
    "weight_scale",        "weight_scale_inv",        "weight_scale_2",
    "weight_global_scale", "weight_per_tensor_scale", "scale_weight"};

constexpr std::array kUnread = {
    Unread{.ending = "qweight",
           .dtype = "I32",
           .scale = "scales",
           .why = "integers in words of 32 bits, as GPTQ and AWQ pack them, are not read"},
    Unread{.ending = "_packed",
           .dtype = "I32",
           .scale = "_scale",
           .why = "integers in words of 32 bits, as compressed-tensors packs them, are not read"},
    Unread{.ending = "",
           .dtype = "U8",
           .beside = ".quant_state",
           .why = "the 4-bit codes of bitsandbytes are not read"},
    Unread{.ending = "", .dtype = "U8", .beside = ".absmax", .why = "the codes of bitsandbytes are not read"},
    Unread{.ending = ".weight",
           .dtype = "I8",
           .beside = ".SCB",
           .why = "the INT8 codes of bitsandbytes are not read"},
};

// The ending is a whole part of the name: "k_scale" ends "attn.k_scale", not "block_scale".
bool ends_with_part(std::string_view name, std::string_view ending) {
    if (!name.ends_with(ending)) return false;
    if (name.size() == ending.size()) return true;
    const char before = name[name.size() - ending.size() - 1];
    return before == '.' || before == '_';
}

}  // namespace

std::string Layout::named(std::string_view codes_name, std::string_view ending) const {
    if (ending.empty() || !codes_name.ends_with(codes) || codes_name.size() == codes.size()) return {};
    return std::string(codes_name.substr(0, codes_name.size() - codes.size())).append(ending);
}

std::string Layout::codes_of(std::string_view scale_name) const {
    if (!scale_name.ends_with(scale) || scale_name.size() == scale.size()) return {};
    return std::string(scale_name.substr(0, scale_name.size() - scale.size())).append(codes);
}

std::span<const Layout> layouts() { return kLayouts; }

std::string_view aside_of(std::string_view name) {
    if (name.find(kQuantState) != name.npos) return "a state of bitsandbytes";
    const auto found =
        std::ranges::find_if(kAsides, [&](const Aside& each) { return ends_with_part(name, each.ending); });
    return found == kAsides.end() ? std::string_view{} : found->what;
}

bool is_scale_name(std::string_view name) {
    return std::ranges::any_of(kScaleNames,
                               [&](std::string_view each) { return ends_with_part(name, each); });
}

std::span<const Unread> unread_layouts() { return kUnread; }

}  // namespace fp8lab
