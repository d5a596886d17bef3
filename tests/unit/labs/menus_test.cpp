// The menus of formats and recipes are the rows of core's tables that have a property; here the property is said a
// second time, in words of its own, so that a row added to a table appears in the menus or fails this test.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/formats/format.h"
#include "core/inference/format.h"
#include "core/inference/serve/cache_scheme.h"
#include "core/inspect/scan.h"
#include "core/nn/train_spec.h"
#include "core/scaling/recipe_lists.h"
#include "labs/lab.h"

using namespace fp8lab;

namespace {

using Ids = std::vector<std::string>;

struct Menu {
    std::string_view lab, field;
    bool (*has)(const FormatInfo&);
    Ids before = {}, after = {};
};

bool any_with_sign(const FormatInfo& f) { return f.is_signed && width_bits(f) <= 8; }
bool float_with_sign(const FormatInfo& f) { return any_with_sign(f) && f.kind == Kind::floating; }
bool trains(const FormatInfo& f) { return f.trains; }
bool trains_in_fp8(const FormatInfo& f) { return f.trains && f.exponent_bits + f.mantissa_bits == 7; }
bool of_mx(const FormatInfo& f) { return f.mx; }
// The first row with these exponent bits, mantissa bits and special values, if no row before it has the same bits.
bool tab(const FormatInfo& f) {
    if (f.exponent_bits == 0 || width_bits(f) > 16) return false;
    bool relative = false, twin = false;
    for (const FormatInfo& g : formats()) {
        if (&g == &f) break;
        const bool same = g.exponent_bits == f.exponent_bits && g.mantissa_bits == f.mantissa_bits;
        relative |= same;
        twin |= same && g.specials == f.specials;
    }
    return !relative || twin;
}

const Menu kMenus[] = {
    {"L1", "format", tab, {}, {"custom"}},
    {"L2", "first", any_with_sign},
    {"L2", "second", any_with_sign, {"none"}},
    {"L2", "third", any_with_sign, {"none"}},
    {"L2", "fourth", any_with_sign, {"none"}},
    {"L3", "first", float_with_sign},
    {"L3", "second", float_with_sign, {"none"}},
    {"L4", "format", any_with_sign},
    {"L5", "format", trains_in_fp8},
    {"L5", "b_format", trains_in_fp8},
    {"L6", "element", of_mx},
    {"L7", "format", trains},
    {"L8", "fwd", trains_in_fp8, {"recipe"}},
    {"L8", "bwd", trains_in_fp8, {"recipe"}},
};

Field field_of(Lab& lab, std::string_view name) {
    const std::vector<Field> fields = lab.fields();
    const auto found = std::ranges::find_if(fields, [&](const Field& f) { return f.info.name == name; });
    REQUIRE_MESSAGE(found != fields.end(), name);
    return *found;
}

Ids ids(const std::vector<Choice>& choices) {
    Ids out;
    for (const Choice& choice : choices) out.push_back(choice.id);
    return out;
}

}  // namespace

TEST_CASE("every lab's menu of formats is the rows of the table with the property that the lab needs") {
    for (const Menu& menu : kMenus) {
        CAPTURE(menu.lab);
        CAPTURE(menu.field);
        const auto lab = find_lab(menu.lab).make();
        const std::vector<Choice> choices = field_of(*lab, menu.field).choices;
        // In the table's order, the wide ones after the narrow ones.
        Ids expected = menu.before;
        for (const FormatInfo& f : formats())
            if (menu.has(f) && width_bits(f) <= 8) expected.emplace_back(f.name);
        for (const int width : {16, 19, 32})
            for (const int exponent : {8, 5})
                for (const FormatInfo& f : formats())
                    if (menu.has(f) && width_bits(f) == width && f.exponent_bits == exponent)
                        expected.emplace_back(f.name);
        expected.insert(expected.end(), menu.after.begin(), menu.after.end());
        CHECK(ids(choices) == expected);
        for (const Choice& choice : choices)
            if (choice.id != "none" && choice.id != "recipe" && choice.id != "custom")
                CHECK(choice.label == find_format(choice.id).label);
    }
}

