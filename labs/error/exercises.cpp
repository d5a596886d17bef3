// The exercises of L3.
#include <fmt/format.h>

#include "core/base/units.h"
#include "labs/error/model.h"

namespace fp8lab::error {

namespace {

constexpr std::array kSketchAt = {1e-4, 6e-3, 0.4, 25.0, 1000.0};

std::string percent(double ratio) { return format_number(100 * ratio, 3, true) + " %"; }

Verdict worst_case(const Trail& trail, const Prediction*) {
    const auto condition = [&](const char* name, const char* label, double truth, double tolerance) {
        const double answer = trail.answered_number(name);
        std::vector<std::string> said;
        if (!std::isnan(answer)) said.push_back(percent(answer));
        return Condition{label, std::move(said), std::fabs(answer - truth) <= tolerance};
    };
    Verdict verdict{.conditions = {condition("e4m3", "E4M3, within 0.3 points", 1.0 / 17, 0.003),
                                   condition("e5m2", "E5M2, within 0.6 points", 1.0 / 9, 0.006)}};
    if (!verdict.passed()) return verdict;  // what the sketch is held against holds the answer
    for (const double x : kSketchAt) verdict.measured.push_back(worst_near(rounder_of("e4m3"), 1, x));
    return verdict;
}

constexpr std::array<std::string_view, 3> kCurves = {"a", "b", "c"};

std::string_view name_of(std::string_view rounder) {
    return rounder == "e4m3" ? "E4M3" : rounder == "e5m2" ? "E5M2" : "fixed point";
}

Verdict impostor(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto truth = blind_order(static_cast<int>(now.number("seed")));
    Verdict verdict;
    bool all = true;
    for (std::size_t i = 0; i < kCurves.size(); ++i) all &= trail.answered(kCurves[i]) == name_of(truth[i]);
    // Not one by one: three conditions would let it be tried out.
    verdict.conditions = {{"all three named rightly", {}, all},
                          {"while they carried no names", {}, now.text("blind") == "on"}};
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
            "{}{}, {}", now.text("tensor"),
            now.text("tensor") == "lognormal" ? ", sigma " + format_number(now.number("sigma")) : "",
            now.text("scaling") == "amax" ? "amax scale" : "scale 1")};
}

Verdict twice_as_good(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double ratio = now.number("e5m2.mean_rel") / now.number("e4m3.mean_rel");
    const bool is_normal = now.text("tensor") == "normal" && now.text("file").empty();
    Verdict verdict{
        .conditions = {
            {"a Gaussian tensor", {now.text("tensor")}, is_normal},
            {"scaled by its amax", {now.text("scaling")}, now.text("scaling") == "amax"},
            {"E5M2’s mean error over E4M3’s", {format_number(ratio, 3)}, ratio >= 1.8 && ratio <= 2.3}}};
    if (verdict.passed()) verdict.measured = {ratio};
    return verdict;
}

Exercise worst_case_exercise() {
    return {
        .id = "L3.1",
        .title = "Worst case",
        .question =
            "By how much of itself can a normal number be off at most? Read it off the teeth, for E4M3 and "
            "for E5M2.",
        .prediction =
            CurvePrediction{
                .figure = "error",
                .x = {.label = "|x|", .scale = Scale::log10, .range = Range{1e-4, 1e3}},
                .y = {.label = "relative error %", .scale = Scale::log10, .range = Range{0.02, 200}},
                .at = {kSketchAt.begin(), kSketchAt.end()},
                .initial = 1},
        .predict = "How wrong is E4M3 at which size? Draw the relative error from 0.0001 to 1000.",
        .start = {"levels=off", "at=10"},
        .answers = {{.name = "e4m3", .label = "E4M3", .unit = {}},
                    {.name = "e5m2", .label = "E5M2", .unit = {}}},
        .hints = {"Where between two neighbours is a number furthest from both, and next to which of them "
                  "does it weigh most?",
                  "Drag the marker to 17, half way between 16 and 18. Type a share: 0.05, 5 % or 1/20.",
                  "E4M3: 17 becomes 16, off by 1 in 17. E5M2: 18 becomes 16, off by 2 in 18, that is 1/9."},
        .judge = worst_case,
        .explanation =
            "Half a gap is 1/16 of the power of two below it, and the number itself is one half gap larger: "
            "1/17, in every "
            "binade alike. With one mantissa bit less it is 1/9. Below the normal range the gap stops "
            "shrinking: that is the left cliff.",
        .solver = {types("e4m3", "1/17"), types("e5m2", "11.1 %")},
        .near_misses = {
            NearMiss{"half a gap over the power of two, not over the number",
                     {types("e4m3", "1/16"), types("e5m2", "1/8")}},
            NearMiss{"E4M3’s level for both", {types("e4m3", "5.88 %"), types("e5m2", "5.88 %")}}}};
}

