#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/python/cast_code.h"
#include "core/python/torchao_layers.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab::python {
namespace {

// x and dy of wgrad, where they stay in the layer's type.
bool wide_wgrad(const Recipe& recipe) {
    const FormatInfo* format = recipe.inputs[static_cast<std::size_t>(Gemm::wgrad)].format;
    return format && format->name == layer_format(recipe);
}

void express_mx(Recipe& rest) {
    if (wide_wgrad(rest)) rest.inputs[static_cast<std::size_t>(Gemm::wgrad)] = {};
    if (rest.mx_rule == MxRule::floor) rest.mx_rule = MxRule::up;
}

std::string mx_settings(const Recipe& recipe) {
    return fmt::format("mode = ScaleCalculationMode.{}  # of the scales\n",
                       recipe.mx_rule == MxRule::floor ? "FLOOR" : "RCEIL");
}

std::string mx_casts(const Recipe& recipe) {
    std::string out;
    for (const CastGroup& group : cast_groups(recipe))
        if (group.cast.plan.granularity == Granularity::block32 && group.cast.plan.scaled)
            out += fmt::format(
                R"(def {}(x):
    """What torchao's layer does with an operand whose last dimension is K."""
    tensor = MXTensor.to_mx(x, torch.float8_e4m3fn, 32, mode, KernelPreference.EMULATED)
    return tensor.qdata.float(), tensor.scale.float()


)",
                group.name);
    return out;
}

std::string mx_layer(const Recipe& recipe) {
    return fmt::format(R"(def layer(device="cpu"):
    """On a CPU torchao multiplies the operands after they came back to the layer's type."""
    kernels = KernelPreference.EMULATED if device == "cpu" else KernelPreference.AUTO
    return MXFP8Linear(64, 32, device=device, dtype={}, kernel_preference=kernels, scale_calculation_mode=mode,
                       wgrad_with_hp={})
)",
                       layer_dtype(recipe), wide_wgrad(recipe) ? "True" : "False");
}

constexpr std::string_view kMxImports =
    R"(from torchao.prototype.moe_training.mxfp8_linear import MXFP8Linear
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.quantization.quantize_.common.kernel_preference import KernelPreference
)";

// The signs of Transformer Engine (te_signs()): torchao leaves them to the caller.
constexpr std::string_view kNvfp4Layer = R"(class Linear(torch.nn.Linear):
    """In place of torch.nn.Linear. Both features, and the rows of x, are multiples of 128."""

    def forward(self, x):
        return nvfp4_linear(x, self.weight, self.bias, sign_vector=SIGNS)


def layer(device="cuda"):
    return Linear(1024, 1024, device=device, dtype=torch.bfloat16)
)";

constexpr std::string_view kBlock128Layer = R"(def layer(device="cuda"):
    """Both features are multiples of 128, and there is no bias. torchao imports triton here."""
    from torchao.prototype.blockwise_fp8_training.linear import Float8BlockwiseLinear
    plain = torch.nn.Linear(1024, 1024, bias=False, device=device, dtype=torch.bfloat16)
    return Float8BlockwiseLinear.from_float(plain)
)";

// A layer for scales of blocks: the recipe that it is, and which options it has besides.
struct BlockLayer {
    Granularity granularity;
    std::string_view recipe, takes;
    void (*express)(Recipe& rest);  // takes from `rest` what the layer says
    AoLayer (*parts)(const Recipe&);
};
const std::array kLayers = {
    BlockLayer{
        Granularity::block32, "mxfp8", "with mxrule=floor, wgrad_in=bf16 and out=fp32 as its options",
        express_mx,
        [](const Recipe& recipe) {
            return AoLayer{std::string(kMxImports), mx_settings(recipe), mx_casts(recipe), mx_layer(recipe)};
        }},
    BlockLayer{
        Granularity::block16, "nvfp4-te:rht=bf16", "in BF16 outside the products", [](Recipe&) {},
        [](const Recipe&) {
            return AoLayer{
                "from torchao.prototype.moe_training.nvfp4_training.nvfp4_linear import nvfp4_linear\n",
                "SIGNS = (1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1)  # Transformer "
                "Engine's\n",
                {},
                std::string(kNvfp4Layer)};
        }},
    BlockLayer{Granularity::block128, "block128:pow2=0", "in BF16 outside the products", [](Recipe&) {},
               [](const Recipe&) {
                   return AoLayer{{}, {}, {}, std::string(kBlock128Layer)};
               }},
};

const BlockLayer& layer_of(const Recipe& recipe) {
    return *std::ranges::find(kLayers, recipe.granularity, &BlockLayer::granularity);
}

}  // namespace

std::string block_layer_refusal(const Recipe& recipe) {
    const BlockLayer& layer = layer_of(recipe);
    Recipe rest = recipe;
    layer.express(rest);
    // Only a layer that computes on a CPU takes FP32: the kernels of the others read BF16.
    const bool fits = layer.granularity == Granularity::block32 || recipe.out == OutType::bf16;
    rest = without_types(rest);
    if (fits && recipe_text(rest) == layer.recipe) return {};
    return fmt::format("of the recipes with such blocks it has {}, {}", layer.recipe, layer.takes);
}

AoLayer block_layer(const Recipe& recipe) { return layer_of(recipe).parts(recipe); }

}  // namespace fp8lab::python
