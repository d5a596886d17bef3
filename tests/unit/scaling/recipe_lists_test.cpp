// The lists of recipes: what the rows say, and that what is in a list stays there, in its order, under its name.
#include "core/scaling/recipe_lists.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/scaling/quantizer.h"

using namespace fp8lab;

namespace {

constexpr RecipeList kAll[] = {RecipeList::inspect,  RecipeList::weights, RecipeList::activations,
                               RecipeList::mixes,    RecipeList::greedy,  RecipeList::block_scales,
                               RecipeList::gemm_grid};

struct Known {
    std::string_view id, label, recipe;
    bool operator==(const Known&) const = default;
};

// Columns of CSV and names of metrics follow these orders: a new one may come between them, none may move.
void check_stays(RecipeList list, std::vector<Known> known) {
    const auto listed = listed_recipes(list);
    auto next = known.begin();
    for (const ListedRecipe& each : listed) {
        const std::string text = recipe_text(each.recipe);
        if (next != known.end() && Known{each.id, each.label, text} == *next) ++next;
    }
    CAPTURE(next == known.end() ? std::string("all") : std::string(next->id));
    CHECK(next == known.end());
}

}  // namespace

TEST_CASE("what a list of recipes has stays there, in its order, under its id and its label") {
    check_stays(RecipeList::inspect, {{"mxfp4", "MXFP4", "mxfp4"},
                                      {"nvfp4", "NVFP4", "nvfp4"},
                                      {"mxfp6-e3m2", "MXFP6 E3M2", "mxfp6-e3m2"},
                                      {"mxfp6-e2m3", "MXFP6 E2M3", "mxfp6-e2m3"},
                                      {"unscaled", "E4M3, scale 1", "unscaled"},
                                      {"int8", "INT8, one scale", "int8"},
                                      {"current", "E4M3, one scale", "current"},
                                      {"e5m2", "E5M2, one scale", "current:fwd=e5m2"},
                                      {"rowwise", "E4M3, per row", "rowwise"},
                                      {"block128", "E4M3, 1\u00d7128", "block128"},
                                      {"mxfp8", "MXFP8", "mxfp8"},
                                      {"bf16", "BF16", "bf16"}});
    const std::vector<Known> served = {{"fp32", "FP32", "fp32"},
                                       {"bf16", "BF16", "bf16"},
                                       {"int8", "INT8", "int8"},
                                       {"e4m3", "E4M3", "current"},
                                       {"e5m2", "E5M2", "current:fwd=e5m2"},
                                       {"mxfp8", "MXFP8", "mxfp8"},
                                       {"mxfp6-e2m3", "MXFP6 E2M3", "mxfp6-e2m3"},
                                       {"mxfp6-e3m2", "MXFP6 E3M2", "mxfp6-e3m2"},
                                       {"nvfp4", "NVFP4", "nvfp4"},
                                       {"mxfp4", "MXFP4", "mxfp4"},
                                       {"e2m1", "E2M1 tensor", "current:fwd=e2m1"}};
    check_stays(RecipeList::weights, served);
    check_stays(RecipeList::activations, served);
    check_stays(RecipeList::mixes, {{"bf16", "BF16", "bf16"},
                                    {"int8", "INT8", "int8"},
                                    {"e4m3", "E4M3", "current"},
                                    {"mxfp8", "MXFP8", "mxfp8"},
                                    {"mxfp6-e2m3", "MXFP6 E2M3", "mxfp6-e2m3"},
                                    {"nvfp4", "NVFP4", "nvfp4"},
                                    {"mxfp4", "MXFP4", "mxfp4"},
                                    {"e2m1", "E2M1 tensor", "current:fwd=e2m1"}});
    check_stays(RecipeList::greedy, {{"mxfp8", "MXFP8", "mxfp8"},
                                     {"mxfp6-e2m3", "MXFP6 E2M3", "mxfp6-e2m3"},
                                     {"nvfp4", "NVFP4", "nvfp4"},
                                     {"mxfp4", "MXFP4", "mxfp4"}});
    check_stays(RecipeList::block_scales, {{"tensor", "One per tensor", "current"},
                                           {"row", "One per row", "rowwise"},
                                           {"1x128", "Blocks 1\u00d7128", "block128"},
                                           {"128x128", "Blocks 128\u00d7128", "block128"},
                                           {"mx32", "MX, blocks of 32", "mxfp8"},
                                           {"nvfp4", "NVFP4, blocks of 16", "nvfp4"}});
    check_stays(RecipeList::gemm_grid, {{"delayed", "FP8 HYBRID", "delayed"},
                                        {"current", "FP8 HYBRID", "current"},
                                        {"rowwise", "FP8 HYBRID", "rowwise"},
                                        {"block128", "FP8", "block128"}});
}

TEST_CASE("a list has each listing of each row that names it, and no other") {
    for (const RecipeList list : kAll) {
        CAPTURE(static_cast<unsigned>(list));
        std::multiset<std::string> named, listed;
        for (const RecipeRow& row : recipe_rows())
            for (const Listing& each : row.listed)
                if ((static_cast<unsigned>(each.in) & static_cast<unsigned>(list)) != 0)
                    named.insert(std::string(each.id.empty() ? row.recipe.base : each.id));
        for (const ListedRecipe& each : listed_recipes(list)) listed.insert(std::string(each.id));
        CHECK(named == listed);
        CHECK(std::set(listed.begin(), listed.end()).size() == listed.size());  // no id twice
        CHECK_FALSE(listed.empty());
    }
}

TEST_CASE("a listing is in a list, has texts for every place, and its options are those of the recipe") {
    for (const ListedRecipe& each : listed_recipes(
             RecipeList::inspect | RecipeList::weights | RecipeList::activations | RecipeList::mixes |
             RecipeList::greedy | RecipeList::block_scales | RecipeList::gemm_grid)) {
        CAPTURE(each.id);
        CHECK(each.id.find_first_of(" :=,") == std::string_view::npos);
        CHECK_FALSE(each.label.empty());
        CHECK_FALSE(each.short_label.empty());
        CHECK(row_of(each.recipe).recipe.base == each.recipe.base);
    }
    for (const RecipeRow& row : recipe_rows())
        for (const Listing& each : row.listed) CHECK(each.in != RecipeList::none);
}

TEST_CASE("mixes cast both operands, and the greedy path goes to fewer and fewer bits") {
    const auto has = [](RecipeList list, std::string_view id) {
        const auto all = listed_recipes(list);
        return std::ranges::find(all, id, &ListedRecipe::id) != all.end();
    };
    for (const ListedRecipe& each : listed_recipes(RecipeList::mixes)) {
        CAPTURE(each.id);
        CHECK(has(RecipeList::weights, each.id));
        CHECK(has(RecipeList::activations, each.id));
    }
    double before = 1000;
    for (const ListedRecipe& each : listed_recipes(RecipeList::greedy)) {
        CAPTURE(each.id);
        CHECK(has(RecipeList::mixes, each.id));
        const double bits = bits_per_element(each.recipe, 128, 128);
        CHECK(bits < before);
        before = bits;
    }
}

TEST_CASE("one tensor can be cast by every recipe of inspect") {
    for (const ListedRecipe& each : listed_recipes(RecipeList::inspect)) {
        CAPTURE(each.id);
        CHECK(each.recipe.scale != ScaleSource::delayed);  // needs the amaxes of earlier steps
    }
}
