// The judges of L9's exercises, assets/exercises/speed.json. Their times are those of a recording, so that evidence can be
// judged again on a machine without this GPU; a test compares the numbers of solvers and hints with the recording.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/speed/model.h"
#include "labs/speed/model_figures.h"

namespace fp8lab::speed {

namespace {

constexpr double kMostIqrPct = 5;          // of the two times that a ratio is made of
constexpr double kWasteTolerance = 0.02;   // percentage points
constexpr double kAmdahlTolerance = 0.02;  // relative
constexpr double kAmdahlRight_pct = 2, kAmdahlWrong_pct = 8;

std::string shown(double value, int digits = 3) {
    return std::isnan(value) ? "\u2013" : screen_number(value, digits);
}

Condition of_recording(const State& now) {
    return {"times of a recording", {now.text("source")}, now.number("recorded") == 1};
}

// ---- L9.1

Verdict where_it_pays(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double m = now.number("m"), wanted = now.number("m_at_1_5");
    const bool layer = now.number("n") == 16384 && now.number("k") == 4096 && now.text("casts") == "x+w";
    const double noise = std::max(now.number("fprop.bf16_iqr_pct"), now.number("fprop.fp8_iqr_pct"));
    const bool below = trail.visited([&](const State& state) {
        return state.number("m") == wanted / 2 && state.number("ratio_with_casts") < 1.5;
    });
    Verdict out{
        .conditions = {of_recording(now),
                       {"N = 16384, K = 4096, casts of x and w", {}, layer},
                       {"with its casts 1.5 times as fast",
                        {shown(now.number("ratio_with_casts"))},
                        now.number("ratio_with_casts") >= 1.5},
                       {"the smallest such M", {shown(m, 5)}, m == wanted},
                       {"at half of it you saw less than 1.5", {}, below},
                       {"interquartile range at most 5 %", {shown(noise, 2) + " %"}, noise <= kMostIqrPct}}};
    if (m == wanted) out.measured = {m};
    return out;
}

// ---- L9.2

// Judges the choices never, small M, large M, small N and K.
Verdict slower_with_casts(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double alone = now.number("fprop.ratio"), with = now.number("ratio_with_casts");
    Verdict out{.conditions = {of_recording(now),
                               {"the GEMM alone at least 1.2 times as fast", {shown(alone)}, alone >= 1.2},
                               {"casts of x and w counted", {now.text("casts")}, now.text("casts") == "x+w"},
                               {"slower than BF16 with its casts", {shown(with)}, with < 1}}};
    if (out.passed()) out.measured = {1};
    return out;
}

// ---- L9.3

bool refused(const State& state) { return state.number("fprop.status") > 0; }

std::string offsets(const State& state) {
    return state.field("m_off") + " " + state.field("n_off") + " " + state.field("k_off");
}

Verdict refusal(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto sizes = [](const State& state) {
        return state.field("m") + " " + state.field("n") + " " + state.field("k") + " " + offsets(state);
    };
    const bool was_refused = trail.visited([&](const State& state) {
        return state.field("pad") == "off" && refused(state) && sizes(state) == sizes(now);
    });
    const bool runs = now.field("pad") == "on" && now.number("fprop.status") == 0 && offsets(now) != "0 0 0";
    const double waste = trail.answered_number("waste"), measured = now.number("pad_waste_pct");
    Verdict out{.conditions = {of_recording(now),
                               {"FP8 fprop refused without padding, at these sizes", {}, was_refused},
                               {"the same product runs padded", {now.field("pad")}, runs},
                               {"your waste, right within 0.02 percentage points",
                                {shown(waste, 2) + " %"},
                                runs && std::abs(waste - measured) <= kWasteTolerance}}};
    if (was_refused) out.measured = {2};
    return out;
}

// ---- L9.4

Verdict amdahl_by_hand(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double speedup = trail.answered_number("speedup"), ceiling = trail.answered_number("ceiling");
    const auto right = [](double answer, double truth) {
        return std::abs(answer / truth - 1) <= kAmdahlTolerance;
    };
    return {.conditions = {of_recording(now),
                           {"your speed-up of the step, within 2 %",
                            {shown(speedup)},
                            right(speedup, now.number("amdahl"))},
                           {"your best possible speed-up, within 2 %",
                            {shown(ceiling)},
                            right(ceiling, now.number("amdahl_ceiling"))}},
            .note = now.text("step.layers")};
}

// ---- L9.5

Verdict broken_promise(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto size = [](const State& state) {
        return state.field("m") + " " + state.field("n") + " " + state.field("k");
    };
    const bool kept = trail.visited([&](const State& state) {
        return state.text("recipe") == "delayed" && size(state) == size(now) &&
               std::abs(state.number("amdahl_error_pct")) <= kAmdahlRight_pct;
    });
    const double error = now.number("amdahl_error_pct");
    const std::string missing = trail.answered("missing");
    return {.conditions = {of_recording(now),
                           {"delayed scaling on this layer: right within 2 %", {}, kept},
                           {"another recipe, promised at least 8 % too much",
                            {recipe_label(now.text("recipe")) + ", " + shown(error, 2) + " %"},
                            now.text("recipe") != "delayed" && error >= kAmdahlWrong_pct},
                           {"what was left out", {missing}, missing == "casts"}}};
}

}  // namespace

std::span<const NamedJudge> SpeedLab::judges() const {
    if (recordings_.empty()) return {};
    static constexpr std::array kJudges = {
        NamedJudge{"where_it_pays", where_it_pays}, NamedJudge{"slower_with_casts", slower_with_casts},
        NamedJudge{"refusal", refusal}, NamedJudge{"amdahl_by_hand", amdahl_by_hand},
        NamedJudge{"broken_promise", broken_promise}};
    return kJudges;
}

}  // namespace fp8lab::speed
