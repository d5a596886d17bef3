// Where a recipe is offered. The table of recipes (recipe_table.cpp) has one row per recipe, and the row names the lists
// that it is in; every list of formats with scales in the program is a filter over these rows. So a new recipe is one row.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/scaling/recipe.h"

namespace fp8lab {

// The lists. What takes a recipe as a text (`train --recipe`, `quantize`, `inspect --recipe`) is none of them: it
// takes every row with all its options.
enum class RecipeList : unsigned {
    none = 0,
    inspect = 1,        // the columns of `inspect` without --recipe, and the Workbench: one tensor is cast
    weights = 2,        // `infer --weights` and L11: it casts the weights of a trained network
    activations = 4,    // `infer --activations` and L11: it casts the inputs of their products
    mixes = 8,          // `infer --all-mixes`, and the chips of L11; also in weights and activations
    greedy = 16,        // `infer --greedy`, and L11: the next is smaller than the one before; also in mixes
    block_scales = 32,  // L6
    gemm_grid = 64,  // the casts of `bench gemm --grid`, and the recipes of L9: the GPU has kernels for them
};
constexpr RecipeList operator|(RecipeList a, RecipeList b) {
    return static_cast<RecipeList>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
// Whether they have a list in common.
constexpr bool meet(RecipeList a, RecipeList b) {
    return (static_cast<unsigned>(a) & static_cast<unsigned>(b)) != 0;
}

// An entry of one list or several. A row has more than one where its options make other formats of it, or where two
// lists call it by other names or have it at another place. Texts that are left out come from the row.
struct Listing {
    static constexpr int kLast = 1000;
    RecipeList in = RecipeList::none;
    int at = kLast;                 // lists are in ascending order of it; those with the same, of the table
    std::string_view options = {};  // of the recipe: "fwd=e5m2"
    std::string_view id = {};       // in options, fields and names of metrics: "mx32"; left out: the recipe's
    std::string_view label = {};    // in menus; left out: that of the recipe up to its comma
    std::string_view short_label =
        {};               // in heads of tables, beside bars; left out: the label up to its comma
    bool weight = false;  // cast as a weight is: in square blocks, where the recipe has them
};

struct RecipeRow {
    Recipe recipe;
    std::vector<Listing> listed = {};
    bool trains = true;       // `train` and the menus of L8 and L13 take it
    bool recommended = true;  // `inspect` and the Workbench may recommend it; false: they only show it
};
// All rows, in the order of the table.
std::span<const RecipeRow> recipe_rows();
// The row that a recipe was parsed from.
const RecipeRow& row_of(const Recipe& recipe);

// A listing whose texts are filled in, with the recipe that it stands for.
struct ListedRecipe : Listing {
    Recipe recipe;
};
// What is in one of `lists`, in order.
std::vector<ListedRecipe> listed_recipes(RecipeList lists);

// Throws usage_error: the row of the recipe does not train.
void check_trains(const Recipe& recipe, std::string_view where);

}  // namespace fp8lab
