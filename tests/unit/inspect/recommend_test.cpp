#include "core/inspect/recommend.h"

#include <doctest/doctest.h>

#include <array>
#include <random>

#include "core/inspect/names.h"
#include "core/inspect/table.h"

using namespace fp8lab;

TEST_CASE("kinds and uses of names as frameworks give them") {
    struct Row {
        const char *name, *kind;
        TensorUse use;
    };
    for (const Row& row :
         {Row{"layers.0.attn.qkv.bias", "layers.*.attn.qkv.bias", TensorUse::w},
          Row{"model.layers.12.mlp.down_proj.weight", "model.layers.*.mlp.down_proj.weight", TensorUse::w},
          Row{"1.qkv.w", "*.qkv.w", TensorUse::w}, Row{"h.0.1.x1", "h.*.*.x1", TensorUse::w},
          Row{"grad.layers.3.w", "grad.layers.*.w", TensorUse::dy},
          Row{"dact.head", "dact.head", TensorUse::dy},
          Row{"act.blocks.1.out", "act.blocks.*.out", TensorUse::x},
          Row{"adam.v.w", "adam.v.w", TensorUse::state}, Row{"v.w1", "v.w1", TensorUse::state},
          Row{"state.3.exp_avg_sq", "state.*.exp_avg_sq", TensorUse::state},
          Row{"attention.v.weight", "attention.v.weight", TensorUse::w}, Row{"", "", TensorUse::w},
          Row{".", ".", TensorUse::w}, Row{"7", "*", TensorUse::w}}) {
        CAPTURE(row.name);
        CHECK(kind_of(row.name) == row.kind);
        CHECK(use_of(row.name) == row.use);
    }
}

TEST_CASE("the recommendation is what trying all of them finds") {
    const auto recipes = scan_recipes();
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform;
    for (int i = 0; i < 20'000; ++i) {
        ScanRow row;
        row.summary.amax = 1;
        for (std::size_t r = 0; r < recipes.size(); ++r) {
            const double base[] = {4.25, 4.5, 6.25, 6.25, 8, 8, 8, 8, 8.25, 8.25, 8.25, 16};
            row.outcomes.push_back({60 * uniform(random), 3 * uniform(random), 0, 40 * uniform(random),
                                    base[r] + 0.2 * uniform(random)});
        }
        Demands demands{.min_sqnr_db = 40 * uniform(random), .max_underflow_pct = 3 * uniform(random)};
        if (i % 3 == 0) demands.min_row_db = 20 * uniform(random);
        if (i % 5 == 0) demands.max_bits = 6 + 8 * uniform(random);
        double fewest = INFINITY;
        for (std::size_t r = 0; r < recipes.size(); ++r)
            if (recipes[r].id != "unscaled" && recipes[r].id != "int8" && meets(row.outcomes[r], demands))
                fewest = std::min(fewest, row.outcomes[r].bits);
        const Recommendation advice = recommend(row, recipes, demands);
        REQUIRE(advice.recipe.has_value() == std::isfinite(fewest));
        if (!advice.recipe) {
            REQUIRE(advice.nearest);
            CHECK_FALSE(missed(row.outcomes[*advice.nearest], demands).empty());
            continue;
        }
        const CastOutcome& chosen = row.outcomes[*advice.recipe];
        CHECK(meets(chosen, demands));
        CHECK(missed(chosen, demands).empty());
        CHECK(chosen.bits <= fewest + 0.3);
        const auto scales = [&](std::size_t r) { return static_cast<int>(recipes[r].recipe.granularity); };
        for (std::size_t r = 0; r < recipes.size(); ++r) {
            if (recipes[r].compared_only || !meets(row.outcomes[r], demands)) continue;
            if (row.outcomes[r].bits > fewest + 0.3) continue;
            CHECK(scales(*advice.recipe) <= scales(r));
        }
    }
}

TEST_CASE("the recipes of the list are what their names say") {
    for (const ScanRecipe& recipe : scan_recipes()) {
        CAPTURE(recipe.id);
        const CastPlan plan = scan_plan(recipe.recipe, TensorUse::dy);
        CHECK(plan.rounding == Rounding::nearest);  // also where a training rounds gradients at random
        CHECK(recipe.compared_only == (recipe.id == "unscaled" || recipe.id == "int8"));
        if (recipe.id == "current" || recipe.id == "rowwise" || recipe.id == "unscaled")
            CHECK(plan.format->name == "e4m3");
        if (recipe.id == "rowwise") CHECK_FALSE(plan.pow2);
        CHECK(scan_plan(recipe.recipe, TensorUse::w).square_blocks == (recipe.id == "block128"));
    }
    CHECK(scan_recipes(MxRule::floor)[0].recipe.mx_rule == MxRule::floor);
}