Exercise impostor_exercise() {
    const std::vector<std::string> names = {"E4M3", "E5M2", "fixed point"};
    return {.id = "L3.2",
            .title = "Catch the impostor",
            .question =
                "Two of these curves are formats, one is what the seed notebook calls E4M3. Which is which?",
            .start = {"blind=on", "seed=3"},
            .answers = {{.name = "a", .label = "A", .unit = {}, .choices = names},
                        {.name = "b", .label = "B", .unit = {}, .choices = names},
                        {.name = "c", .label = "C", .unit = {}, .choices = names}},
            .hints = {"Only a floating format is as precise at 0.1 as at 100.",
                      "One curve falls to the right and is 100 % at 0.05. Of the other two, the higher teeth "
                      "belong to fewer mantissa bits.",
                      "A keeps 11.1 %, B falls, C keeps 5.88 %."},
            .judge = impostor,
            .explanation =
                "round(x * 8) / 8 has steps of 1/8 everywhere: useless for weights of 0.05, far too good at "
                "100. An error that falls "
                "with the magnitude is the mark of a fixed-point grid, whatever it is called.",
            .solver = {types("a", "E5M2"), types("b", "fixed point"), types("c", "E4M3")},
            .near_misses = {
                NearMiss{"the formats mixed up",
                         {types("a", "E4M3"), types("b", "fixed point"), types("c", "E5M2")}},
                NearMiss{"one is still without a name", {types("a", "E5M2"), types("b", "fixed point")}}}};
}

Exercise disagree_exercise() {
    return {
        .id = "L3.3",
        .title = "Metrics disagree",
        .question = "Make one tensor on which E5M2 wins by mean relative error and E4M3 wins by relative L2.",
        .start = {"tensor=lognormal", "sigma=1", "scaling=amax"},
        .columns = {"E4M3", "E5M2"},
        .hints = {"L2 listens to the large values, the mean to every value once.",
                  "Sigma. Push small values off E4M3’s left cliff.",
                  "Log-normal with sigma 3, scaled by amax: a quarter of the elements become 0 in E4M3, none "
                  "of the large ones."},
        .judge = disagree,
        .explanation =
            "An element that becomes 0 is 100 % wrong, but it adds next to nothing to an L2 norm that a few "
            "large ones make. "
            "E5M2 for gradients is about not losing the small ones, at twice the error for the rest.",
        .solver = {sets("sigma", "3")},
        .near_misses = {NearMiss{"too few small values: E4M3 wins both", {sets("sigma", "1.5")}},
                        NearMiss{"unscaled: the large ones saturate in E4M3, E5M2 wins both",
                                 {sets("sigma", "3"), sets("scaling", "one")}}}};
}

Exercise twice_exercise() {
    return {
        .id = "L3.4",
        .title = "Twice as good",
        .question =
            "Find the data on which E4M3’s extra mantissa bit is worth what it promises, scaled by amax.",
        .prediction = NumberPrediction{.label = "E5M2’s mean error over E4M3’s",
                                       .min = 0.01,
                                       .max = 200,
                                       .initial = 10,
                                       .logarithmic = true},
        .predict =
            "On Gaussian data, how many times E4M3’s mean relative error is E5M2’s? The notebook prints 0.0.",
        .start = {"tensor=lognormal", "sigma=3", "scaling=amax"},
        .hints = {"One bit halves the gap. It helps only elements that are still there.",
                  "Tensor. No element of it may lie near the left cliff.",
                  "Normal, scaled by amax: 2 times within a few percent."},
        .judge = twice_as_good,
        .explanation =
            "A Gaussian spans few binades: all of it lies on the flat part, where the teeth of E5M2 are "
            "twice as high. The notebook "
            "finds about 120 times the other way, because its grids are fixed-point.",
        .solver = {sets("tensor", "normal")},
        .near_misses = {
            NearMiss{"not a Gaussian", {sets("tensor", "uniform")}},
            NearMiss{"a Gaussian, unscaled", {sets("tensor", "normal"), sets("scaling", "one")}}}};
}

}  // namespace

std::span<const Exercise> ErrorLab::exercises() const {
    static const std::array kExercises = {worst_case_exercise(), impostor_exercise(), disagree_exercise(),
                                          twice_exercise()};
    return kExercises;
}

}  // namespace fp8lab::error
