// The judges of L5's exercises, assets/exercises/delayed.json.
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

}  // namespace

std::span<const NamedJudge> Delayed::judges() {
    static constexpr std::array kJudges = {
        NamedJudge{"off_by_one", off_by_one}, NamedJudge{"growth_budget", growth_budget},
        NamedJudge{"idle_slider", idle_slider}, NamedJudge{"stale_scale", stale_scale},
        NamedJudge{"ema_trap", ema_trap}};
    return kJudges;
}

}  // namespace fp8lab::delayed
