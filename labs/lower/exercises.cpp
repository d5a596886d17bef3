// The exercises of L11. All are about the digits of seed 1.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/lower/model.h"

namespace fp8lab::lower_lab {
namespace {

std::vector<std::string> percent(double value) {
    return {std::isfinite(value) ? fmt::format("{:.2f} %", value) : std::string("–")};
}

// The fields of the mix, the same in both states.
bool same_formats(const State& a, const State& b) {
    if (a.text("uniform") != b.text("uniform")) return false;
    if (a.text("uniform") != "mix") return true;
    for (std::size_t l = 1; l <= kLayerFields; ++l)
        for (const char* name : {"w", "a"})
            if (a.text(name + std::to_string(l)) != b.text(name + std::to_string(l))) return false;
    return true;
}
bool is(const State& s, std::initializer_list<std::pair<const char*, const char*>> fields) {
    for (const auto& [name, value] : fields)
        if (s.text(name) != value) return false;
    return true;
}
bool plain_inputs(const State& s) { return s.number("outlier_ratio") == 1 && s.number("contrast") == 1; }

// ---- L11.1
Verdict rescue(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    double worst = 0;
    for (int l = 1; l <= 4; ++l) worst = std::max(worst, now.number(fmt::format("rel_l2_w_{}", l)));
    const bool same = is(now, {{"network", "digits"}, {"smoothing", "off"}}) && plain_inputs(now);
    const bool close = worst <= kMostRelL2, few = now.number("bits") <= kFewBits;
    return {.conditions = {{"digits, no outliers, contrast 1, no smoothing", {}, same},
                           {"every weight matrix within 10 % (relative L2)", percent(100 * worst), close},
                           {"at most 4.6 bits per weight", {fmt::format("{:.2f}", now.number("bits"))}, few}},
            .measured = same && close && few ? std::vector<double>{2} : std::vector<double>{}};
}

// ---- L11.2
bool with_outliers(const State& s) {
    return is(s, {{"network", "digits"}, {"lower", "both"}, {"act_scale", "dynamic"}}) &&
           s.number("outlier_ratio") >= kRatio && s.number("contrast") == 1;
}
bool fails(const State& s) {
    return with_outliers(s) && s.text("smoothing") == "off" && s.number("accuracy_pct") < kFails_pct;
}
bool does_not_notice(const State& s) {
    return with_outliers(s) && s.text("smoothing") == "off" && s.number("accuracy_pct") >= kNotices_pct;
}
Verdict outlier_trap(const Trail& trail, const Prediction*) {
    std::vector<const State*> states = {&trail.start};
    for (const Step& step : trail.steps) states.push_back(&step.after);
    bool rescued = false;
    double nvfp4 = std::nan("");
    for (const State* failed : states) {
        if (!fails(*failed)) continue;
        nvfp4 = failed->number("nvfp4.accuracy_pct");
        for (const State* later : states)
            rescued =
                rescued || (with_outliers(*later) && later->text("smoothing") != "off" &&
                            later->number("accuracy_pct") >= kRescued_pct && same_formats(*failed, *later));
    }
    const bool failed = trail.visited(fails), unmoved = trail.visited(does_not_notice);
    const auto now = percent(trail.now().number("accuracy_pct"));
    return {.conditions = {{"digits, weights and activations, dynamic scales, contrast 1, outliers ×64 or "
                            "more, no smoothing: below 90 %",
                            now, failed},
                           {"another format, the same: 97 % or more", now, unmoved},
                           {"the first one’s formats with smoothing: 96 % or more", now, rescued}},
            .measured = failed && unmoved && rescued ? std::vector<double>{nvfp4} : std::vector<double>{}};
}

// ---- L11.3
Verdict budget_game(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same =
        is(now, {{"network", "digits"}, {"lower", "both"}, {"act_scale", "dynamic"}, {"smoothing", "off"}}) &&
        plain_inputs(now);
    const bool own = now.number("budget") >= kMostBits;
    const double bits = now.number("bits"), divergence = now.number("divergence");
    const bool few = bits <= kBudgetBits, close = divergence <= kBudgetDivergence;
    return {.conditions =
                {{"digits, weights and activations, dynamic scales, no outliers, contrast 1, no smoothing",
                  {},
                  same},
                 {"your own mix, without a budget", {}, own},
                 {"at most 5.6 bits per weight", {fmt::format("{:.2f}", bits)}, few},
                 {"divergence at most 0.006", {divergence_text(divergence)}, close}},
            .measured = same && own && few && close ? std::vector<double>{1} : std::vector<double>{}};
}

// ---- L11.4
Verdict out_of_range(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same = is(now, {{"network", "digits"},
                               {"lower", "both"},
                               {"act_scale", "calibrated"},
                               {"uniform", "e4m3"},
                               {"smoothing", "off"}}) &&
                      now.number("contrast") == 4 && now.number("outlier_ratio") == 1;
    const bool batches = now.number("batches") == 4;
    const double accuracy = now.number("accuracy_pct");
    return {.conditions = {{"digits, all weights and activations in E4M3, calibrated scales, contrast 4, no "
                            "outliers, no smoothing",
                            {},
                            same},
                           {"4 calibration batches", {now.text("batches")}, batches},
                           {"96.5 % right answers or more", percent(accuracy), accuracy >= kInRange_pct}},
            .measured = same && batches && accuracy >= kInRange_pct
                            ? std::vector<double>{trail.start.number("saturated_pct_a_1")}
                            : std::vector<double>{}};
}

// ---- L11.5
Verdict twice(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same = is(now, {{"network", "digits"},
                               {"experiment", "cascade"},
                               {"low", "mxfp4"},
                               {"high", "mxfp8"},
                               {"smoothing", "off"}}) &&
                      plain_inputs(now);
    const double accuracy = now.number("cascade_pct"), cost = now.number("cost");
    const bool right = accuracy >= kCascade_pct, cheap = cost <= kCascadeCost;
    return {.conditions = {{"digits, a cascade of MXFP4, then MXFP8, no outliers, contrast 1, no smoothing",
                            {},
                            same},
                           {"97.3 % right answers or more", percent(accuracy), right},
                           {"at most 0.6 of the work", {fmt::format("{:.3f}", cost)}, cheap}},
            .measured = same && right && cheap ? std::vector<double>{now.number("repeated_pct")}
                                               : std::vector<double>{}};
}

// ---- L11.6: 16 GB, 32 layers, 8 KV heads of 128.
constexpr std::array kTokens = {std::pair{"bf16", 122'070.0}, std::pair{"fp8", 244'140.0},
                                std::pair{"nvfp4", 434'027.0}};
Verdict how_long(const Trail& trail, const Prediction*) {
    Verdict out;
    for (const auto& [name, right] : kTokens) {
        const double typed = trail.answered_number(name);
        out.conditions.push_back(
            {fmt::format("tokens in {}, within 0.5 %",
                         find_low_format(name == std::string_view("fp8") ? "e4m3" : name, "format").label),
             {trail.answered(name)},
             std::fabs(typed - right) <= 0.005 * right});
    }
    return out;
}

Exercise exercise_rescue() {
    return {
        .id = "L11.1",
        .title = "Rescue FP4",
        .question =
            "Keep every weight matrix of the digits’ network within 10 % (relative L2) at no more than 4.6 "
            "bits per weight.",
        .prediction = ChoicePrediction{{"E2M1, one scale", "MXFP4", "NVFP4", "none"}},
        .predict = "Which 4-bit format keeps every weight matrix within 10 %?",
        .covers = {"outputs"},
        .hints = {"What do 16 elements share?", "Every layer in.", "NVFP4."},
        .judge = rescue,
        .explanation =
            "NVFP4’s block scale is an E4M3 number, with a mantissa. MXFP4’s is a power of two, so the "
            "largest element of a block can be up to half of what E2M1 could hold: 11.8 to 12.4 % "
            "here, against 8.6 to 9.5 %.",
        .solver = {sets("uniform", "nvfp4")},
        .near_misses = {NearMiss{"11.8 % and more",
                                 {sets("uniform", "mxfp4")},
                                 "every weight matrix within 10 % (relative L2)"},
                        NearMiss{"one scale per tensor: 11.8 % and more",
                                 {sets("uniform", "e2m1")},
                                 "every weight matrix within 10 % (relative L2)"},
                        NearMiss{"within 3 %, but 6.25 bits",
                                 {sets("uniform", "mxfp6-e2m3")},
                                 "at most 4.6 bits per weight"}}};
}

Exercise exercise_trap() {
    return {
        .id = "L11.2",
        .title = "The outlier trap",
        .question =
            "Make four channels at least 64 times larger; the network’s function stays the same. Show a "
            "format that answers below 90 % and one that still answers 97 %. Then bring the first one "
            "back to 96 % without changing a format.",
        .prediction =
            NumberPrediction{
                .label = "NVFP4, outliers ×64", .unit = "%", .min = 0, .max = 100, .initial = 90, .step = 1},
        .predict = "How many of the digits does NVFP4 answer rightly with outliers ×64?",
        .covers = {"outliers", "outputs"},
        .start = {"experiment=ranges"},
        .hints = {"Look at the underflow of A in layer 2, not at its SQNR.",
                  "Outlier channels, then Smoothing.",
                  "×64: NVFP4, then E4M3, then NVFP4 with smoothing 0.5."},
        .judge = outlier_trap,
        .explanation =
            "In a block of 16 the outlier sets the scale, and its neighbours become 0: a quarter of x2. "
            "The SQNR even rises, because the outliers are nearly all of the signal. Smoothing moves "
            "their size into the weights.",
        .solver = {sets("outlier_ratio", "64"), sets("uniform", "nvfp4"), sets("uniform", "e4m3"),
                   sets("uniform", "nvfp4"), sets("smoothing", "0.5")},
        .near_misses = {
            NearMiss{"×16: NVFP4 still answers 91 %",
                     {sets("outlier_ratio", "16"), sets("uniform", "nvfp4"), sets("uniform", "e4m3"),
                      sets("uniform", "nvfp4"), sets("smoothing", "0.5")},
                     "digits, weights and activations, dynamic scales, contrast 1, outliers ×64 or more, no "
                     "smoothing: below 90 %"},
            NearMiss{"weights alone: 96 % with outliers",
                     {sets("lower", "weights"), sets("outlier_ratio", "64"), sets("uniform", "nvfp4"),
                      sets("uniform", "e4m3"), sets("uniform", "nvfp4"), sets("smoothing", "0.5")},
                     "digits, weights and activations, dynamic scales, contrast 1, outliers ×64 or more, no "
                     "smoothing: below 90 %"},
            NearMiss{"the rescue changes the format",
                     {sets("outlier_ratio", "64"), sets("uniform", "nvfp4"), sets("uniform", "e4m3"),
                      sets("smoothing", "0.5")},
                     "the first one’s formats with smoothing: 96 % or more"},
            NearMiss{"nothing fails: smoothing comes first",
                     {sets("smoothing", "0.5"), sets("outlier_ratio", "64"), sets("uniform", "nvfp4"),
                      sets("uniform", "e4m3")},
                     "digits, weights and activations, dynamic scales, contrast 1, outliers ×64 or more, no "
                     "smoothing: below 90 %"}}};
}

Exercise exercise_budget() {
    const auto mix = [](const char* a, const char* b, const char* c, const char* d) {
        return std::vector<Event>{sets("w1", a), sets("w2", b), sets("w3", c), sets("w4", d)};
    };
    return {
        .id = "L11.3",
        .title = "Budget game",
        .question =
            "Spend at most 5.6 bits per weight, on weights and activations, and stay within a divergence "
            "of 0.006. Use the chips of the layers.",
        .prediction = ChoicePrediction{{"layer 1", "layer 2", "layer 3", "layer 4"}},
        .predict = "Which layer gets the fewest bits?",
        .covers = {"layers"},
        .hints = {"Which bar is short, and for how many weights does it stand?", "The chips of layer 2.",
                  "MXFP6 E2M3, MXFP4, MXFP6 E2M3, MXFP6 E2M3."},
        .judge = budget_game,
        .explanation =
            "Layer 2 holds 44 % of the weights, and four bits cost it least. 11 of the 4 096 mixes pass: "
            "in each, layer 1 has MXFP6 E2M3 and layer 2 four bits. The figure shows all of them from now "
            "on.",
        .reveals = "reveal",
        .solver = mix("mxfp6-e2m3", "mxfp4", "mxfp6-e2m3", "mxfp6-e2m3"),
        .near_misses = {
            NearMiss{"the same bits, layers 1 and 2 swapped",
                     mix("mxfp4", "mxfp6-e2m3", "mxfp6-e2m3", "mxfp6-e2m3"), "divergence at most 0.006"},
            NearMiss{"layer 4, the smallest, in four bits too",
                     mix("mxfp6-e2m3", "mxfp4", "mxfp6-e2m3", "nvfp4"), "divergence at most 0.006"},
            NearMiss{"6.25 bits", mix("mxfp6-e2m3", "mxfp6-e2m3", "mxfp6-e2m3", "mxfp6-e2m3"),
                     "at most 5.6 bits per weight"},
            NearMiss{"the budget found it",
                     {acts("reveal"), sets("budget", "5.6")},
                     "your own mix, without a budget"}}};
}

Exercise exercise_range() {
    return {
        .id = "L11.4",
        .title = "Out of range",
        .question =
            "The scales were calibrated on 4 batches, and now the inputs are 4 times brighter: E4M3 answers "
            "91 %. Bring it to 96.5 % without dynamic scales and without more batches.",
        .prediction =
            NumberPrediction{
                .label = "x1 that saturates", .unit = "%", .min = 0, .max = 100, .initial = 10, .step = 1},
        .predict = "How many of the input pixels saturate at contrast 4?",
        .covers = {"saturated"},
        .start = {"experiment=ranges", "uniform=e4m3", "act_scale=calibrated", "contrast=4"},
        .hints = {"By how many powers of two are the inputs too large?", "Margin.", "Margin 2."},
        .judge = out_of_range,
        .explanation =
            "A margin of 2 leaves 4 times the calibrated amax free. It costs E4M3 nothing at contrast 1 "
            "(0.0017 with and without it), and INT8 a factor of 7 (2.6e-4 and 1.9e-3): what is too "
            "small for a float is not what is too small for an integer, as in L4.",
        .solver = {sets("margin", "2")},
        .near_misses = {
            NearMiss{"a margin of 1 is half of it", {sets("margin", "1")}, "96.5 % right answers or more"},
            NearMiss{"bright rows are not in the training data either",
                     {sets("batches", "16")},
                     "4 calibration batches"},
            NearMiss{"dynamic scales",
                     {sets("act_scale", "dynamic")},
                     "digits, all weights and activations in E4M3, calibrated scales, contrast 4, no "
                     "outliers, no smoothing"},
            NearMiss{"no contrast",
                     {sets("contrast", "1")},
                     "digits, all weights and activations in E4M3, calibrated scales, contrast 4, no "
                     "outliers, no smoothing"}}};
}

Exercise exercise_cascade() {
    return {.id = "L11.5",
            .title = "Twice where it doubts",
            .question =
                "A cascade of MXFP4 and MXFP8: answer at least 97.3 % of the digits rightly, at no more than "
                "0.6 of the work of MXFP8 alone.",
            .prediction =
                NumberPrediction{
                    .label = "rows repeated", .unit = "%", .min = 0, .max = 100, .initial = 30, .step = 1},
            .predict = "How many of the rows have to be repeated?",
            .covers = {"cascade", "cost", "margins"},
            .start = {"experiment=cascade"},
            .hints = {"At which margins are the wrong answers in the histogram?", "Repeat below.", "0.9."},
            .judge = twice,
            .explanation =
                "MXFP4 errs mostly where its two best classes are close. Repeating 8 % of the rows gives "
                "the answers of MXFP8. At 0.99 every seventh row is repeated, and the answers get no "
                "better.",
            .solver = {sets("tau", "0.9")},
            .near_misses = {
                NearMiss{"96.4 %", {sets("tau", "0.5")}, "97.3 % right answers or more"},
                NearMiss{"0.645 of the work", {sets("tau", "0.99")}, "at most 0.6 of the work"},
                NearMiss{"97.1 %: a repeated row can become wrong",
                         {sets("tau", "0.95")},
                         "97.3 % right answers or more"},
                NearMiss{"another low format",
                         {sets("low", "nvfp4"), sets("tau", "0.7")},
                         "digits, a cascade of MXFP4, then MXFP8, no outliers, contrast 1, no smoothing"}}};
}

Exercise exercise_kv() {
    const auto answers = [](const char* bf16, const char* fp8, const char* nvfp4) {
        return std::vector<Event>{types("bf16", bf16), types("fp8", fp8), types("nvfp4", nvfp4)};
    };
    return {
        .id = "L11.6",
        .title = "How long a context?",
        .question =
            "A model has 32 layers and 8 KV heads of 128. How many tokens fit into 16 GB (16 × 10^9 bytes) "
            "of KV cache in BF16, in FP8 with one scale per tensor, and in NVFP4?",
        .start = {"experiment=kv", "kv_gb=1"},
        .answers = {{"bf16", "in BF16", "tokens"},
                    {"fp8", "in FP8", "tokens"},
                    {"nvfp4", "in NVFP4", "tokens"}},
        .hints = {"Keys and values of each layer and head are kept.", "Budget of the cache, and the dots.",
                  "122 070, 244 140, 434 027."},
        .judge = how_long,
        .explanation = "FP8 is exactly 2 times BF16, NVFP4 3.56 times: its scales take half a bit per value.",
        .solver = answers("122070", "244140", "434027"),
        .near_misses = {NearMiss{"NVFP4 without its scales: 4 times", answers("122070", "244140", "488281"),
                                 "tokens in NVFP4, within 0.5 %"},
                        NearMiss{"keys without values", answers("244140", "488281", "868055"),
                                 "tokens in BF16, within 0.5 %"},
                        NearMiss{"2^30 bytes per GB", answers("131072", "262144", "466033"),
                                 "tokens in BF16, within 0.5 %"}}};
}

}  // namespace

std::span<const Exercise> LowerLab::exercises() const {
    static const std::array kAll = {exercise_rescue(), exercise_trap(),    exercise_budget(),
                                    exercise_range(),  exercise_cascade(), exercise_kv()};
    return kAll;
}

}  // namespace fp8lab::lower_lab
