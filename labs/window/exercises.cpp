// The judges of L4's exercises, assets/exercises/window.json.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/window/model.h"

namespace fp8lab::window {

namespace {

bool is(const State& state, std::string_view field, std::string_view value) {
    return state.text(field) == value;
}

// ---- L4.1
bool seed_array(const State& state) { return is(state, "tensor", "decades") && is(state, "file", ""); }
bool in_e4m3(const State& state) { return seed_array(state) && is(state, "format", "e4m3"); }

Verdict six_decades(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool clipped =
        trail.visited([](const State& s) { return in_e4m3(s) && s.number("overflow_pct") > 0; });
    const bool lost =
        trail.visited([](const State& s) { return in_e4m3(s) && s.number("underflow_pct") > 0; });
    const double overflow = now.number("overflow_pct"), underflow = now.number("underflow_pct");
    const bool same = seed_array(now), whole = overflow == 0 && underflow == 0;
    return {.conditions = {{"E4M3: a value saturated", {}, clipped},
                           {"E4M3: a value became 0", {}, lost},
                           {"now none saturates and none becomes 0",
                            {fmt::format("{} % saturate, {} % become 0", screen_number(overflow, 3),
                                         screen_number(underflow, 3))},
                            whole},
                           {"still the seven numbers", {}, same}},
            .measured = same && whole ? std::vector<double>{is(now, "format", "e5m2") ? 1.0 : 2.0}
                                      : std::vector<double>{}};
}

// ---- L4.2
constexpr std::array kSketched = {0, 3, 6, 9};

bool free_headroom_seen(const State& s) {
    return is(s, "tensor", "normal") && is(s, "format", "e4m3") && !is(s, "source", "manual") &&
           s.number("margin") >= 9 && s.number("outliers") == 0 &&
           s.number("sqnr_db") >= s.number("best_sqnr_db") - 0.5;
}

Verdict headroom(const Trail& trail, const Prediction*) {
    const bool free = trail.visited(free_headroom_seen);
    const State& now = trail.now();
    const bool heavy =
        is(now, "tensor", "lognormal") && is(now, "format", "e4m3") && now.number("sigma") >= 3;
    const double lost = now.number("underflow_pct"), least = now.number("least_underflow_pct");
    const double clipped = now.number("overflow_pct");
    std::vector<double> measured;
    if (free) {
        // The start is the Gaussian: its sweep holds the answer.
        for (const char* format : {"e4m3", "int8"})
            for (const int margin : kSketched)
                measured.push_back(
                    trail.start.number(fmt::format("{}.sqnr_db_at_margin_{}", format, margin)));
    }
    return {.conditions = {{"E4M3, a Gaussian without outliers, scale not manual: margin 2^9 or more, within "
                            "0.5 dB of the best",
                            {},
                            free},
                           {"then E4M3, a log-normal tensor, sigma 3 or more", {}, heavy},
                           {"its underflow is within 0.1 percentage points of the least that a margin gives",
                            heavy ? std::vector{screen_number(lost, 3) + " %, least " +
                                                screen_number(least, 3) + " %"}
                                  : std::vector<std::string>{},
                            heavy && lost <= least + 0.1},
                           {"and nothing of it saturates", {screen_number(clipped, 3) + " %"}, clipped == 0}},
            .measured = measured};
}

// ---- L4.3
bool one_gaussian_outlier(const State& s) { return is(s, "tensor", "normal") && s.number("outliers") >= 1; }
double loss_db(const State& s) { return s.number("base_sqnr_db") - s.number("inlier_sqnr_db"); }
bool e4m3_hurt(const State& s) {
    return one_gaussian_outlier(s) && is(s, "format", "e4m3") && is(s, "source", "current") &&
           is(s, "margin", "0") && loss_db(s) >= 3 && loss_db(s) <= 6;
}
bool int8_hurt(const State& s) {
    return one_gaussian_outlier(s) && is(s, "format", "int8") && is(s, "source", "current") &&
           is(s, "margin", "0") && s.number("outlier_ratio") <= 64 && loss_db(s) >= 20;
}

Verdict outlier(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const State* hurt = e4m3_hurt(trail.start) ? &trail.start : nullptr;
    for (const Step& step : trail.steps)
        if (!hurt && e4m3_hurt(step.after)) hurt = &step.after;
    // Only a state of E4M3 is shown: INT8's loss would be beside E4M3's condition.
    const State* shown = hurt ? hurt : is(now, "format", "e4m3") ? &now : nullptr;
    std::vector<std::string> loss;
    if (shown) loss = {screen_number(loss_db(*shown), 3) + " dB"};
    std::vector<double> measured;
    std::string note;
    if (hurt) {
        measured = {hurt->number("outlier_ratio")};
        note = fmt::format("Measured: the first outlier size of yours that cost 3 to 6 dB ({} sigma, {}).",
                           screen_number(measured.front()), loss.front());
    }
    return {
        .conditions =
            {{"E4M3, a Gaussian, scale from the current amax, margin 0: the other elements lose 3 to 6 dB",
              loss, hurt != nullptr},
             {"INT8, the same: they lose 20 dB or more, outlier 64 or less", {}, trail.visited(int8_hurt)}},
        .note = note,
        .measured = measured};
}

// ---- L4.4
Verdict cliff(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool nan_cast = is(now, "format", "e4m3") && is(now, "overflow", "nonsaturate");
    const bool unscaled = is(now, "source", "manual") && now.number("scale") == 1;
    const bool last = now.number("probe_cast") == 448, gone = now.number("probe_next_is_finite") == 0;
    const bool found = nan_cast && unscaled && last && gone;
    return {.conditions = {{"E4M3, casting to NaN, at scale 1", {}, nan_cast && unscaled},
                           {"x becomes 448", {screen_number(now.number("probe_cast"), 3)}, last},
                           {"x + 1 becomes NaN", {screen_number(now.number("probe_next"), 3)}, gone}},
            .measured = found ? std::vector<double>{std::floor(now.number("probe"))} : std::vector<double>{}};
}

// ---- L4.5
Verdict zeros(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool all_zero = is(now, "tensor", "zeros") && is(now, "file", "") && now.number("elements") > 0;
    const double bad = now.number("not_finite"), scale = now.number("scale_used");
    const bool sound = std::isfinite(scale) && scale > 0;
    const bool rule = !is(now, "source", "manual");
    return {.conditions = {{"the tensor is all zero", {}, all_zero},
                           {"its scale comes from its amax", {}, rule},
                           {"and is finite and above 0", {screen_number(scale, 3)}, sound},
                           {"no output is NaN or infinite", {screen_number(bad, 3)}, bad == 0}},
            .measured = all_zero && sound && bad == 0 ? std::vector<double>{1} : std::vector<double>{}};
}

}  // namespace

std::span<const NamedJudge> Window::judges() {
    static constexpr std::array kJudges = {NamedJudge{"six_decades", six_decades},
                                           NamedJudge{"headroom", headroom}, NamedJudge{"outlier", outlier},
                                           NamedJudge{"cliff", cliff}, NamedJudge{"zeros", zeros}};
    return kJudges;
}

}  // namespace fp8lab::window