namespace {

// The list of core/inspect in its order, at the end of the choices.
bool has_scan_recipes(const Field& field) {
    const std::vector<ScanRecipe> all = scan_recipes();
    return field.choices.size() >= all.size() &&
           std::ranges::equal(all, std::span(field.choices).last(all.size()), {}, &ScanRecipe::id,
                              &Choice::id);
}

// What ranks send each other: each is a value of `train --sum` or `--gather`.
bool is_of_ranks(const LabEntry& entry, const Field& field) {
    const bool sums = field.info.name == "sum";
    return entry.id == "gpus" && (sums || field.info.name == "gather") &&
           std::ranges::all_of(field.choices, [&](const Choice& choice) {
               TrainOptions options;
               options.recipes = "current", options.ranks = 2, options.shard = "zero1";
               (sums ? options.sum : options.gather) = choice.id;
               const Ranks ranks = make_train_spec(options).ranks;
               return (sums ? ranks.sum : std::string(to_string(ranks.gather))) == choice.id;
           });
}

// What is changed in a sick run: a treatment of the clinic's table, which clinic_test.cpp applies.
bool is_of_clinic(const LabEntry& entry, const Field& field) {
    return entry.id == "clinic" &&
           (field.info.name.starts_with("treatment_") || field.info.name.starts_with("second_"));
}

// What a server keeps weights, inputs, keys and values in: a format of weights (`infer --scheme`) or BF16, or one of a cache.
bool is_of_serving(const LabEntry& entry, const Field& field) {
    return entry.id == "serve" && std::ranges::all_of(field.choices, [&](const Choice& choice) {
               if (choice.id == "bf16") return true;
               try {
                   if (field.info.name == "cache") return find_cache_scheme(choice.id, "").id == choice.id;
                   return find_low_format(choice.id, "").id == choice.id;
               } catch (const Error&) {
                   return false;
               }
           });
}

// What layers, routers, rows of a hop and trainings of L18 are cast by: recipes, or one of them with an option, or several.
bool is_of_experts(const LabEntry& entry, const Field& field) {
    return entry.id == "experts" && std::ranges::all_of(field.choices, [](const Choice& choice) {
               TrainOptions options;
               options.model = "moe", options.recipes = choice.id;
               return !make_train_spec(options).arms.empty();
           });
}

// Of a lab that has a list of its own.
bool is_of_its_lab(const LabEntry& entry, const Field& field) {
    return is_of_clinic(entry, field) || is_of_ranks(entry, field) || is_of_serving(entry, field) ||
           is_of_experts(entry, field);
}

}  // namespace

