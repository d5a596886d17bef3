// The casts that L18 offers: recipes by their texts, and how the lab calls and draws them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/choice.h"
#include "core/base/role.h"

namespace fp8lab::experts {

struct Cast {
    std::string_view recipe;  // what parse_recipe() reads: "block128:pow2=0"
    std::string_view label;   // "E4M3 1×128, FP32 scales"
    Role role;
    int bits;  // of an element
};

// Throws usage_error: this lab does not offer the recipe.
const Cast& find_cast(std::string_view recipe, std::string_view where);
std::string label_of(std::string_view recipe);  // of one that is offered
Role role_of(std::string_view recipe);

// What layers, routers and the rows of a hop can be in, in the order of their menus.
std::vector<Choice> layer_choices();
std::vector<Choice> router_choices();
std::vector<Choice> gemm_choices();
std::vector<Choice> hop_choices();

}  // namespace fp8lab::experts
