// The formats that a trained network is lowered to: the recipes of the lists `weights` and `activations`
// (core/scaling/recipe_lists.h), and the group codes (core/formats/group_codes.h). A matrix multiplication reads its weights and its input ("activation") in one of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/group_codes.h"
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
    std::string recipe =
        {};  // that casts the inputs and the weights so, as parse_recipe() reads it; of groups: none
    const GroupCodes* groups = nullptr;  // INT4 and NF4, offered for weights only; the plans say nothing then
};

// Bits per weight of a matrix (out, in) with its share of the scales.
double bits_per_weight(const LowFormat& format, std::size_t out, std::size_t in);

inline constexpr RecipeList kServed = RecipeList::weights | RecipeList::activations;

// fp32 bf16 int8 int8-row e4m3 e4m3-row e4m3-128 e5m2 mxfp8 mxfp6-e2m3 mxfp6-e3m2 nvfp4 mxfp4 e2m1, and of weights
// int4-g32 int4-g128 nf4. int8, e4m3, e5m2 and e2m1 have one scale per tensor, -row one per row along K, e4m3-128 one per
// 128 x 128 weights and 1 x 128 inputs.
std::span<const LowFormat> low_formats();
// Those that are in one of `lists`, in the same order.
std::vector<const LowFormat*> low_formats(RecipeList lists);
// One of low_formats(lists). Throws usage_error with the ids that there are.
const LowFormat& find_low_format(std::string_view id, std::string_view where, RecipeList lists = kServed);

}  // namespace fp8lab
