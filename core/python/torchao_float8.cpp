#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/python/cast_code.h"
#include "core/python/torchao_layers.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab::python {
namespace {

// Arguments of Float8LinearConfig, in the order of kOperands. The last three are the first ones where they are not given.
constexpr std::array<std::string_view, 6> kArguments = {"cast_config_input",
                                                        "cast_config_weight",
                                                        "cast_config_grad_output",
                                                        "cast_config_weight_for_grad_input",
                                                        "cast_config_grad_output_for_grad_weight",
                                                        "cast_config_input_for_grad_weight"};

// What Float8LinearConfig.from_recipe_name() has a name for.
struct Named {
    std::string_view recipe, name;
};
constexpr std::array kNamed = {Named{"current", "tensorwise"}, Named{"rowwise:bwd=e4m3:pow2=1", "rowwise"}};

constexpr std::string_view kImports = R"(from torchao.float8 import {}convert_to_float8_training
from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic
from torchao.float8.float8_training_tensor import LinearMMConfig
)";

constexpr std::string_view kCast = R"(def cast(x, *configs):
    """What torchao's layer does with an operand whose last dimension is K; its configs are the same."""
    assert all(one == configs[0] for one in configs)
    rows = configs[0].scaling_granularity is ScalingGranularity.AXISWISE
    tensor = hp_tensor_to_float8_dynamic(
        x, configs[0].target_dtype, LinearMMConfig(), scaling_granularity=configs[0].scaling_granularity,
        axiswise_dim=-1 if rows else None, round_scales_to_power_of_2=config.round_scales_to_power_of_2)
    return tensor._data.float(), 1 / tensor._scale


)";

