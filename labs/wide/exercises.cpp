// The exercises of L14.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/wide/model.h"

namespace fp8lab::wide {
namespace {

bool says(const State& s, std::string_view name, std::string_view word) { return s.text(name) == word; }
std::vector<std::string> percent(double value) {
    return {std::isfinite(value) ? share_text(value) + " %" : std::string("–")};
}

// ---- L14.1
Verdict long_context(const Trail& trail, const Prediction*) {
    const State &now = trail.now(), &start = trail.start;
    bool same = true;
    for (const std::string_view field : {"experiment", "keys", "sigma", "sink", "format", "seed"})
        same = same && now.text(field) == start.text(field);
    const double lost = now.number("a.lost_pct");
    return {.conditions = {{"131 072 keys, sigma 3, no sink, E4M3, the same seed", {}, same},
                           {fmt::format("at most {} % of the probability is lost", kMostLost_pct),
                            percent(lost), lost <= kMostLost_pct}},
            .measured = same && lost <= kMostLost_pct ? std::vector<double>{3} : std::vector<double>{}};
}

// ---- L14.2
Verdict where_is_the_edge(const Trail& trail, const Prediction*) {
    // ln(2^-10 / 256) = -18 ln 2.
    const double edge = trail.answered_number("edge"), right = -18 * std::log(2);
    return {
        .conditions = {{"s − max, within 0.1", {trail.answered("edge")}, std::fabs(edge - right) <= 0.1}}};
}

// ---- L14.3
bool of_zeros(const State& s) {
    return says(s, "experiment", "attention") && says(s, "cast", "exp1") && says(s, "format", "e4m3") &&
           says(s, "keys", "8192");
}
bool many_zeros(const State& s) {
    return of_zeros(s) && s.number("a.zero_pct") >= 99 && s.number("a.lost_pct") <= 0.5;
}
bool much_lost(const State& s) {
    return of_zeros(s) && s.number("a.zero_pct") <= 85 && s.number("a.lost_pct") >= 30;
}

Verdict zeros_and_mass(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const std::vector<std::string> here = {fmt::format("{} % and {} %", share_text(now.number("a.zero_pct")),
                                                       share_text(now.number("a.lost_pct")))};
    const bool first = trail.visited(many_zeros), second = trail.visited(much_lost);
    return {.conditions = {{"exp(s − max) × 1 in E4M3, 8 192 keys: 99 % zeros or more, 0.5 % lost or less",
                            here, first},
                           {"the same with 85 % zeros or fewer, 30 % lost or more", here, second}},
            .measured = first && second ? std::vector<double>{0} : std::vector<double>{}};
}

// ---- L14.4
constexpr int kMostMargin = 2;

Verdict too_big(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double steps = now.number("s.saturated_steps"), margin = now.number("margin");
    const bool same = says(now, "experiment", "swiglu") && now.number("rho") == 1 && now.number("k") == 4 &&
                      now.number("jump") == 2 && now.number("history") == 16 &&
                      now.text("seed") == trail.start.text("seed");
    const std::string fix = now.text("fix");
    const bool repaired = fix == "none" || fix == "current" || fix == "smooth" || fix == "clamp10";
    const bool enough = margin <= kMostMargin;
    const bool done = same && repaired && enough && steps == 0;
    return {.conditions = {{"alignment 1, norm 4, growth 2, history 16, the same seed", {}, same},
                           {"SwiGLU, not GELU", {fix}, repaired},
                           {"margin 2 or less", {now.text("margin")}, enough},
                           {"no step saturates", {now.text("s.saturated_at")}, steps == 0}},
            .measured = done ? std::vector<double>{2} : std::vector<double>{}};
}

// ---- L14.5
Verdict cannot_forget(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double bits = now.number("o.bits"), off = now.number("o.error_pct");
    const bool same = says(now, "experiment", "optimiser") && says(now, "signal", "forget") &&
                      now.number("steps") == 300 && now.number("v0") == 1;
    return {.conditions = {{"v = 1 at the start, 300 steps without a gradient", {}, same},
                           {"16 bits or less", {fmt::format("{} bits", screen_number(bits))}, bits <= 16},
                           {fmt::format("within {} % of the truth", screen_number(kMostOff_pct)),
                            percent(off), off <= kMostOff_pct}},
            .measured =
                same && bits <= 16 && off <= kMostOff_pct ? std::vector<double>{2} : std::vector<double>{}};
}

Exercise exercise_context() {
    return {
        .id = "L14.1",
        .title = "128k context",
        .question =
            "At 131 072 keys, lose at most 0.2 % of the probability in E4M3. Scores, sink and format stay "
            "as they are.",
        .prediction = ChoicePrediction{{"normalised × 1", "exp × 1", "exp × 256", "exp × 448"}},
        .predict = "Which is the first of these casts that loses at most 0.2 % at 131 072 keys?",
        .covers = {"mass", "keys", "casts"},
        .start = {"keys=131072"},
        .hints = {"Which of the four lines in the figure on the lower left is lowest?",
                  "Probabilities cast as.", "exp(s − max) × 448."},
        .judge = long_context,
        .explanation =
            "exp(s − max) has a 1 in every row, however many keys there are. Times 448 it uses all of "
            "E4M3’s range: 18.8 binades below the largest key. A normalised p becomes smaller with "
            "every key that is added. (The output of × 256, which FlashAttention-3 takes, is as good: what "
            "is lost is already tiny.)",
        .solver = {sets("cast", "exp448")},
        .near_misses = {
            NearMiss{"0.27 % are lost", {sets("cast", "exp256")}, "at most 0.2 % of the probability is lost"},
            NearMiss{"17 % are lost", {sets("cast", "exp1")}, "at most 0.2 % of the probability is lost"},
            NearMiss{"another format",
                     {sets("cast", "exp448"), sets("format", "e5m2")},
                     "131 072 keys, sigma 3, no sink, E4M3, the same seed"},
            NearMiss{"fewer keys",
                     {sets("keys", "8192"), sets("cast", "exp256")},
                     "131 072 keys, sigma 3, no sink, E4M3, the same seed"}}};
}

Exercise exercise_edge() {
    return {
        .id = "L14.2",
        .title = "Where is the edge?",
        .question =
            "exp(s − max) is multiplied by S = 256 and cast to E4M3. From which s − max on, going down, "
            "does the cast give 0? Answer within 0.1.",
        .answers = {{"edge", "s − max", ""}},
        .hints = {"What is the largest number that rounds to 0 in E4M3?",
                  "2^-10, half the smallest value: the tie goes to the even code, 0. Divide it by S.",
                  "ln(2^-10 / 256)."},
        .judge = where_is_the_edge,
        .explanation =
            "E4M3’s smallest value is 2^-9, and everything up to its half becomes 0. exp(s − max) × 256 "
            "is 2^-10 at s − max = ln(2^-18) = −12.48.",
        .solver = {types("edge", "-12.48")},
        .near_misses = {
            NearMiss{"the smallest value, not its half", {types("edge", "-11.78")}, "s − max, within 0.1"},
            NearMiss{"with S = 448", {types("edge", "-13.04")}, "s − max, within 0.1"},
            NearMiss{"with S = 1", {types("edge", "-6.93")}, "s − max, within 0.1"}}};
}

Exercise exercise_zeros() {
    return {
        .id = "L14.3",
        .title = "Zeros are not the loss",
        .question =
            "Cast exp(s − max) × 1 in E4M3, 8 192 keys. Find a row with at least 99 % zeros that loses at "
            "most 0.5 % of the probability. Then find one with at most 85 % zeros that loses at least 30 %.",
        .prediction = ChoicePrediction{{"yes", "no"}},
        .predict = "Can a row with fewer zeros lose more of its probability?",
        .covers = {"mass", "casts"},
        .start = {"sigma=1", "cast=exp1"},
        .hints = {"What does one very large score do to the probability of all the others?", "Sink.",
                  "12, then 4."},
        .judge = zeros_and_mass,
        .explanation =
            "With a sink 12 above the others almost every other key becomes 0, and together they had "
            "hardly any probability. With a sink 4 above them fewer become 0, but they still hold most "
            "of the row.",
        .solver = {sets("sink", "12"), sets("sink", "4")},
        .near_misses = {
            NearMiss{"a sink of 8: all zero, and 9.6 % lost",
                     {sets("sink", "8")},
                     "exp(s − max) × 1 in E4M3, 8 192 keys: 99 % zeros or more, 0.5 % lost or less"},
            NearMiss{"a sink of 2: few zeros, little lost",
                     {sets("sink", "2")},
                     "the same with 85 % zeros or fewer, 30 % lost or more"},
            NearMiss{"the first of the two alone",
                     {sets("sink", "12")},
                     "the same with 85 % zeros or fewer, 30 % lost or more"}}};
}

Exercise exercise_growth() {
    return {
        .id = "L14.4",
        .title = "The step that was too big",
        .question =
            "Both weight rows of channel 0 double at step 8. Let no step saturate. Alignment, norm, growth, "
            "history and seed stay as they are, and the margin is 2 at most.",
        .prediction = NumberPrediction{"margin", "", 0, 4, 1, false, 1},
        .predict =
            "Both weight rows of channel 0 double at step 8. Which margin keeps every step from saturating, "
            "if nothing else changes?",
        .covers = {"timeline", "repairs"},
        .start = {"experiment=swiglu"},
        .hints = {"By which factor does a product of two doubled factors grow?", "Margin, or Fix.",
                  "4× = 2^2: margin 2."},
        .judge = too_big,
        .explanation =
            "h = silu(g) u has the weights in it twice, so it becomes about 4 times as large when they "
            "double. "
            "The scale of the history has no headroom for that; a margin of 2 binades leaves 4×. "
            "Current scaling, Smooth-SwiGLU and a clamp need no headroom.",
        .solver = {sets("margin", "2")},
        .near_misses = {
            NearMiss{"margin 1: step 8 saturates", {sets("margin", "1")}, "no step saturates"},
            NearMiss{"a longer history does not foresee",
                     {sets("history", "64")},
                     "alignment 1, norm 4, growth 2, history 16, the same seed"},
            NearMiss{
                "GELU is another network", {sets("fix", "gelu"), sets("margin", "1")}, "SwiGLU, not GELU"},
            NearMiss{"more margin than needed", {sets("margin", "3")}, "margin 2 or less"}}};
}

Exercise exercise_forget() {
    return {
        .id = "L14.5",
        .title = "The average that cannot forget",
        .question =
            "v = 1, and there are no more gradients. After 300 steps v must be within 2 % of the truth, in "
            "at most 16 bits.",
        .prediction = ChoicePrediction{{"0.74", "0.9", "1.00"}},
        .predict = "v = 1 in BF16, beta2 = 0.999. What is v after 300 steps without a gradient?",
        .covers = {"forget"},
        .start = {"experiment=optimiser"},
        .hints = {"How large is one update beside half a gap of BF16?", "beta2, or Rounding.", "stochastic."},
        .judge = cannot_forget,
        .explanation =
            "One step takes 0.1 % of v, and half the gap of BF16 below 1 is 0.2 %: the result rounds "
            "back to v. Stochastic rounding goes down in the right share of the elements. A smaller "
            "beta2 takes larger steps.",
        .solver = {sets("v_round", "stochastic")},
        .near_misses = {NearMiss{"steps of 1 % move v, but not by the right amount",
                                 {sets("beta2", "0.99")},
                                 "within 2 % of the truth"},
                        NearMiss{"E4M3 stops at 0.625, at a tie",
                                 {sets("v_format", "e4m3"), sets("beta2", "0.95")},
                                 "within 2 % of the truth"},
                        NearMiss{"32 bits", {sets("v_format", "fp32")}, "16 bits or less"}}};
}

}  // namespace

std::span<const Exercise> Wide::exercises() {
    static const std::array kExercises = {exercise_context(), exercise_edge(), exercise_zeros(),
                                          exercise_growth(), exercise_forget()};
    return kExercises;
}

}  // namespace fp8lab::wide
