// The judges of L14's exercises, assets/exercises/wide.json.
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

}  // namespace

std::span<const NamedJudge> Wide::judges() {
    static constexpr std::array kJudges = {
        NamedJudge{"long_context", long_context}, NamedJudge{"where_is_the_edge", where_is_the_edge},
        NamedJudge{"zeros_and_mass", zeros_and_mass}, NamedJudge{"too_big", too_big},
        NamedJudge{"cannot_forget", cannot_forget}};
    return kJudges;
}

}  // namespace fp8lab::wide
