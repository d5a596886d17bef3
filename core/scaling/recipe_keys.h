// The options of a recipe, "history=16" behind its name: one row each, by which texts are read, written and refused.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/recipe.h"

namespace fp8lab {

struct RecipeKey {
    std::string_view name;
    std::string valid;               // "1-4096", "max|most_recent"
    bool (*applies)(const Recipe&);  // to a row; an option without an effect is refused, not ignored
    std::function<bool(Recipe&, std::string_view)> set;  // false: not a valid value, nothing changed
    std::function<std::string(const Recipe&)> get;
};

// In the order in which recipe_text() writes them. A name may have several rows, of which one at most applies.
std::span<const RecipeKey> recipe_keys();

std::vector<std::string_view> split(std::string_view text, char separator);
bool casts_to_8_bits_or_less(const Recipe& recipe);

}  // namespace fp8lab