TEST_CASE("no other choice of a lab names formats or recipes") {
    for (const LabEntry& entry : lab_registry()) {
        const auto lab = entry.make();
        for (const Field& field : lab->fields()) {
            const auto names_one = [](const Choice& choice) {
                return std::ranges::find(formats(), choice.id, &FormatInfo::name) != formats().end() ||
                       std::ranges::find(recipes(), choice.id, &Recipe::base) != recipes().end();
            };
            const auto named = std::ranges::count_if(field.choices, names_one);
            CAPTURE(entry.id);
            CAPTURE(field.info.name);
            const bool of_formats = std::ranges::any_of(kMenus, [&](const Menu& menu) {
                return find_lab(menu.lab).id == entry.id && menu.field == field.info.name;
            });
            const bool of_recipes = (entry.id == "train" && field.info.name.starts_with("arm_")) ||
                                    (entry.id == "transformer" && field.info.name.starts_with("arm_")) ||
                                    (entry.id == "speed" && field.info.name == "recipe") ||
                                    (entry.id == "workbench" && field.info.name == "run_recipe");
            // What is kept, not what is cast: a byte has one entry, whatever format of 8 bits; plans named as recipes.
            const bool of_bytes = entry.id == "memory" && (field.info.hidden || field.info.name == "plan" ||
                                                           field.info.name == "compare");
            // Both four-bit formats: MXFP4 and NVFP4 are names of recipes too.
            const bool of_blocks = entry.id == "four" && field.info.name == "format";
            // The recipes of its list (recipe_lists_test.cpp).
            const bool of_scales = entry.id == "blocks" && field.info.name == "scheme";
            // The formats that attention and v are cast to by those who do it, among them no FP16.
            const bool of_wide = entry.id == "wide" && field.info.name.ends_with("format");
            // The recipes of its lists, under the names that they have there; lower_test.cpp compares its menus with them.
            const bool of_lower = entry.id == "lower";
            // All recipes of a scan are its columns, and it can be sorted by each.
            const bool of_scan = entry.id == "workbench" && has_scan_recipes(field);
            // Sums of gradients: what `train --accumulate-in` takes.
            const bool of_sums = field.info.name == "accumulate_in" &&
                                 std::ranges::all_of(field.choices, [](const Choice& choice) {
                                     TrainOptions options;
                                     options.accumulate = 2;
                                     options.accumulate_in = choice.id;
                                     return make_train_spec(options).accumulate.format == choice.id;
                                 });
            // Operands of one GEMM: formats and recipes, each a value of that option.
            const bool of_inputs =
                entry.id == "transformer" && field.info.name.ends_with("_in") && !of_sums &&
                std::ranges::all_of(field.choices, [&](const Choice& choice) {
                    return choice.id == "recipe" ||
                           has_inputs(parse_recipe("delayed:" + field.info.name + "=" + choice.id));
                });
            // What AdamW keeps of weights between two updates: formats, each a value of that option.
            const bool of_moments =
                (entry.id == "train" || entry.id == "transformer") &&
                (field.info.name == "m" || field.info.name == "v" || field.info.name == "master") &&
                std::ranges::all_of(field.choices, [&](const Choice& choice) {
                    return parse_recipe("delayed:" + field.info.name + "=" + choice.id).base == "delayed";
                });
            if (named > 1)
                CHECK((is_of_its_lab(entry, field) || of_formats || of_recipes || of_bytes || of_blocks ||
                       of_scales || of_wide || of_lower || of_scan || of_inputs || of_sums || of_moments));
        }
    }
}

TEST_CASE("every choice of a format can be made, and the lab computes it") {
    for (const Menu& menu : kMenus) {
        if (menu.lab == "L8") continue;  // a training; below
        const auto lab = find_lab(menu.lab).make();
        for (const std::string& id : ids(field_of(*lab, menu.field).choices)) {
            CAPTURE(menu.lab);
            CAPTURE(id);
            set_field(lab->fields(), std::string(menu.field) + "=" + id);
            lab->update();
            CHECK(field_text(field_of(*lab, menu.field)) == id);
            CHECK_FALSE(lab->metrics().empty());
        }
    }
}

TEST_CASE("the arms of L8 are all recipes of the table, by their labels") {
    const auto lab = find_lab("L8").make();
    for (const std::string_view arm : {"arm_a", "arm_b", "arm_c"}) {
        CAPTURE(arm);
        std::vector<Choice> choices = field_of(*lab, arm).choices;
        if (arm == "arm_c") {
            REQUIRE(choices.front().id == "none");
            choices.erase(choices.begin());
        }
        REQUIRE(choices.size() == recipes().size());
        for (std::size_t i = 0; i < choices.size(); ++i) {
            CHECK(choices[i].id == recipes()[i].base);
            CHECK(choices[i].label == recipes()[i].label);
            set_field(lab->fields(), std::string(arm) + "=" + choices[i].id);
        }
    }
}

TEST_CASE("the recipes of L9 are those whose products are recorded, by their labels") {
    const auto lab = find_lab("L9").make();
    const std::vector<Choice> choices = field_of(*lab, "recipe").choices;
    Ids recorded;  // rows that a GPU has kernels for
    for (const RecipeRow& row : recipe_rows())
        for (const Listing& listing : row.listed)
            if (meet(listing.in, RecipeList::gemm_grid)) recorded.emplace_back(row.recipe.base);
    CHECK(ids(choices) == recorded);
    for (const Choice& choice : choices)
        CHECK(choice.label == std::ranges::find(recipes(), choice.id, &Recipe::base)->label);
}
