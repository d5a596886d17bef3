#include "core/base/error.h"
#include "core/inspect/scan.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab {
namespace {

// Formats of more than 8 bits need no scale: they may be recommended whatever the recipe.
bool is_compared_only(const Recipe& recipe) {
    return !row_of(recipe).recommended && width_bits(*recipe.fwd) <= 8;
}

}  // namespace

std::vector<ScanRecipe> scan_recipes(MxRule rule) {
    std::vector<ScanRecipe> out;
    for (const ListedRecipe& listed : listed_recipes(RecipeList::inspect)) {
        out.push_back({std::string(listed.id), std::string(listed.label), std::string(listed.short_label),
                       listed.recipe, is_compared_only(listed.recipe)});
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
        if (has_inputs(recipe) || recipe.columns_from_rowwise)
            throw refused("fprop_in, dgrad_in, wgrad_in and colsrc are about GEMMs of a training");
        if (recipe.scope != CastScope::linears) throw refused("scope names GEMMs of a transformer");
        if (recipe.act != SwigluForm::plain) throw refused("act is what a transformer computes");
        if (recipe.router != Recipe().router) throw refused("router is of a model with experts");
        out.push_back({recipe.name, recipe.name, recipe.name, recipe, is_compared_only(recipe)});
    }
    return out;
}

CastPlan scan_plan(const Recipe& recipe, TensorUse use) {
    return cast_plan(recipe, use == TensorUse::w ? TensorClass::w : TensorClass::x);
}

}  // namespace fp8lab
