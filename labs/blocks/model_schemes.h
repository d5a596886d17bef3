// The ways to share scales, and what each of them does to a matrix.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/palette.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/quantizer.h"
#include "core/tensors/tensor.h"

namespace fp8lab::blocks {

// What the field "scheme" chooses: a recipe of RecipeList::block_scales (core/scaling/recipe_lists.h), without the
// formats of its elements. tensor row 1x128 128x128 mx32 nvfp4.
struct Family {
    std::string id, label, short_label;  // "mx32", "MX, blocks of 32", "MX 32"
    Recipe recipe;
    CastPlan plan;  // of the recipe
    bool has_mx_rule() const { return plan.granularity == Granularity::block32; }
    bool has_fp32_scales() const { return !has_mx_rule() && plan.granularity != Granularity::block16; }
    // Recipes of FP8 are shown with the element that is chosen; the others are named after theirs.
    bool takes_element() const { return is_fp8(*plan.format); }
};
std::span<const Family> families();
const Family& find_family(std::string_view id);  // one that is there

// A family, and of MX a rule.
struct Scheme {
    std::string id, label;     // "mx32-floor", "MX 32, floor"
    std::string family, rule;  // "mx32", "floor"
    CastPlan plan;
};

// tensor row 1x128 128x128 mx32-up mx32-floor mx32-even nvfp4, in this order. `element` is the format of all
// but nvfp4, whose elements are E2M1; `pow2` rounds the FP32 scales of the first four down to powers of two.
std::vector<Scheme> schemes(const FormatInfo& element, bool pow2);

// One quantised copy of a matrix: along its columns, as fprop reads x, or along its rows, as wgrad does.
struct Copy {
    BlockGrid grid;
    std::vector<float> values;  // dequantised
    std::vector<float> scales;  // one per block
    CastStats stats;
};
Copy quantized_copy(const CastPlan& plan, const Tensor& tensor, Along along);

struct Score {
    double scales = 0, bits_per_element = 0;
    double sqnr_db = 0, underflow_pct = 0, overflow_pct = 0;
    double lost_l1_pct = 0, lost_energy_pct = 0;
    double worst_row_db = 0;  // the lowest SQNR of a row that is not all 0
    double differ_pct = 0;    // elements whose two copies are not the same number
    double max_difference = 0;
};
Score score(const CastPlan& plan, const Tensor& tensor, const Copy& by_cols, const Copy& by_rows);

}  // namespace fp8lab::blocks