constexpr std::string_view kLayer = R"(def layer(device="cpu"):
    """A model of one layer. On a CPU torchao multiplies the operands after they came back to the layer's type."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 32, device=device, dtype={}))
    return convert_to_float8_training(model, config=dataclasses.replace(config, emulate=device == "cpu"))
)";

bool is_cast(const CastPlan& plan) { return width_bits(*plan.format) <= 8; }
bool by_row(const CastPlan& plan) { return plan.granularity == Granularity::row; }

std::size_t place_of(const Operand& operand) {
    const auto found = std::ranges::find_if(kOperands, [&](const Operand& one) {
        return one.tensor == operand.tensor && one.gemm == operand.gemm;
    });
    return static_cast<std::size_t>(found - kOperands.begin());
}

// The other product's cast of the same tensor.
std::size_t twin_of(std::size_t operand) {
    const auto found = std::ranges::find_if(kOperands, [&](const Operand& one) {
        return one.tensor == kOperands[operand].tensor && one.gemm != kOperands[operand].gemm;
    });
    return static_cast<std::size_t>(found - kOperands.begin());
}

std::vector<CastPlan> plans_of(const Recipe& recipe) {
    const std::vector<CastGroup> groups = cast_groups(recipe);
    std::vector<CastPlan> out;
    for (const Operand& operand : kOperands) out.push_back(group_of(groups, operand).cast.plan);
    return out;
}

// torchao holds both casts of a tensor to one dtype, also where one of them is off.
std::string cast_config(const std::vector<CastPlan>& plans, std::size_t operand) {
    const CastPlan& plan = plans[operand];
    const CastPlan& typed = is_cast(plan) ? plan : plans[twin_of(operand)];
    return fmt::format("CastConfig({}target_dtype=torch.float8_{})",
                       !is_cast(plan) ? "scaling_type=ScalingType.DISABLED, "
                       : by_row(plan) ? "scaling_granularity=ScalingGranularity.AXISWISE, "
                                      : "",
                       typed.format->name == "e5m2" ? "e5m2" : "e4m3fn");
}

std::string gemm_configs(FastAccum fast) {
    switch (fast) {
        case FastAccum::fprop:
            return {};  // the default
        case FastAccum::none:
            return "    gemm_config_output=Float8GemmConfig(use_fast_accum=False),\n";
        case FastAccum::all:
            break;
    }
    return "    gemm_config_grad_input=Float8GemmConfig(use_fast_accum=True),\n"
           "    gemm_config_grad_weight=Float8GemmConfig(use_fast_accum=True),\n";
}

std::string config_of(const Recipe& recipe) {
    const auto named = std::ranges::find(kNamed, recipe_text(without_types(recipe)), &Named::recipe);
    if (named != kNamed.end())
        return fmt::format("config = Float8LinearConfig.from_recipe_name(\"{}\")\n", named->name);
    const std::vector<CastPlan> plans = plans_of(recipe);
    std::string out = "config = Float8LinearConfig(\n";
    for (std::size_t i = 0; i < kArguments.size(); ++i) {
        const std::string cast = cast_config(plans, i);
        if (i < 3 || cast != cast_config(plans, twin_of(i)))
            out += fmt::format("    {}={},\n", kArguments[i], cast);
    }
    if (std::ranges::any_of(plans, &CastPlan::pow2)) out += "    round_scales_to_power_of_2=True,\n";
    return out + gemm_configs(recipe.fast_accum) + ")\n";
}

// Why one cast is none of torchao's.
std::string operand_refusal(const CastPlan& plan, const Recipe& recipe) {
    if (!is_cast(plan)) {
        if (plan.format->name == layer_format(recipe)) return {};
        return fmt::format("an operand that is not cast has the type of the layer, {} here and not {}",
                           find_format(layer_format(recipe)).label, plan.format->label);
    }
    if (plan.format->name != "e4m3" && plan.format->name != "e5m2")
        return fmt::format("its Float8Linear casts to E4M3 and E5M2, not to {}", plan.format->label);
    if (!plan.scaled) return "its Float8Linear has no cast without a scale";
    if (plan.granularity != Granularity::tensor && !by_row(plan))
        return "its Float8Linear has scales per tensor and per row, not for blocks";
    return {};
}

// Why casts that it has do not go together.
std::string together_refusal(const std::vector<CastPlan>& plans) {
    const CastPlan* scale = nullptr;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const CastPlan &plan = plans[i], &twin = plans[twin_of(i)];
        if (!is_cast(plan)) continue;
        if (is_cast(twin) && twin.format != plan.format)
            return "its Float8Linear casts a tensor to the same format for both products";
        if (scale && scale->pow2 != plan.pow2)
            return "its Float8Linear rounds all scales to powers of two, or none";
        scale = &plan;
    }
    for (const Gemm gemm : {Gemm::fprop, Gemm::dgrad, Gemm::wgrad}) {
        std::size_t cast = 0;
        for (std::size_t i = 0; i < plans.size(); ++i)
            cast += kOperands[i].gemm == gemm && is_cast(plans[i]) ? 1 : 0;
        if (cast == 1) return "its Float8Linear casts both operands of a product, or none";
    }
    return {};
}

}  // namespace

std::string float8_linear_refusal(const Recipe& recipe) {
    if (recipe.scale == ScaleSource::delayed) return "it has no delayed scaling";
    const std::vector<CastPlan> plans = plans_of(recipe);
    for (const CastPlan& plan : plans)
        if (const std::string why = operand_refusal(plan, recipe); !why.empty()) return why;
    if (const std::string why = together_refusal(plans); !why.empty()) return why;
    Recipe rest = without_types(recipe);
    const Recipe& row = row_of(recipe).recipe;
    rest.fwd = row.fwd, rest.bwd = row.bwd, rest.pow2 = row.pow2, rest.inputs = row.inputs;
    rest.fast_accum = row.fast_accum;
    const std::string beyond = beyond_row(rest);
    return beyond.empty() ? beyond : "its Float8Linear has no " + beyond;
}

AoLayer float8_linear(const Recipe& recipe) {
    AoLayer out;
    out.settings = config_of(recipe);
    out.casts = kCast;
    for (const CastGroup& group : cast_groups(recipe)) {
        if (!is_cast(group.cast.plan)) continue;
        std::string configs;
        for (const Operand& operand : group.operands)
            configs += fmt::format("{}config.{}", configs.empty() ? "" : ",\n                ",
                                   kArguments[place_of(operand)]);
        out.casts += fmt::format("def {}(x):\n    return cast(x, {})\n\n\n", group.name, configs);
    }
    out.layer = fmt::format(kLayer, layer_dtype(recipe));
    std::string names;
    for (const std::string_view name :
         {"CastConfig", "Float8GemmConfig", "Float8LinearConfig", "ScalingGranularity", "ScalingType"})
        if ((out.settings + out.casts).find(name) != std::string::npos) names += std::string(name) + ", ";
    out.imports = fmt::format(kImports, names);
    return out;
}

}  // namespace fp8lab::python
