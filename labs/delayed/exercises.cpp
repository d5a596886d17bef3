// The exercises of L5.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/delayed/model.h"

namespace fp8lab::delayed {

namespace {

bool is(const State& state, std::string_view field, std::string_view value) {
    return state.text(field) == value;
}
// Transformer Engine's rules: what the questions are about.
bool reads_history(const State& s) { return is(s, "algo", "max") || is(s, "algo", "most_recent"); }
bool delayed_rule(const State& s) { return is(s, "order", "te") && reads_history(s); }

// ---- L5.1
Verdict off_by_one(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool as_it_was = is(now, "scenario", "ramp") && reads_history(now);
    const bool looked = trail.visited([](const State& s) {
        return is(s, "scenario", "ramp") && is(s, "compare", "b") && is(s, "b", "notebook") &&
               s.number("b.saturated_steps") == 0;
    });
    const double saturated = now.number("a.saturated_steps"), margin = now.number("margin");
    return {.conditions = {{"B, the notebook’s order, was shown: no step saturates", {}, looked},
                           {"A, Transformer Engine’s order: no step saturates",
                            {fmt::format("{} of {}", screen_number(saturated, 3),
                                         screen_number(now.number("steps"), 3))},
                            is(now, "order", "te") && saturated == 0},
                           {"the margin is 2 or less", {screen_number(margin, 3)}, margin <= 2},
                           {"scenario ramp, reducer max or most recent", {}, as_it_was}},
            .measured = {trail.start.number("a.saturated_steps")}};
}

// ---- L5.2: the smallest margin at which the machine itself never saturates.
int smallest_margin(double growth) {
    MachineSpec machine;
    const Tensors tensors({.kind = "growth", .growth = growth, .tensor = {.kind = "normal", .cols = 16}});
    for (machine.margin = 0; machine.margin < 8; ++machine.margin) {
        bool any = false;
        for (const MachineStep& step : run_machine(machine, tensors.amaxes())) any |= step.saturates;
        if (!any) break;
    }
    return machine.margin;
}

Verdict growth_budget(const Trail& trail, const Prediction*) {
    const auto tried = [&](double growth) {
        return trail.visited([&](const State& s) {
            return is(s, "scenario", "growth") && delayed_rule(s) && s.number("growth") == growth &&
                   s.number("a.saturated_steps") == 0;
        });
    };
    std::vector<Condition> conditions;
    for (const auto& [growth, name] : {std::pair{1.5, "slow"}, {3.0, "fast"}}) {
        const double answer = trail.answered_number(name);
        conditions.push_back(
            {fmt::format("×{} ran without saturation, scenario, reducer and order as at the start",
                         screen_number(growth, 3)),
             {},
             tried(growth)});
        conditions.push_back(
            {fmt::format("smallest margin at ×{}", screen_number(growth, 3)),
             std::isnan(answer) ? std::vector<std::string>{} : std::vector{screen_number(answer, 3)},
             answer == smallest_margin(growth)});
    }
    return {.conditions = conditions,
            .measured = {100 * trail.start.number("a.saturated_steps") / trail.start.number("steps")}};
}

// ---- L5.3
Verdict idle_slider(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool pinned = is(now, "b", "pinned");
    const bool recent = is(now, "algo", "most_recent") && is(now, "b_algo", "most_recent");
    bool same = true;
    for (const char* name : {"format", "margin", "interval", "order"})
        same &= now.text(name) == now.text(std::string("b_") + name);
    const double apart = std::abs(now.number("history") - now.number("b_history"));
    const bool equal = now.text("a.scales") == now.text("b.scales");
    const bool met = pinned && recent && same && apart >= 8 && equal;
    return {
        .conditions = {{"A is compared with a pinned B", {}, pinned},
                       {"format, margin, interval and order are the same, the history differs by 8 or more",
                        {screen_number(apart, 3)},
                        pinned && same && apart >= 8},
                       {"both use the reducer most recent", {}, recent},
                       {"every scale is the same, bit for bit", {}, met}},
        .measured = met ? std::vector<double>{1} : std::vector<double>{}};
}

// ---- L5.4
Verdict stale_scale(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool task = is(now, "scenario", "spike") && now.number("jump") >= 64 &&
                      is(now, "tensor", "lognormal") && is(now, "file", "") && now.number("sigma") >= 2 &&
                      is(now, "order", "te");
    const double clipped = now.number("a.spike_overflow_pct"),
                 lost = now.number("a.underflow_pct_after_spike");
    return {
        .conditions =
            {{"the spike: ×64 or more, log-normal, sigma 2 or more, Transformer Engine’s order", {}, task},
             {"at most 3 % saturate in its step", {screen_number(clipped, 3) + " %"}, task && clipped <= 3},
             {"at most 3 % become 0 in the 16 steps after",
              {screen_number(lost, 3) + " %"},
              task && lost <= 3}},
        .measured = {trail.start.number("a.underflow_pct_after_spike")}};
}

// ---- L5.5
Verdict ema_trap(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool pair = is(now, "b", "pinned") && is(now, "algo", "ema") && is(now, "b_algo", "max");
    const bool same = now.text("format") == now.text("b_format") &&
                      now.text("margin") == now.text("b_margin") && is(now, "order", "te") &&
                      is(now, "b_order", "te");
    const double average = now.number("a.mean_overflow_pct"), max = now.number("b.mean_overflow_pct");
    const bool worse = pair && same && max > 0 && average > 2 * max;
    return {
        .conditions = {{"A: EMA, B: max, pinned", {}, pair},
                       {"same format and margin, both in Transformer Engine’s order", {}, pair && same},
                       {"A saturates more than twice as much as B, and B more than 0 %",
                        {fmt::format("{} % against {} %", screen_number(average, 3), screen_number(max, 3))},
                        worse}},
        .measured = worse ? std::vector<double>{0} : std::vector<double>{}};
}

Exercise exercise_off_by_one() {
    return {.id = "L5.1",
            .title = "Off by one",
            .question =
                "In a widely used FP8 notebook (a published Jupyter notebook) the amax grows for 16 steps, "
                "and nothing saturates. First set Compare, above the figure, to B, to show the notebook’s "
                "order of operations. Then raise Margin until no step of A, which has the order of "
                "Transformer Engine, saturates either. The Margin must be 2 or less at the end; Scenario and "
                "Reducer stay as they are.",
            .prediction = NumberPrediction{.label = "saturated steps", .max = 16, .initial = 0, .step = 1},
            .predict =
                "The amax of a tensor grows for 16 steps. A casts each step to E4M3 with a scale that was "
                "computed from the steps before, with a margin of 0. In how many of the 16 steps does a "
                "value saturate?",
            .covers = {"timeline", "strips"},
            .start = {"scenario=ramp", "compare=a", "history=8"},
            .hints = {"Which scale does a step use: a scale that has seen the tensor of this step, or one "
                      "from the step before?",
                      "Set Compare, above the figure, to B: the notebook’s order. Then raise Margin.",
                      "A margin of 1 absorbs a growth of up to 2 from step to step. The largest growth here "
                      "is 2.06, and it still rounds to 448: the limit is 464 / 448 × 2 = 2.07."},
            .judge = off_by_one,
            .explanation =
                "The notebook records this step’s amax before it computes this step’s scale, so it cannot "
                "saturate. That is current scaling under the name of delayed scaling.",
            .solver = {sets("compare", "b"), sets("compare", "ab"), sets("margin", "1")},
            .near_misses = {NearMiss{"the notebook’s order was never looked at",
                                     {sets("margin", "1")},
                                     "B, the notebook’s order, was shown: no step saturates"},
                            NearMiss{"a margin of 3 is more than is needed",
                                     {sets("compare", "b"), sets("margin", "3")},
                                     "the margin is 2 or less"}}};
}

Exercise exercise_growth() {
    return {
        .id = "L5.2",
        .title = "Growth budget",
        .question =
            "In the scenario Growth the amax grows by a constant factor in every step. Set Growth to 1.5 and "
            "find the smallest whole Margin at which no step of A saturates; then do the same with Growth 3. "
            "Enter both margins; the lab must also have shown both values of Growth without saturation. "
            "Scenario and Reducer stay as they are.",
        .prediction =
            NumberPrediction{.label = "saturated steps", .unit = "%", .max = 100, .initial = 50, .step = 1},
        .predict =
            "The amax of a tensor grows by a factor of 1.5 in each of 24 steps. Each step is cast with a "
            "scale that was computed from the steps before, with a margin of 0. In what percentage of the 24 "
            "steps does a value saturate?",
        .covers = {"timeline", "strips"},
        .start = {"scenario=growth", "growth=1.5"},
        .answers = {{.name = "slow", .label = "smallest margin at ×1.5", .unit = ""},
                    {.name = "fast", .label = "smallest margin at ×3", .unit = ""}},
        .hints = {"The scale is one step late. By which factor is the upper end of the window too low?",
                  "The controls are Growth and Margin. Each margin more halves the scale.",
                  "The smallest margin is log2 of the growth, rounded up: 1 for 1.5, 2 for 3."},
        .judge = growth_budget,
        .explanation =
            "The scale is one step late, so the window is too low by exactly the growth of one step. A "
            "margin of m leaves room for a factor of 2^m, so the smallest margin is log2 of the growth, "
            "rounded up.",
        .solver = {sets("margin", "1"), types("slow", "1"), sets("growth", "3"), sets("margin", "2"),
                   types("fast", "2")},
        .near_misses = {
            NearMiss{"2 is not the smallest at 1.5",
                     {sets("margin", "2"), types("slow", "2"), sets("growth", "3"), types("fast", "2")},
                     "smallest margin at ×1.5"},
            NearMiss{"typed, but not tried",
                     {types("slow", "1"), types("fast", "2")},
                     "×1.5 ran without saturation, scenario, reducer and order as at the start"}}};
}

Exercise exercise_idle_slider() {
    return {
        .id = "L5.3",
        .title = "The idle slider",
        .question =
            "Show that the length of the amax history can have no effect. Choose a Reducer that reads "
            "the history (max, most recent or percentile) and press Pin A as B: B keeps A’s settings. "
            "Then change only A’s History, by 8 steps or more. A and B must use the same scale in every "
            "step, bit for bit; to try another Reducer, choose it for A and pin again.",
        .prediction = ChoicePrediction{{"max", "most recent", "percentile"}},
        .predict =
            "A reducer computes one amax from the history of the last amaxes, and the scale is computed "
            "from this one amax. With which reducer does the length of the history have no effect?",
        .conditions_answer = true,
        .start = {"scenario=spike", "history=16", "cols=4096"},
        .hints = {"Which reducer never reads more than one slot of the history?",
                  "Choose a Reducer, press Pin A as B, then move A’s History.",
                  "Set Reducer to most recent, press Pin A as B, then set History to 64."},
        .judge = idle_slider,
        .explanation =
            "most recent reads slot 0 of the history and nothing else. The slider still moves and every "
            "amax is still recorded, but no scale depends on the history length.",
        .solver = {sets("algo", "most_recent"), acts("pin"), sets("history", "64")},
        .near_misses = {
            NearMiss{
                "max looks back", {acts("pin"), sets("history", "64")}, "both use the reducer most recent"},
            NearMiss{"only 4 apart",
                     {sets("algo", "most_recent"), acts("pin"), sets("history", "20")},
                     "format, margin, interval and order are the same, the history differs by 8 or more"}}};
}

Exercise exercise_stale_scale() {
    return {
        .id = "L5.4",
        .title = "Spike hangover",
        .question =
            "The tensor is 64 times larger in one step, step 20, than in the others. Choose Format, Reducer "
            "and History so that at most 3 % of the elements saturate in step 20, and so that at most 3 % of "
            "the elements become 0 on average over the 16 steps after it. Scenario, Jump, Tensor and Sigma "
            "stay as they are.",
        .prediction =
            NumberPrediction{.label = "elements that become 0", .unit = "%", .max = 100, .initial = 10},
        .predict =
            "A tensor is 64 times larger in one step than in the others. It is cast to E4M3 with delayed "
            "scaling, with the reducer max and a history of 16 steps. What percentage of its elements "
            "becomes 0, on average over the 16 steps after this spike?",
        .covers = {"strips"},
        .start = {"scenario=spike", "history=16", "cols=4096"},
        .hints =
            {"The spike stays in the history for as many steps as the history is long. What does that do "
             "to the scale?",
             "A short history saturates more elements in the spike step and turns fewer to 0 after it. Try "
             "Format and Reducer.",
             "E5M2 with max and a history of 16, or current scaling. In E4M3 with max no history length does "
             "both."},
        .judge = stale_scale,
        .explanation =
            "The history length trades one cost for the other: the headroom it happens to have before "
            "the spike against the steps with too small a scale after it. E5M2 has enough range for both.",
        .solver = {sets("format", "e5m2")},
        .near_misses = {NearMiss{"a short history forgets, but clips",
                                 {sets("history", "1")},
                                 "at most 3 % saturate in its step"},
                        NearMiss{"in between it does both a little",
                                 {sets("history", "4")},
                                 "at most 3 % saturate in its step"}}};
}

Exercise exercise_ema() {
    return {
        .id = "L5.5",
        .title = "Average or maximum",
        .question =
            "Show that one of two reducers, max or the moving average (EMA), saturates more than twice as "
            "many elements as the other, as a mean over all steps. Press Pin A as B while A’s Reducer is "
            "max: B keeps it. Then set A’s Reducer to the moving average (EMA); with the tensors of the "
            "start nothing else has to be changed. Format and Margin must be the same in A and B.",
        .prediction = ChoicePrediction{{"EMA", "max", "about the same"}},
        .predict =
            "The amax of a tensor fluctuates from step to step. The scale of a step is computed from the "
            "earlier amaxes, reduced to their maximum (max) or to their moving average (EMA). With which "
            "reducer do more elements saturate?",
        .covers = {"timeline", "strips"},
        .conditions_answer = true,
        .start = {"scenario=spike", "history=16", "cols=4096"},
        .hints = {"An amax comes that is larger than usual. Is an average of the earlier ones above or below "
                  "it?",
                  "Press Pin A as B while A’s Reducer is max, then change A’s Reducer.",
                  "Pin with max and a history of 16, then choose moving average (EMA) for A, with an EMA "
                  "weight of 0.9."},
        .judge = ema_trap,
        .explanation =
            "The average is below every amax that is larger than usual, and each of these saturates: in "
            "10 of the 40 steps, against 5 with max. A scale has to fit the largest tensor, not the "
            "usual one.",
        .solver = {acts("pin"), sets("algo", "ema")},
        .near_misses = {NearMiss{"B is not pinned", {sets("algo", "ema")}, "A: EMA, B: max, pinned"},
                        NearMiss{"EMA with a margin that max does not have",
                                 {acts("pin"), sets("algo", "ema"), sets("margin", "4")},
                                 "same format and margin, both in Transformer Engine’s order"}}};
}

}  // namespace

std::span<const Exercise> DelayedLab::exercises() const {
    static const std::array kExercises = {exercise_off_by_one(), exercise_growth(), exercise_idle_slider(),
                                          exercise_stale_scale(), exercise_ema()};
    return kExercises;
}

}  // namespace fp8lab::delayed
