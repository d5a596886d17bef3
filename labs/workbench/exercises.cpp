// The exercises of the Workbench. Their judges hold for any file; the specimens are of the shipped samples.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {
namespace {

bool demands_stay(const State& now, const State& start) {
    for (const std::string_view field :
         {"min_sqnr", "max_underflow", "min_row", "max_bits", "cast_as", "mx_rule"})
        if (now.text(field) != start.text(field)) return false;
    return true;
}
std::vector<std::string> number_cell(double value, const char* unit) {
    return {std::isfinite(value) ? screen_number(value, 3) + unit : std::string("\u2013")};
}

// As the table calls it.
std::string label_of_recipe(const std::string& id) {
    for (const ScanRecipe& recipe : scan_recipes())
        if (recipe.id == id) return recipe.label;
    return id;
}

// ---- W.1
Verdict fewest_bits(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same = demands_stay(now, trail.start), large = now.number("elements") >= 1024;
    const std::string chosen = now.text("recipe");
    const bool best = chosen == now.text("recommended");
    const double family = chosen == "current" || chosen == "e5m2" || chosen == "rowwise" ? 2
                          : chosen == "bf16"                                             ? 3
                          : chosen == "mxfp8" || chosen == "block128"                    ? 1
                                                                                         : 0;
    return {.conditions = {{"all demands and the casts as they were: 25 dB, 1 %", {}, same},
                           {"1024 elements or more", number_cell(now.number("elements"), ""), large},
                           {"no recipe that meets them has fewer bits", {label_of_recipe(chosen)}, best}},
            .measured = same && large && best ? std::vector<double>{family} : std::vector<double>{}};
}

// ---- W.2
bool near_share(double typed, double pct) {  // as a percentage, or as a share
    return std::fabs(typed - pct) <= 0.1 * pct || std::fabs(100 * typed - pct) <= 0.1 * pct;
}
Verdict zeros_without_loss(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double lost = now.number("lost_l1_pct"), zeros = now.number("underflow_pct_current");
    const bool one_scale = now.text("recipe") == "current", many = zeros >= 10;
    const bool share = one_scale && many && near_share(trail.answered_number("share"), lost);
    const bool common = trail.answered("common") == "attention";
    return {
        .conditions = {{"E4M3, one scale", {label_of_recipe(now.text("recipe"))}, one_scale},
                       {"10 % or more become 0", number_cell(zeros, " %"), many},
                       {"the share of the absolute sum, within a tenth", {trail.answered("share")}, share},
                       {"what the six have in common", {trail.answered("common")}, common}},
        .measured = share && common ? std::vector<double>{3} : std::vector<double>{}};
}

// ---- W.3
Verdict upwards(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const std::string recipe = now.text("recipe");
    const double sqnr = now.number("sqnr_db_" + recipe), zero = now.number("underflow_pct_" + recipe),
                 bits = now.number("bits_" + recipe);
    return {.conditions = {{"8.1 bits or fewer", number_cell(bits, ""), bits <= 8.1},
                           {"25 dB or more", number_cell(sqnr, " dB"), sqnr >= 25},
                           {"20 % or more become 0", number_cell(zero, " %"), zero >= 20}}};
}

// ---- W.4
Verdict before_and_after(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double amax = now.number("kind_amax_log2"), least = now.number("kind_least_log2");
    return {.conditions = {{"a second file is compared", {now.text("compare")}, !now.text("compare").empty()},
                           {"the amax of the kind rose", number_cell(amax, " binades"), amax > 0},
                           {"its smallest value fell by 3 binades or more", number_cell(least, " binades"),
                            least <= -3}}};
}

Exercise exercise_fewest() {
    return {
        .id = "W.1",
        .title = "Fewest bits",
        .question =
            "The table of recipes is covered. Find the recipe with the fewest bits that keeps this tensor at "
            "25 dB and turns at most 1 % into 0. Any other tensor of 1024 elements or more will do too.",
        .prediction = ChoicePrediction{{"4 or 6 bits", "8 bits in blocks", "8 bits, one scale", "16 bits"}},
        .predict =
            "Of which family is the recipe with the fewest bits that keeps 25 dB and turns at most 1 % of "
            "this gradient into 0?",
        .covers = {"recipes"},
        .start = {"tensor=dact.blocks.4.gate_up", "recipe=bf16", "covered=true"},
        .hints = {"Start at 4 bits and go up.", "Press a recipe and watch zero %, not SQNR.",
                  "E4M3 with one scale."},
        .judge = fewest_bits,
        .explanation =
            "6 bits keep the SQNR, and 5 % or more of these gradients are below their windows. E4M3 has "
            "17.8 binades: with one scale 0.70 % become 0, at 8.00 bits. MXFP8 meets the demands "
            "too, with 8.25.",
        .uncovers = {"covered=false"},
        .solver = {sets("recipe", "current")},
        .near_misses = {
            NearMiss{"20.7 % become 0",
                     {sets("recipe", "mxfp6-e2m3")},
                     "no recipe that meets them has fewer bits"},
            NearMiss{
                "5.2 % become 0", {sets("recipe", "mxfp6-e3m2")}, "no recipe that meets them has fewer bits"},
            NearMiss{"meets them with 8.25 bits",
                     {sets("recipe", "mxfp8")},
                     "no recipe that meets them has fewer bits"},
            NearMiss{"another demand",
                     {sets("max_underflow", "10"), sets("recipe", "mxfp6-e3m2")},
                     "all demands and the casts as they were: 25 dB, 1 %"}}};
}

Exercise exercise_zeros() {
    return {
        .id = "W.2",
        .title = "Zeros without loss",
        .question =
            "With one E4M3 scale six tensors turn 10 % or more of their elements into 0. Select one of them. "
            "What share of its absolute sum do these zeros take away, in %? And what do the six have in "
            "common?",
        .prediction = ChoicePrediction{{"about 20 %", "about 1 %", "about 0.01 %", "less than 0.01 %"}},
        .predict =
            "18 % of a tensor become 0. How much of its absolute sum is that, at least in one of the six?",
        .covers = {"places"},
        .start = {"tensor=blocks.1.qkv.weight"},
        .answers = {{"share", "lost share", "%"},
                    {"common", "they are", "", {"weights", "moments", "attention", "inputs of block 1"}}},
        .hints = {"The table is sorted by it: the first rows.", "The line under the strip Where.",
                  "act.blocks.4.attention.p: 0.00038 %, inside attention."},
        .judge = zeros_without_loss,
        .explanation =
            "Probabilities of a softmax add up to 1, and the smallest of them are below 10^-17. That they "
            "become 0 changes nothing. Underflow is a question, not a verdict: of Adam\u2019s v of the "
            "embedding only 0.34 % become 0, and there the update divides by the root of 0.",
        .solver = {sets("tensor", "act.blocks.4.attention.p"), types("share", "0.00038"),
                   types("common", "attention")},
        .near_misses = {NearMiss{"the share of elements, not of the sum",
                                 {sets("tensor", "act.blocks.4.attention.p"), types("share", "17.9"),
                                  types("common", "attention")},
                                 "the share of the absolute sum, within a tenth"},
                        NearMiss{"a tensor with 0.34 %",
                                 {sets("tensor", "adam.v.embedding.weight"), types("share", "0.0000037"),
                                  types("common", "attention")},
                                 "10 % or more become 0"},
                        NearMiss{"they are not all inputs",
                                 {sets("tensor", "act.blocks.4.attention.p"), types("share", "0.00038"),
                                  types("common", "inputs of block 1")},
                                 "what the six have in common"},
                        NearMiss{"another recipe is shown",
                                 {sets("tensor", "act.blocks.4.attention.p"), sets("recipe", "mxfp8"),
                                  types("share", "0.00038"), types("common", "attention")},
                                 "E4M3, one scale"}}};
}

Exercise exercise_upwards() {
    return {
        .id = "W.3",
        .title = "SQNR and large elements",
        .question =
            "Find a tensor and a recipe of at most 8.1 bits that keeps 25 dB and still turns 20 % or more of "
            "the elements into 0.",
        .prediction = ChoicePrediction{{"yes", "no"}},
        .predict = "Can an SQNR of 25 dB go with a fifth of the elements lost?",
        .covers = {"recipes"},
        .hints = {"Which metric depends on the large elements only?", "Sort the table by another recipe.",
                  "dact.head in MXFP6 E2M3."},
        .judge = upwards,
        .explanation =
            "SQNR compares sums of squares, which the largest elements make. 67 % of dact.head become 0 "
            "in MXFP6 E2M3, and the SQNR is 29.8 dB.",
        .solver = {sets("tensor", "dact.head"), sets("recipe", "mxfp6-e2m3")},
        .near_misses = {
            NearMiss{"18.1 % become 0",
                     {sets("tensor", "act.blocks.1.down"), sets("recipe", "mxfp6-e2m3")},
                     "20 % or more become 0"},
            NearMiss{
                "too low an SQNR", {sets("tensor", "dact.head"), sets("recipe", "mxfp4")}, "25 dB or more"},
            NearMiss{"everything is lost, and the SQNR too",
                     {sets("tensor", "dact.head"), sets("recipe", "unscaled")},
                     "25 dB or more"},
            NearMiss{"too many bits",
                     {sets("tensor", "dact.head"), sets("recipe", "mxfp8")},
                     "8.1 bits or fewer"}}};
}

Exercise exercise_before() {
    return {
        .id = "W.4",
        .title = "Before and after",
        .question =
            "Compare the sample with itself before training. Select a tensor whose kind has a larger amax "
            "after training, and a smallest value that fell by 3 binades or more.",
        .prediction = ChoicePrediction{{"weights", "weight gradients", "gradients of activations", "inputs"}},
        .predict =
            "In which kind of tensor does training raise the amax and lower the smallest value by 3 binades "
            "or more?",
        .covers = {"table"},
        .start = {"tensor=blocks.2.out.weight"},
        .hints = {"What becomes sharper in training?", "Compare with, then the table Before and after.",
                  "dact.blocks.4.attention.ds: amax rose 4.5 binades, the smallest value fell 38.6."},
        .judge = before_and_after,
        .explanation =
            "Attention becomes sharper: the largest probabilities grow towards 1, and the others shrink "
            "exponentially. The gradients of its scores spread with them, over 60 binades.",
        .solver = {sets("compare", "transformer-0"), sets("tensor", "dact.blocks.4.attention.ds")},
        .near_misses = {
            NearMiss{"its smallest value fell by 2.9 binades",
                     {sets("compare", "transformer-0"), sets("tensor", "blocks.2.out.weight")},
                     "its smallest value fell by 3 binades or more"},
            NearMiss{"its amax fell",
                     {sets("compare", "transformer-0"), sets("tensor", "grad.head.weight")},
                     "the amax of the kind rose"},
            NearMiss{"a softmax begins with a 1 already",
                     {sets("compare", "transformer-0"), sets("tensor", "act.blocks.4.attention.p")},
                     "the amax of the kind rose"},
            NearMiss{"nothing is compared",
                     {sets("tensor", "dact.blocks.4.attention.ds")},
                     "a second file is compared"}}};
}

}  // namespace

std::span<const Exercise> WorkbenchLab::exercises() const {
    static const std::array kExercises = {exercise_fewest(), exercise_zeros(), exercise_upwards(),
                                          exercise_before()};
    return kExercises;
}

}  // namespace fp8lab::workbench
