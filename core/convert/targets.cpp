#include "core/convert/targets.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;

constexpr std::array kTargets = {
    ConvertTarget{"bf16", "", "", "", ""},
    ConvertTarget{"e4m3-block128", "", "_scale_inv", "", ""},
    ConvertTarget{"e4m3-row", "", "_scale", "", "float-quantized"},
    ConvertTarget{"mxfp8", "", "_scale", "", "mxfp8-quantized"},
    ConvertTarget{"nvfp4", "_packed", "_scale", "_global_scale", "nvfp4-pack-quantized"},
    ConvertTarget{"mxfp4", "_packed", "_scale", "", "mxfp4-pack-quantized"},
};

// QuantizationArgs of compressed-tensors.
Json arguments(int bits, bool dynamic, const char* strategy) {
    return {{"num_bits", bits},
            {"type", "float"},
            {"symmetric", true},
            {"dynamic", dynamic},
            {"strategy", strategy}};
}
Json in_groups(Json arguments, const CodeLayout& layout) {
    arguments["group_size"] = layout.block();
    arguments["scale_dtype"] = layout.scales == "F8_E4M3" ? "torch.float8_e4m3fn" : "torch.uint8";
    return arguments;
}

}  // namespace

std::span<const ConvertTarget> convert_targets() { return kTargets; }

const ConvertTarget& find_convert_target(std::string_view name) {
    const auto found = std::ranges::find(kTargets, name, &ConvertTarget::name);
    if (found == kTargets.end())
        throw unknown_name("--to", "layout", name, kTargets,
                           [](const ConvertTarget& each) { return each.name; });
    return *found;
}

Json quantization_block(const ConvertTarget& target, const std::vector<std::string>& ignored) {
    if (!target.has_codes()) return nullptr;
    if (target.format.empty())
        return {{"quant_method", "fp8"},
                {"fmt", "e4m3"},
                {"activation_scheme", "dynamic"},
                {"weight_block_size", {128, 128}},
                {"modules_to_not_convert", ignored},  // transformers
                {"ignored_layers", ignored}};         // vLLM
    const CodeLayout& layout = target.layout();
    Json weights, inputs;
    if (target.name == "e4m3-row") {
        weights = arguments(8, false, "channel");
        inputs = arguments(8, true, "token");
    } else if (target.name == "mxfp8") {
        weights = in_groups(arguments(8, false, "group"), layout);
        inputs = in_groups(arguments(8, true, "group"), layout);
    } else {
        weights = in_groups(arguments(4, false, layout.has_global ? "tensor_group" : "group"), layout);
    }
    return {{"quant_method", "compressed-tensors"},
            {"format", target.format},
            {"quantization_status", "compressed"},
            {"ignore", ignored},
            {"config_groups",
             {{"group_0",
               {{"targets", {"Linear"}},
                {"weights", weights},
                {"input_activations", inputs},
                {"output_activations", nullptr}}}}}};
}

}  // namespace fp8lab
