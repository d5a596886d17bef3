// The judges of L11's exercises, assets/exercises/lower.json. All are about the digits of seed 1.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "labs/lower/model.h"
#include "labs/measured.h"

namespace fp8lab::lower {
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
    const double bits = now.number("bits");
    return measured(
        {.conditions = {{"digits, no outliers, contrast 1, no smoothing",
                         {},
                         is(now, {{"network", "digits"}, {"smoothing", "off"}}) && plain_inputs(now)},
                        {"every weight matrix within 10 % (relative L2)", percent(100 * worst),
                         worst <= kMostRelL2},
                        {"at most 4.6 bits per weight", {fmt::format("{:.2f}", bits)}, bits <= kFewBits}}},
        2);
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
    const auto now = percent(trail.now().number("accuracy_pct"));
    return measured(
        {.conditions = {{"digits, weights and activations, dynamic scales, contrast 1, outliers ×64 or "
                         "more, no smoothing: below 90 %",
                         now, trail.visited(fails)},
                        {"another format, the same: 97 % or more", now, trail.visited(does_not_notice)},
                        {"the first one’s formats with smoothing: 96 % or more", now, rescued}}},
        nvfp4);
}

// ---- L11.3
Verdict budget_game(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same =
        is(now, {{"network", "digits"}, {"lower", "both"}, {"act_scale", "dynamic"}, {"smoothing", "off"}}) &&
        plain_inputs(now);
    const double bits = now.number("bits"), divergence = now.number("divergence");
    return measured(
        {.conditions =
             {{"digits, weights and activations, dynamic scales, no outliers, contrast 1, no smoothing",
               {},
               same},
              {"your own mix, without a budget", {}, now.number("budget") >= kMostBits},
              {"at most 5.6 bits per weight", {fmt::format("{:.2f}", bits)}, bits <= kBudgetBits},
              {"divergence at most 0.006", {divergence_text(divergence)}, divergence <= kBudgetDivergence}}},
        1);
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
    const double accuracy = now.number("accuracy_pct");
    return measured(
        {.conditions = {{"digits, all weights and activations in E4M3, calibrated scales, contrast 4, no "
                         "outliers, no smoothing",
                         {},
                         same},
                        {"4 calibration batches", {now.text("batches")}, now.number("batches") == 4},
                        {"96.5 % right answers or more", percent(accuracy), accuracy >= kInRange_pct}}},
        trail.start.number("saturated_pct_a_1"));
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
    return measured(
        {.conditions = {{"digits, a cascade of MXFP4, then MXFP8, no outliers, contrast 1, no smoothing",
                         {},
                         same},
                        {"97.3 % right answers or more", percent(accuracy), accuracy >= kCascade_pct},
                        {"at most 0.6 of the work", {fmt::format("{:.3f}", cost)}, cost <= kCascadeCost}}},
        now.number("repeated_pct"));
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

// ---- L11.7
Verdict wide_quarter(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same =
        is(now,
           {{"experiment", "tokens"}, {"token_model", "1"}, {"token_high", "mxfp8"}, {"token_low", "nvfp4"}});
    const bool oracle = is(now, {{"token_by", "tokens"}, {"important", "oracle"}});
    const double share = now.number("high_share_pct"), divergence = now.number("token_divergence");
    return measured(
        {.conditions = {{"the transformer of seed 1, MXFP8 and NVFP4", {}, same},
                        {"chosen without the oracle, which has to know the answer", {}, !oracle},
                        {"at most 25 % of the work in MXFP8", percent(share), share <= kWideShare_pct},
                        {"divergence below 0.035",
                         {divergence_text(divergence)},
                         divergence < kWideDivergence}}},
        3);
}

}  // namespace

std::span<const NamedJudge> Lower::judges() {
    static constexpr std::array kJudges = {NamedJudge{"rescue", rescue},
                                           NamedJudge{"outlier_trap", outlier_trap},
                                           NamedJudge{"budget_game", budget_game},
                                           NamedJudge{"out_of_range", out_of_range},
                                           NamedJudge{"twice", twice},
                                           NamedJudge{"how_long", how_long},
                                           NamedJudge{"wide_quarter", wide_quarter}};
    return kJudges;
}

}  // namespace fp8lab::lower
