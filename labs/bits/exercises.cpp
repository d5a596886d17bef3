// The judges of L1's exercises, assets/exercises/bits.json. A bit counts as flipped by the learner's hand: the action
// "toggle", not a jump to a code.
#include <fmt/format.h>

#include <array>

#include "core/base/units.h"
#include "labs/bits/model.h"

namespace fp8lab::bits {

namespace {

bool is_toggle(const Step& step) {
    return !step.events.empty() && step.events.back().kind == Event::Kind::act &&
           step.events.back().name.starts_with("toggle");
}

bool flipped_last(const Trail& trail) { return !trail.steps.empty() && is_toggle(trail.steps.back()); }

// Largest finite value of either sign in E4M3.
bool on_largest(const State& state) {
    return state.text("format") == "e4m3" && std::abs(state.number("value")) == state.number("max");
}

std::string reading(const State& state) {
    return state.text("code_hex") + " = " + format_number(state.number("value"), 4, true);
}

// How many codes are no finite numbers; told once it has been seen.
std::vector<double> not_finite(const Trail& trail, bool seen) {
    const State& state = trail.now();
    if (!seen) return {};
    return {state.number("codes") - state.number("finite_codes")};
}

Verdict largest(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool reached = on_largest(now);
    return {.conditions = {{"the largest finite number of E4M3", {reading(now)}, reached},
                           {"reached by flipping a bit", {}, flipped_last(trail)}},
            .measured = not_finite(trail, reached)};
}

Verdict one_bit(const Trail& trail, const Prediction*) {
    bool stepped_off = false;
    const State* before = &trail.start;
    for (const Step& step : trail.steps) {
        stepped_off |= on_largest(*before) && is_toggle(step) && step.after.text("format") == "e4m3" &&
                       step.after.text("class") == "nan";
        before = &step.after;
    }
    return {.conditions = {{"stood on the largest number", {}, trail.visited(on_largest)},
                           {"one flip later: not a number", {reading(trail.now())}, stepped_off}}};
}

Verdict twins(const Trail& trail, const Prediction*) {
    const auto is_448 = [](const State& state, std::string_view format) {
        return state.text("format") == format && state.number("value") == 448;
    };
    const State& now = trail.now();
    return {
        .conditions = {{"448 in E4M3", {}, trail.visited([&](const State& s) { return is_448(s, "e4m3"); })},
                       {"448 in E5M2", {reading(now)}, is_448(now, "e5m2")},
                       {"built by flipping bits", {}, flipped_last(trail)}}};
}

Verdict reclaim(const Trail& trail, const Prediction*) {
    bool only_policy = true;
    for (const Step& step : trail.steps)
        for (const Event& event : step.events)
            only_policy &= event.kind == Event::Kind::set && event.name == "specials";
    const State& now = trail.now();
    const bool own = now.text("format") == "custom";
    const bool started = trail.visited([](const State& state) { return state.number("max") == 240; });
    return {.conditions = {{"your format once ended at 240", {}, started},
                           {"your own format ends at 448 now",
                            {format_number(now.number("max"))},
                            own && now.number("max") == 448},
                           {"moved only the control that is needed", {}, only_policy}}};
}

}  // namespace

std::span<const NamedJudge> Bits::judges() {
    static constexpr std::array kJudges = {NamedJudge{"largest", largest}, NamedJudge{"one_bit", one_bit},
                                           NamedJudge{"twins", twins}, NamedJudge{"reclaim", reclaim}};
    return kJudges;
}

}  // namespace fp8lab::bits
