// The formats that a trained network is lowered to: the recipes of the lists `weights` and `activations`
// (core/scaling/recipe_lists.h). A matrix multiplication reads its weights and its input ("activation") in one of them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/scaling/quantizer.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab {

struct LowFormat {
    std::string_view id;     // "mxfp6-e2m3"
    std::string_view label;  // "MXFP6 E2M3"
    RecipeList in = RecipeList::none;
    Role role = Role::truth;  // that of its element; FP6 and FP4 without block scales are truth
    CastPlan weights = {}, activations = {};
    bool has_static_scale =
        false;  // one FP32 scale per tensor, which can be calibrated; NVFP4's tensor scale is one
};

inline constexpr RecipeList kServed = RecipeList::weights | RecipeList::activations;

// fp32 bf16 int8 e4m3 e5m2 mxfp8 mxfp6-e2m3 mxfp6-e3m2 nvfp4 mxfp4 e2m1. int8, e4m3, e5m2 and e2m1 have one scale per
// tensor.
std::span<const LowFormat> low_formats();
// Those that are in one of `lists`, in the same order.
std::vector<const LowFormat*> low_formats(RecipeList lists);
// One of low_formats(lists). Throws usage_error with the ids that there are.
const LowFormat& find_low_format(std::string_view id, std::string_view where, RecipeList lists = kServed);

}  // namespace fp8lab
