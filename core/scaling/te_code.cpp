// Recipe::te is Transformer Engine's call with {placeholders}; kPlaceholders says what stands for each, and which
// of our options it expresses. Whatever a call has no placeholder for, it cannot express. A text that starts with
// '#' is a comment and is kept as it is. tests/unit/scaling/te_signatures.json lists the names and values that
// Transformer Engine takes; a test holds every code to it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/base/units.h"
#include "core/scaling/recipe.h"

namespace fp8lab {

namespace {

// transformer_engine.common.recipe.Format; empty for a pair that it does not have.
std::string te_format(const Recipe& recipe) {
    const std::string_view fwd = recipe.fwd->name, bwd = recipe.bwd->name;
    if (fwd == "e4m3" && bwd == "e5m2") return "Format.HYBRID";
    if (fwd == "e4m3" && bwd == "e4m3") return "Format.E4M3";
    return {};
}

// NVFP4BlockScaling does the first three unless it is told not to. It refuses 4over6 together with the rotation.
std::string nvfp4_arguments(const Recipe& recipe) {
    const bool four_or_six = recipe.target == Nvfp4Target::four_or_six;
    std::string text;
    const auto add = [&](bool needed, std::string_view argument) {
        if (needed) text.append(text.empty() ? "" : ", ").append(argument);
    };
    add(!recipe.rht || four_or_six, "disable_rht=True");
    add(!recipe.square_weights, "disable_2d_quantization=True");
    add(recipe.round_bwd != Rounding::stochastic, "disable_stochastic_rounding=True");
    add(four_or_six, "nvfp4_4over6=\"all\", nvfp4_4over6_err_mode=\"MSE\"");
    return text;
}

std::string four_or_six_note(const Recipe& recipe) {
    if (recipe.target != Nvfp4Target::four_or_six) return {};
    return recipe.rht ? "  # 4over6 does not go with the rotation, and is never used for dy"
                      : "  # 4over6 is never used for dy";
}

// Float8BlockScaling asserts that fp8_dpa is off; with NVFP4 attention is not cast.
bool takes_attention(const Recipe& recipe) {
    return recipe.granularity == Granularity::tensor || recipe.granularity == Granularity::block32;
}

// CustomRecipe has no arguments for formats: its user writes a function that gives the quantizer of each tensor.
std::string custom_recipe_note(const Recipe& recipe) {
    Recipe only = parse_recipe(recipe.base);
    only.inputs = recipe.inputs;
    return "# CustomRecipe, with a quantizer of your own for each operand of each GEMM: " +
           recipe_text(only).substr(recipe.base.size() + 1);
}

// te.optimizers.FusedAdam keeps moments in BF16, or in E4M3 ("uint8") under one scale, and rounds them to nearest; without
// master_weights, its default, it updates parameters in BF16 as they are. Takes from `rest` what the text says.
std::string fused_adam_note(const Recipe& recipe, Recipe& rest) {
    const bool one_scale = recipe.moment_block == MomentBlock::tensor;
    std::string arguments;
    const auto add = [&](std::string_view argument, const FormatInfo*& format, Rounding rounding) {
        if (!format || rounding != Rounding::nearest) return;
        const bool bf16 = format->name == "bf16";
        if (!bf16 && !(format->name == "e4m3" && one_scale)) return;
        arguments += fmt::format("{}{}=torch.{}", arguments.empty() ? "" : ", ", argument,
                                 bf16 ? "bfloat16" : "uint8");
        format = nullptr;
    };
    add("exp_avg_dtype", rest.moment_m, recipe.round_m);
    add("exp_avg_sq_dtype", rest.moment_v, recipe.round_v);
    if (!has_narrow_moments(rest)) rest.moment_block = MomentBlock::block128;
    const bool plain_bf16 = recipe.master == MasterWeights::bf16 && recipe.round_update == Rounding::nearest;
    if (plain_bf16) rest.master = MasterWeights::fp32;
    if (arguments.empty() && !plain_bf16) return {};
    return fmt::format("  # with te.optimizers.FusedAdam({}){}", arguments,
                       plain_bf16 ? " on parameters in torch.bfloat16" : "");
}

struct Placeholder {
    std::string_view name;
    std::string (*text)(const Recipe&);
    void (*express)(Recipe& rest, const Recipe& plain);  // takes from `rest` what the text says
};
constexpr std::array kPlaceholders = {
    Placeholder{"{format}", te_format, [](Recipe& r, const Recipe& p) { r.fwd = p.fwd, r.bwd = p.bwd; }},
    Placeholder{"{history}", [](const Recipe& r) { return std::to_string(r.history); },
                [](Recipe& r, const Recipe& p) { r.history = p.history; }},
    Placeholder{"{margin}", [](const Recipe& r) { return std::to_string(r.margin); },
                [](Recipe& r, const Recipe& p) { r.margin = p.margin; }},
    Placeholder{
        "{algo}",
        [](const Recipe& r) { return std::string(r.algo == AmaxAlgo::most_recent ? "most_recent" : "max"); },
        [](Recipe& r, const Recipe& p) {
            if (r.algo != AmaxAlgo::ema) r.algo = p.algo;
        }},
    // The field use_power_2_scales has no effect on te.Linear: QParams were made from the variable before.
    Placeholder{"{pow2}",
                [](const Recipe& r) {
                    return std::string(
                        r.pow2 ? "  # with NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES=1 set before the import"
                               : "");
                },
                [](Recipe& r, const Recipe& p) { r.pow2 = p.pow2; }},
    Placeholder{"{fp32_scales}",
                [](const Recipe& r) {
                    return std::string(
                        r.pow2 ? "" : "  # with NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1 set before the import");
                },
                [](Recipe& r, const Recipe& p) { r.pow2 = p.pow2; }},
    // Transformer Engine rounds what it rotated to BF16; without the option this is one of the small differences.
    Placeholder{"{nvfp4}", nvfp4_arguments,
                [](Recipe& r, const Recipe& p) {
                    r.round_bwd = p.round_bwd, r.rht = p.rht, r.rht_bf16 = p.rht_bf16;
                    r.square_weights = p.square_weights;
                }},
    Placeholder{"{four_or_six}", four_or_six_note,
                [](Recipe& r, const Recipe&) {
                    if (r.target == Nvfp4Target::four_or_six) r.target = Nvfp4Target::six;
                }},
};

}  // namespace

std::string transformer_engine_code(const Recipe& recipe) {
    std::string call(recipe.te);
    Recipe rest = recipe;
    const std::string optimizer = fused_adam_note(recipe, rest);
    if (call.starts_with('#')) return call + optimizer;
    if (has_inputs(recipe)) return custom_recipe_note(recipe) + optimizer;
    const Recipe plain = parse_recipe(recipe.base);
    for (const Placeholder& placeholder : kPlaceholders) {
        const auto at = call.find(placeholder.name);
        if (at == call.npos) continue;
        const std::string text = placeholder.text(recipe);
        if (text.empty() && placeholder.name == "{format}")
            call.clear();  // not one of its pairs
        else
            call.replace(at, placeholder.name.size(), text);
        placeholder.express(rest, plain);
    }
    if (call.empty()) return "# Transformer Engine has no recipe like " + recipe_text(recipe);
    if (recipe.scope == CastScope::attention && takes_attention(recipe)) {
        const auto end = call.find(')');
        call.insert(end, std::string(call[end - 1] == '(' ? "" : ", ") + "fp8_dpa=True");
        rest.scope = CastScope::linears;
    }
    if (!recipe.wide.empty()) {  // a matter of where the recipe applies, not of the recipe
        Recipe only = plain;
        only.wide = recipe.wide;
        const std::string text = recipe_text(only);
        call += "  # run layers " + text.substr(text.rfind('=') + 1) + " outside te.autocast";
        rest.wide = {};
    }
    if (recipe.loss_scale > 0) {  // PyTorch's part
        call += fmt::format("  # with torch.amp.GradScaler(init_scale={}, growth_interval={})",
                            shortest(recipe.loss_scale),
                            recipe.growth_interval > 0 ? std::to_string(recipe.growth_interval) : "10**9");
        rest.loss_scale = 0, rest.growth_interval = 0;
    }
    call += optimizer;
    const std::string text = recipe_text(rest);
    if (text.size() <= recipe.base.size()) return call;
    return call + "  # Transformer Engine cannot express " + text.substr(recipe.base.size() + 1);
}

}  // namespace fp8lab
