// The judges of L12's exercises, assets/exercises/four.json.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/four/model.h"
#include "labs/measured.h"

namespace fp8lab::four {
namespace {

bool says(const State& s, std::string_view name, std::string_view word) { return s.text(name) == word; }
std::vector<std::string> decibels(double value) { return {db_text(value) + " dB"}; }
std::vector<std::string> percent(double value, int decimals) { return {pct_text(value, decimals) + " %"}; }

bool same_tensor(const State& a, const State& b) {
    for (const std::string_view name : {"tensor", "seed", "sigma", "file"})
        if (a.text(name) != b.text(name)) return false;
    return true;
}

// ---- L12.1
bool rotated_with(const State& s, std::string_view format) {
    return says(s, "rht", "on") && says(s, "rounding", "nearest") && says(s, "format", format);
}
bool hurts(const State& s) {
    return rotated_with(s, "nvfp4") && s.number("nvfp4.rht.sqnr_db") <= s.number("nvfp4.plain.sqnr_db") - 2;
}
bool helps(const State& s) {
    return rotated_with(s, "mxfp4") && s.number("mxfp4.rht.sqnr_db") >= s.number("mxfp4.plain.sqnr_db") + 2;
}

Verdict help_and_harm(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double costs = now.number("nvfp4.plain.sqnr_db") - now.number("nvfp4.rht.sqnr_db"),
                 gives = now.number("mxfp4.rht.sqnr_db") - now.number("mxfp4.plain.sqnr_db");
    const bool harmed = trail.visited([&](const State& s) { return hurts(s) && same_tensor(s, now); });
    const bool helped = trail.visited([&](const State& s) { return helps(s) && same_tensor(s, now); });
    return measured({.conditions = {{"NVFP4, rotated, to nearest: at least 2 dB below its SQNR as it is",
                                     decibels(costs), harmed},
                                    {"MXFP4 on this tensor, rotated, to nearest: at least 2 dB above",
                                     decibels(gives), helped}}},
                    2);
}

// ---- L12.2
Verdict both_ways(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double differ = now.number("w.copies_differ_pct"), bits = now.number("bits"),
                 scales = now.number("scales");
    return measured(
        {.conditions = {{"NVFP4", {}, says(now, "format", "nvfp4")},
                        {"elements of W and of its copy that differ: none", percent(differ, 1), differ == 0},
                        {"4.6 bits per element or less, and more than one scale",
                         {fmt::format("{} bits", screen_number(bits))},
                         bits <= 4.6 && scales > 1}}},
        now.number("w.square_costs_db"));
}

// ---- L12.3
Verdict sixteen(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double mean = now.number("mean_db"), nearest = now.number("nearest_db"), one = now.number("one_db");
    const double casts = now.number("casts");
    return measured(
        {.conditions = {{"stochastic rounding", {now.text("rounding")}, says(now, "rounding", "stochastic")},
                        {"16 casts", {fmt::format("{:.0f}", casts)}, casts == 16},
                        {"their mean has 5 dB more than rounding to nearest",
                         {fmt::format("{} against {} dB", db_text(mean), db_text(nearest))},
                         mean >= nearest + 5}}},
        one > nearest ? 0 : 1);
}

// ---- L12.4
bool loaded(const State& s) {
    return says(s, "rht", "off") && says(s, "rounding", "stochastic") && says(s, "format", "nvfp4") &&
           s.number("nvfp4.sr.gain_pct") < -0.6;
}

Verdict dice_are_loaded(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool seen = trail.visited([&](const State& s) { return loaded(s) && same_tensor(s, now); });
    const double plain = now.number("nvfp4.sr.gain_pct"), turned = now.number("nvfp4.sr_rht.gain_pct");
    const bool better = seen && says(now, "rounding", "stochastic") && says(now, "format", "nvfp4") &&
                        says(now, "rht", "on") && turned > -0.35;
    return measured({.conditions = {{"NVFP4, stochastic, without the rotation: a mean gain below −0.6 %",
                                     percent(plain, 2), seen},
                                    {"the same tensor in NVFP4, stochastic, rotated: above −0.35 %",
                                     percent(turned, 2), better}}},
                    1);
}

// ---- L12.5
Verdict one_hand(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double left = now.number("dw.one_operand_db"), answer = trail.answered_number("db");
    const bool seen = trail.visited([](const State& s) { return says(s, "rht", "on"); });
    const bool right = std::fabs(answer - left) <= 1;
    return {.conditions = {{"the rotation was on", {}, seen},
                           {"the SQNR of dW, within 1 dB", {trail.answered("db")}, right}},
            .note = right ? fmt::format("One rotated: {} dB. Both: {}. None: {}.", db_text(left),
                                        db_text(now.number("dw.rht_db")), db_text(now.number("dw.plain_db")))
                          : std::string(),
            .measured = right ? std::vector<double>{left} : std::vector<double>{}};
}

// ---- L12.6
Verdict by_hand(const Trail& trail, const Prediction*) {
    // 3.1 x 448 / 10 = 138.88 is between 128 and 144 of E4M3; 144 x 10 / 2688 = 0.5357, times 6.
    constexpr double kScale = 144, kBack = -3.214;
    const double scale = trail.answered_number("code_scale"), back = trail.answered_number("back");
    return {
        .conditions = {
            {"the E4M3 scale", {trail.answered("code_scale")}, scale == kScale},
            {"what −3.1 becomes, within 0.002", {trail.answered("back")}, std::fabs(back - kBack) <= 0.002}}};
}

}  // namespace

std::span<const NamedJudge> Four::judges() {
    static constexpr std::array kJudges = {NamedJudge{"help_and_harm", help_and_harm},
                                           NamedJudge{"both_ways", both_ways},
                                           NamedJudge{"sixteen", sixteen},
                                           NamedJudge{"dice_are_loaded", dice_are_loaded},
                                           NamedJudge{"one_hand", one_hand},
                                           NamedJudge{"by_hand", by_hand}};
    return kJudges;
}

}  // namespace fp8lab::four
