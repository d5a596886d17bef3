// The exercises of L3.
#include <fmt/format.h>

#include <cmath>

#include "core/base/units.h"
#include "labs/error/model.h"

namespace fp8lab::error {

namespace {

constexpr std::array kSketchAt = {1e-4, 6e-3, 0.4, 25.0, 1000.0};

std::string name_of_kind(const std::string& kind) {
    for (const Choice& choice : tensor_kinds())
        if (choice.id == kind) return choice.label;
    return kind;
}

std::string percent(double ratio) { return format_number(100 * ratio, 3, true) + " %"; }

Verdict worst_case(const Trail& trail, const Prediction*) {
    const auto condition = [&](const char* name, const char* label, double truth, double tolerance) {
        const double answer = trail.answered_number(name);
        std::vector<std::string> said;
        if (!std::isnan(answer))
            said.push_back(percent(answer));
        else if (const std::string typed = trail.answered(name); !typed.empty())
            said.push_back(typed + " is no number");
        return Condition{label, std::move(said), std::fabs(answer - truth) <= tolerance};
    };
    Verdict verdict{.conditions = {condition("e4m3", "E4M3, within 0.3 percentage points", 1.0 / 17, 0.003),
                                   condition("e5m2", "E5M2, within 0.6 percentage points", 1.0 / 9, 0.006)}};
    if (!verdict.passed()) return verdict;  // the curve that the sketch is compared with shows the answer
    for (const double x : kSketchAt) verdict.measured.push_back(worst_near(rounder_of("e4m3"), 1, x));
    return verdict;
}

constexpr std::array<std::string_view, 3> kCurves = {"a", "b", "c"};

std::string_view name_of(std::string_view rounder) {
    return rounder == "e4m3" ? "E4M3" : rounder == "e5m2" ? "E5M2" : "fixed point";
}

Verdict impostor(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double seed = now.number("seed");
    const auto truth = blind_order(std::isnan(seed) ? 0 : static_cast<int>(seed));
    Verdict verdict;
    bool all = true;
    for (std::size_t i = 0; i < kCurves.size(); ++i) all &= trail.answered(kCurves[i]) == name_of(truth[i]);
    // Not one by one: three conditions would let it be tried out.
    verdict.conditions = {{"all three names are right", {}, all},
                          {"the plot showed no names", {}, now.text("blind") == "on"}};
    return verdict;
}

Verdict disagree(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double mean[] = {now.number("e4m3.mean_rel"), now.number("e5m2.mean_rel")};
    const double l2[] = {now.number("e4m3.rel_l2"), now.number("e5m2.rel_l2")};
    return {
        .conditions = {{"mean relative: E5M2 wins", {percent(mean[0]), percent(mean[1])}, mean[1] < mean[0]},
                       {"relative L2: E4M3 wins", {percent(l2[0]), percent(l2[1])}, l2[0] < l2[1]}},
        .note = fmt::format(
            "{}{}, {}", name_of_kind(now.text("tensor")),
            now.text("tensor") == "lognormal" ? ", sigma " + format_number(now.number("sigma")) : "",
            now.text("scaling") == "amax" ? "amax scale" : "scale 1")};
}

Verdict twice_as_good(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double ratio = now.number("e5m2.mean_rel") / now.number("e4m3.mean_rel");
    const bool is_normal = now.text("tensor") == "normal" && now.text("file").empty();
    Verdict verdict{.conditions = {{"a Gaussian tensor",
                                    {now.text("file").empty() ? name_of_kind(now.text("tensor")) : "a file"},
                                    is_normal},
                                   {"scaled by its amax",
                                    {now.text("scaling") == "amax" ? "amax scale" : "scale 1"},
                                    now.text("scaling") == "amax"},
                                   {"E5M2’s mean error is 1.8 to 2.3 times E4M3’s",
                                    {format_number(ratio, 3)},
                                    ratio >= 1.8 && ratio <= 2.3}}};
    if (verdict.passed()) verdict.measured = {ratio};
    return verdict;
}

Exercise worst_case_exercise() {
    return {
        .id = "L3.1",
        .title = "Worst case",
        .question =
            "A number in the normal range of a format is rounded to nearest. How large can its relative "
            "error be at most, that is the error divided by the number? Enter the answer for E4M3 (right "
            "within 0.3 percentage points) and for E5M2 (within 0.6), as a fraction (1/20) or in percent (5 "
            "%). Read it from the highest peaks in the flat middle part of each curve, or drag the marker "
            "under the curves.",
        .prediction =
            CurvePrediction{
                .figure = "error",
                .x = {.label = "|x|", .scale = Scale::log10, .range = Range{1e-4, 1e3}},
                .y = {.label = "relative error %", .scale = Scale::log10, .range = Range{0.02, 200}},
                .at = {kSketchAt.begin(), kSketchAt.end()},
                .initial = 1},
        .predict =
            "How large can the relative error of rounding to E4M3 be for small and for large numbers? For "
            "each of the five x from 0.0001 to 1000, draw the largest relative error, in percent, of the "
            "numbers within a factor of 1.4 of x.",
        .covers = {"error"},
        .start = {"levels=off", "at=10"},
        .answers = {{.name = "e4m3", .label = "E4M3", .unit = "as 1/20 or 5 %"},
                    {.name = "e5m2", .label = "E5M2", .unit = "as 1/20 or 5 %"}},
        .hints = {"Which number between two neighbouring values is farthest from both? Among these numbers, "
                  "which is the smallest in its binade?",
                  "Drag the marker to 17, half way between 16 and 18. Enter a fraction or a percentage: 1/20 "
                  "or 5 %.",
                  "E4M3: 17 becomes 16, an error of 1 in 17. E5M2: 18 becomes 16, an error of 2 in 18, that "
                  "is 1/9."},
        .judge = worst_case,
        .explanation =
            "Half a gap is 1/16 of the power of two below the number, and the worst number is half a gap "
            "above that power: 1/17, the same in every binade. With one mantissa bit less it is 1/9. "
            "Below the normal range the gap stops shrinking, so the relative error grows: that is the "
            "left cliff.",
        .uncovers = {"levels=on"},
        .solver = {types("e4m3", "1/17"), types("e5m2", "11.1 %")},
        .near_misses = {NearMiss{"half a gap over the power of two, not over the number",
                                 {types("e4m3", "1/16"), types("e5m2", "1/8")},
                                 "E4M3, within 0.3 percentage points"},
                        NearMiss{"E4M3’s level for both",
                                 {types("e4m3", "5.88 %"), types("e5m2", "5.88 %")},
                                 "E5M2, within 0.6 percentage points"}}};
}

Exercise impostor_exercise() {
    const std::vector<std::string> names = {"E4M3", "E5M2", "fixed point"};
    return {.id = "L3.2",
            .title = "Catch the impostor",
            .question =
                "The three curves show the relative error of three ways to round: E4M3, E5M2, and the "
                "fixed-point rounding that a widely used FP8 notebook (a published Jupyter notebook) calls "
                "E4M3. The curves have no names, only the letters A, B and C. Choose the right name for each "
                "letter: all three must be right.",
            .start = {"blind=on", "seed=3"},
            .answers = {{.name = "a", .label = "A", .unit = {}, .choices = names},
                        {.name = "b", .label = "B", .unit = {}, .choices = names},
                        {.name = "c", .label = "C", .unit = {}, .choices = names}},
            .hints = {"Only a floating-point format has the same relative error at 0.1 as at 100.",
                      "One curve falls to the right and is 100 % at 0.05: this way of rounding turns 0.05 "
                      "into 0. Of the other two, the one with the higher peaks has fewer mantissa bits.",
                      "A stays at 11.1 %, B falls, C stays at 5.88 %."},
            .judge = impostor,
            .explanation =
                "round(x * 8) / 8 has gaps of 1/8 everywhere: it turns a weight of 0.05 into 0, and at 100 "
                "it is far more precise than E4M3. A relative error that falls as the value grows is the "
                "sign of a fixed-point grid, whatever it is called.",
            .uncovers = {"blind=off"},
            .solver = {types("a", "E5M2"), types("b", "fixed point"), types("c", "E4M3")},
            .near_misses = {NearMiss{"the formats mixed up",
                                     {types("a", "E4M3"), types("b", "fixed point"), types("c", "E5M2")},
                                     "all three names are right"},
                            NearMiss{"one is still without a name",
                                     {types("a", "E5M2"), types("b", "fixed point")},
                                     "all three names are right"}}};
}

Exercise disagree_exercise() {
    return {
        .id = "L3.3",
        .title = "Metrics disagree",
        .question =
            "Two error metrics can rank two formats differently. Choose Tensor, Sigma and Scale so that E5M2 "
            "has the smaller mean relative error and, on the same tensor, E4M3 has the smaller relative L2 "
            "error. Other controls may be moved too; Format and Compare with must show E4M3 and E5M2.",
        .start = {"tensor=lognormal", "sigma=1", "scaling=amax"},
        .columns = {"E4M3", "E5M2"},
        .hints = {"The L2 error is dominated by the large values; the mean relative error counts every value "
                  "once.",
                  "The control is Sigma. Make the small values too small for E4M3.",
                  "Log-normal with Sigma 3, scaled by amax: a quarter of the elements become 0 in E4M3, none "
                  "of the large ones."},
        .judge = disagree,
        .explanation =
            "An element that becomes 0 is 100 % wrong, but it adds almost nothing to an L2 norm that a "
            "few large elements dominate. E5M2 keeps more of the small elements, at twice the error for "
            "the others.",
        .solver = {sets("sigma", "3")},
        .near_misses = {
            NearMiss{
                "too few small values: E4M3 wins both", {sets("sigma", "1.5")}, "mean relative: E5M2 wins"},
            NearMiss{"unscaled: the large ones saturate in E4M3, E5M2 wins both",
                     {sets("sigma", "3"), sets("scaling", "one")},
                     "relative L2: E4M3 wins"}}};
}

Exercise twice_exercise() {
    return {
        .id = "L3.4",
        .title = "Twice as good",
        .question =
            "E4M3 has one mantissa bit more than E5M2, so its error should be half as large. Show it on a "
            "Gaussian tensor that is scaled by its amax: with Tensor and Scale, make the mean relative error "
            "of E5M2 1.8 to 2.3 times the mean relative error of E4M3. Format and Compare with must show "
            "E4M3 and E5M2.",
        .prediction = NumberPrediction{.label = "E5M2’s mean error / E4M3’s",
                                       .min = 0.01,
                                       .max = 200,
                                       .initial = 10,
                                       .logarithmic = true},
        .predict =
            "A Gaussian tensor is scaled by its amax and cast to E4M3 and to E5M2. By which factor is the "
            "mean relative error of E5M2 larger than that of E4M3 (below 1: smaller)? A widely used FP8 "
            "notebook prints 0.0.",
        .covers = {"table"},
        .start = {"tensor=lognormal", "sigma=3", "scaling=amax"},
        .hints = {"One mantissa bit more halves the gap. That helps only elements that do not become 0.",
                  "The control is Tensor. None of its elements may be left of the flat part of the curve.",
                  "Tensor normal, scaled by amax: the error of E5M2 is 2 times that of E4M3, within a few "
                  "percent."},
        .judge = twice_as_good,
        .explanation =
            "A Gaussian spans few binades: nearly all of it is on the flat part, where E5M2’s errors are "
            "twice as large. The notebook finds the opposite, by a factor of about 120, because its "
            "grids are fixed-point.",
        .solver = {sets("tensor", "normal")},
        .near_misses = {NearMiss{"not a Gaussian", {sets("tensor", "uniform")}, "a Gaussian tensor"},
                        NearMiss{"a Gaussian, unscaled",
                                 {sets("tensor", "normal"), sets("scaling", "one")},
                                 "scaled by its amax"}}};
}

}  // namespace

std::span<const Exercise> RoundingError::exercises() {
    static const std::array kExercises = {worst_case_exercise(), impostor_exercise(), disagree_exercise(),
                                          twice_exercise()};
    return kExercises;
}

}  // namespace fp8lab::error
