// Every place that offers recipes has those whose row says so (core/scaling/recipe_lists.h), and no other.
#include "core/scaling/recipe_lists.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/backend/grid_plan.h"
#include "core/base/error.h"
#include "core/inference/mixes.h"
#include "core/inspect/scan.h"
#include "core/nn/train_spec.h"
#include "labs/lab.h"

using namespace fp8lab;

namespace {

using Ids = std::vector<std::string>;

template <class Range, class Of>
Ids ids_of(const Range& range, Of of) {
    Ids out;
    for (const auto& each : range) out.emplace_back(std::invoke(of, each));
    return out;
}

// Of a field: its choices, without those that are no recipe.
Ids menu(const char* lab_id, std::string_view field, const std::set<std::string>& others = {}) {
    const auto lab = find_lab(lab_id).make();
    Ids out;
    for (const Field& each : lab->fields())
        if (each.info.name == field)
            for (const Choice& choice : each.choices)
                if (!others.contains(choice.id)) out.push_back(choice.id);
    return out;
}

struct Place {
    std::string_view name;
    RecipeList list;
    Ids ids;
};

bool accepts(const char* option, RecipeList list, const std::string& id) {
    try {
        find_low_format(id, option, list);
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

TEST_CASE("each place has the recipes whose row names it") {
    const auto low = [](const LowFormat* format) { return format->id; };
    const std::vector<Place> places = {
        {"inspect", RecipeList::inspect, ids_of(scan_recipes(), &ScanRecipe::id)},
        {"the Workbench's recipe", RecipeList::inspect, menu("workbench", "recipe")},
        {"infer --all-mixes", RecipeList::mixes, ids_of(mix_formats(), low)},
        {"infer --greedy", RecipeList::greedy, ids_of(greedy_formats(), low)},
        {"a chip of L11", RecipeList::mixes, menu("L11", "w1")},
        {"an input's chip of L11", RecipeList::mixes, menu("L11", "a1", {"w"})},
        {"L6", RecipeList::block_scales, menu("L6", "scheme")},
        {"bench gemm --grid", RecipeList::gemm_grid, ids_of(grid_recipes(), std::identity())},
        {"L9", RecipeList::gemm_grid, menu("L9", "recipe")},
    };
    for (const Place& place : places)
        for (const RecipeRow& row : recipe_rows())
            for (const Listing& each : row.listed) {
                const std::string id(each.id.empty() ? row.recipe.base : each.id);
                CAPTURE(place.name);
                CAPTURE(id);
                const bool there = std::ranges::find(place.ids, id) != place.ids.end();
                if (meet(each.in, place.list)) CHECK(there);
            }
    for (const Place& place : places) {
        std::size_t named = 0;
        for (const RecipeRow& row : recipe_rows())
            named += static_cast<std::size_t>(
                std::ranges::count_if(row.listed, [&](const Listing& l) { return meet(l.in, place.list); }));
        CAPTURE(place.name);
        CHECK(place.ids.size() == named);
    }
}

TEST_CASE("infer takes weights and activations in the formats that serve them, L11 offers those of both") {
    const Ids uniform = menu("L11", "uniform", {"mix"});
    std::set<std::string> listed;
    for (const RecipeRow& row : recipe_rows())
        for (const Listing& each : row.listed) {
            if (!meet(each.in, kServed)) continue;
            const std::string id(each.id.empty() ? row.recipe.base : each.id);
            CAPTURE(id);
            CHECK(listed.insert(id).second);
            const bool weights = meet(each.in, RecipeList::weights),
                       activations = meet(each.in, RecipeList::activations);
            CHECK(accepts("--weights", RecipeList::weights, id) == weights);
            CHECK(accepts("--activations", RecipeList::activations, id) == activations);
            const bool offered = std::ranges::find(uniform, id) != uniform.end();
            CHECK(offered == (weights && activations && id != "fp32"));
        }
    CHECK_FALSE(accepts("--weights", RecipeList::weights, "delayed"));
    CHECK_FALSE(accepts("--activations", RecipeList::activations, "nvfp4-te"));
}

TEST_CASE("every row that trains is in the menus of recipes and taken by train, and no other") {
    const Ids arms = menu("L8", "arm_b");
    for (const RecipeRow& row : recipe_rows()) {
        CAPTURE(row.recipe.base);
        const bool offered = std::ranges::find(arms, row.recipe.base) != arms.end();
        CHECK(offered == row.trains);
        TrainOptions options;
        options.recipes = row.recipe.base;
        bool trains = true;
        try {
            make_train_spec(options);
        } catch (const Error&) {
            trains = false;
        }
        CHECK(trains == row.trains);
    }
}

TEST_CASE("inspect recommends the recipes whose row lets it") {
    for (const ScanRecipe& recipe : scan_recipes()) {
        CAPTURE(recipe.id);
        CHECK(recipe.compared_only != row_of(recipe.recipe).recommended);
    }
    for (const ScanRecipe& recipe : parse_scan_recipes("int8:round=stochastic,unscaled:fwd=bf16,mxfp8")) {
        CAPTURE(recipe.id);
        CHECK(recipe.compared_only == recipe.id.starts_with("int8"));  // BF16 needs no scale
    }
}

TEST_CASE("L6 computes every recipe that it offers: of MX every rule, of FP8 the element that is chosen") {
    const auto lab = find_lab("L6").make();
    for (const std::string& id : menu("L6", "scheme")) {
        CAPTURE(id);
        set_field(lab->fields(), "scheme=" + id);
        for (const char* rule : {"up", "floor", "even"}) {
            set_field(lab->fields(), std::string("rule=") + rule);
            lab->update();
            const auto metrics = lab->metrics();
            const std::string chosen = std::ranges::find(metrics, "scheme_id", &Metric::name)->text;
            CHECK(chosen.starts_with(id));
            CHECK(std::ranges::find(metrics, chosen + ".sqnr_db", &Metric::name) != metrics.end());
        }
    }
}
