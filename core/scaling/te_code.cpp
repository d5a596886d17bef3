#include <string>
#include <vector>

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

// The constructor call without regard to options that only this laboratory has; empty where there is none.
std::string constructor(const Recipe& recipe) {
    const std::string format = te_format(recipe);
    if (recipe.base == "nvfp4")
        return std::string("NVFP4BlockScaling(disable_rht=True, disable_2d_quantization=True") +
               (recipe.round_bwd == Rounding::stochastic ? ")" : ", disable_stochastic_rounding=True)");
    if (format.empty()) return {};
    if (recipe.base == "delayed")
        return "DelayedScaling(margin=" + std::to_string(recipe.margin) + ", fp8_format=" + format +
               ", amax_history_len=" + std::to_string(recipe.history) + ", amax_compute_algo=\"" +
               (recipe.algo == AmaxAlgo::max ? "max" : "most_recent") + "\")";
    if (recipe.base == "current")
        return "Float8CurrentScaling(" + std::string(recipe.pow2 ? "use_power_2_scales=True, " : "") +
               "fp8_format=" + format + ")";
    if (recipe.base == "block128") return "Float8BlockScaling(fp8_format=" + format + ")";
    if (recipe.base == "mxfp8") return "MXFP8BlockScaling(fp8_format=" + format + ")";
    return {};
}

// Options that its constructor cannot express, as recipe_text() writes them.
std::string untranslated(const Recipe& recipe) {
    Recipe rest = recipe;
    const Recipe plain = parse_recipe(recipe.base);
    rest.fwd = plain.fwd;
    rest.bwd = plain.bwd;
    if (recipe.base == "delayed") {
        rest.history = plain.history;
        rest.margin = plain.margin;
        rest.algo = plain.algo;
    }
    if (recipe.base == "current") rest.pow2 = plain.pow2;
    if (recipe.base == "nvfp4") rest.round_bwd = plain.round_bwd;
    const std::string text = recipe_text(rest);
    return text.size() > recipe.base.size() ? text.substr(recipe.base.size() + 1) : std::string();
}

}  // namespace

std::string transformer_engine_code(const Recipe& recipe) {
    if (recipe.base == "bf16") return "# BF16: no recipe; te.Linear outside fp8_autocast";
    if (recipe.base == "fp32")
        return "# FP32: no recipe; te.Linear outside fp8_autocast, params_dtype=torch.float32";
    const std::string call = constructor(recipe);
    if (call.empty()) return "# Transformer Engine has no recipe like " + recipe_text(recipe);
    const std::string rest = untranslated(recipe);
    if (recipe.base == "block128" && rest == "pow2=0")
        return call + "  # with NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1";
    return rest.empty() ? call : call + "  # Transformer Engine cannot express " + rest;
}

}  // namespace fp8lab
