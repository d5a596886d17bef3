#include <array>

#include "core/base/error.h"
#include "core/inspect/scan.h"

namespace fp8lab {
namespace {

struct Listed {
    std::string_view id, text, label;
    bool compared_only = false;
};
constexpr std::array kListed = {
    Listed{"mxfp4", "mxfp4", "MXFP4"},
    Listed{"nvfp4", "nvfp4", "NVFP4"},
    Listed{"mxfp6-e3m2", "mxfp6-e3m2", "MXFP6 E3M2"},
    Listed{"mxfp6-e2m3", "mxfp6-e2m3", "MXFP6 E2M3"},
    Listed{"unscaled", "unscaled:fwd=e4m3", "E4M3, scale 1", true},
    Listed{"int8", "int8", "INT8, one scale", true},
    Listed{"current", "current:fwd=e4m3", "E4M3, one scale"},
    Listed{"e5m2", "current:fwd=e5m2", "E5M2, one scale"},
    Listed{"rowwise", "rowwise:pow2=0", "E4M3, per row"},
    Listed{"block128", "block128", "E4M3, 1\u00d7128"},
    Listed{"mxfp8", "mxfp8", "MXFP8"},
    Listed{"bf16", "bf16", "BF16"},
};

bool is_compared_only(const Recipe& recipe) {
    return recipe.base == "int8" || (recipe.scale == ScaleSource::none && width_bits(*recipe.fwd) <= 8);
}

}  // namespace

std::vector<ScanRecipe> scan_recipes(MxRule rule) {
    std::vector<ScanRecipe> out;
    for (const Listed& row : kListed) {
        out.push_back(
            {std::string(row.id), std::string(row.label), parse_recipe(row.text), row.compared_only});
        out.back().recipe.mx_rule = rule;
    }
    return out;
}

std::vector<ScanRecipe> parse_scan_recipes(const std::string& comma_separated) {
    std::vector<ScanRecipe> out;
    for (const Recipe& recipe : parse_recipes(comma_separated)) {
        const auto refused = [&](const char* why) {
            return usage_error("--recipe",
                               "recipe " + recipe.name + ": " + why + "; inspect casts one tensor");
        };
        if (recipe.scale == ScaleSource::delayed)
            throw refused("delayed scaling needs the amaxes of earlier steps");
        if (!recipe.wide.empty()) throw refused("wide names layers of a training");
        if (recipe.scope != CastScope::linears) throw refused("scope names GEMMs of a transformer");
        if (recipe.act != SwigluForm::plain) throw refused("act is what a transformer computes");
        out.push_back({recipe.name, recipe.name, recipe, is_compared_only(recipe)});
    }
    return out;
}

CastPlan scan_plan(const Recipe& recipe, TensorUse use) {
    return cast_plan(recipe, use == TensorUse::w ? TensorClass::w : TensorClass::x);
}

}  // namespace fp8lab
