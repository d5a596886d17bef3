#include "core/scaling/recipe_lists.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace fp8lab {
namespace {

std::string_view up_to_comma(std::string_view text) { return text.substr(0, text.find(',')); }

ListedRecipe listed_recipe(const Recipe& recipe, const Listing& listing) {
    ListedRecipe out{listing, recipe};
    if (!listing.options.empty())
        out.recipe = parse_recipe(std::string(recipe.base) + ":" + std::string(listing.options));
    if (out.id.empty()) out.id = recipe.base;
    if (out.label.empty()) out.label = up_to_comma(recipe.label);
    if (out.short_label.empty()) out.short_label = up_to_comma(out.label);
    return out;
}

}  // namespace

std::span<const Recipe> recipes() {
    static const std::vector<Recipe> kAll = [] {
        std::vector<Recipe> out;
        for (const RecipeRow& row : recipe_rows()) out.push_back(row.recipe);
        return out;
    }();
    return kAll;
}

const RecipeRow& row_of(const Recipe& recipe) {
    return *std::ranges::find(recipe_rows(), recipe.base,
                              [](const RecipeRow& row) { return row.recipe.base; });
}

std::vector<ListedRecipe> listed_recipes(RecipeList lists) {
    std::vector<ListedRecipe> out;
    for (const RecipeRow& row : recipe_rows())
        for (const Listing& listing : row.listed)
            if (meet(listing.in, lists)) out.push_back(listed_recipe(row.recipe, listing));
    std::ranges::stable_sort(out, {}, &ListedRecipe::at);
    return out;
}

void check_trains(const Recipe& recipe, std::string_view where) {
    if (!row_of(recipe).trains)
        throw usage_error(std::string(where),
                          "recipe " + recipe.name + " casts tensors; no training is in this recipe");
}

}  // namespace fp8lab
