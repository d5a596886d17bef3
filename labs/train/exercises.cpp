// The judges of L8's exercises, assets/exercises/train.json. They judge finished runs that no change
// interrupted (TrainLab::record()).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/units.h"
#include "labs/train/model.h"

namespace fp8lab::train {

namespace {

constexpr double kSteps = 2000;  // what "tail loss" is calibrated on

// Seeds 1-6 end 3 to 15 % above BF16, seed 1 at 15.4 %.
constexpr double kStochasticGap = 20;

// Not part of what was trained.
bool is_looks(std::string_view field) {
    return field == "tensor" || field == "speed_limit" || field == "backend";
}

std::vector<std::string> changed(const State& a, const State& b) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < a.fields.size(); ++i)
        if (a.fields[i] != b.fields.at(i) && !is_looks(a.fields[i].first)) out.push_back(a.fields[i].first);
    return out;
}

bool finished(const State& state) { return state.number("step") >= kSteps; }

bool casts_to_fp8(std::string_view recipe) {
    const auto row = std::ranges::find(recipes(), recipe, &Recipe::base);
    return row != recipes().end() && is_fp8(*row->fwd);
}

std::string percent(double value) {
    return std::isnan(value) ? "\u2013" : format_number(value, 3, true) + " %";
}

std::string steps_done(const State& state) {
    const double steps = state.number("step");
    return std::isnan(steps) ? "no finished run" : group_thousands(static_cast<std::int64_t>(steps));
}

// The index among the choices "below 1 %", "1 to 5 %", "5 to 20 %", "more, or it diverges".
double bucket(double gap) {
    const double size = std::abs(gap);
    return size < 1 ? 0 : size < 5 ? 1 : size < 20 ? 2 : 3;
}

Verdict twins(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    // An option may keep layers in BF16.
    const bool arms =
        now.text("arm_a") == "bf16" && casts_to_fp8(now.text("arm_b")) && now.text("options").empty();
    return {.conditions = {{"2,000 steps, unchanged on the way", {steps_done(now)}, finished(now)},
                           {"A in BF16, B in FP8 in all layers, no other options",
                            {recipe_label(now.text("arm_a")) + "; " + recipe_label(now.text("arm_b"))},
                            arms}},
            .note = finished(now) ? "gap " + percent(gap) + " of the last 100 losses" : "",
            .measured = finished(now) ? std::vector{bucket(gap)} : std::vector<double>{}};
}

Verdict curve_lies(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double lost = now.number("worst_underflow_pct"), gap = now.number("gap_b_pct"),
                 l1 = now.number("worst_lost_l1_pct"), energy = now.number("worst_lost_energy_pct");
    std::string note = "zeros in " + now.text("worst_underflow_tensor") + ", mean of the run";
    if (!std::isnan(l1) && !std::isnan(energy))
        note += ": " + percent(l1) + " of its absolute sum, " + percent(energy) + " of its energy";
    return {.conditions = {{"2,000 steps, unchanged on the way", {steps_done(now)}, finished(now)},
                           {"30 % or more of a gradient’s elements became 0", {percent(lost)}, lost >= 30},
                           {"the loss within 5 % of BF16", {percent(gap)}, std::abs(gap) <= 5}},
            .note = finished(now) ? note : ""};
}

Verdict one_control(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const auto moved = changed(trail.start, now);
    constexpr std::array<std::string_view, 8> kOfRecipe = {"arm_b", "history", "margin",   "algo",
                                                           "fwd",   "bwd",     "interval", "round"};
    const bool one = moved.size() == 1 && std::ranges::find(kOfRecipe, moved.front()) != kOfRecipe.end();
    return {.conditions = {{"one control of B\u2019s recipe changed",
                            {moved.size() == 1 && !one ? moved.front() + ", not of the recipe"
                                                       : fmt::format("{} changed", moved.size())},
                            one},
                           {"2,000 steps, unchanged on the way", {steps_done(now)}, finished(now)},
                           {"the loss at most 5 % above BF16", {percent(gap)}, finished(now) && gap <= 5}}};
}

Verdict without_master_weights(const Trail& trail, const Prediction*) {
    const auto without_master = [](const State& state, std::string_view rounding) {
        return finished(state) && state.text("master") == "none" && state.text("round_update") == rounding;
    };
    const State *nearest = nullptr, *stochastic = nullptr;
    for (const Step& step : trail.steps) {
        if (without_master(step.after, "nearest") && step.after.number("gap_b_pct") >= 200)
            nearest = &step.after;
        if (without_master(step.after, "stochastic") && step.after.number("gap_b_pct") <= kStochasticGap)
            stochastic = &step.after;
    }
    const bool fair =
        nearest && stochastic && changed(*nearest, *stochastic) == std::vector<std::string>{"round_update"};
    const auto gap = [](const State* state) {
        return percent(state ? state->number("gap_b_pct") : std::nan(""));
    };
    return {.conditions = {{"2,000 steps without master weights, nearest: loss 3× BF16’s or more",
                            {gap(nearest)},
                            nearest != nullptr},
                           {"2,000 steps without master weights, stochastic: at most 20 % above BF16",
                            {gap(stochastic)},
                            stochastic != nullptr},
                           {"no other setting differs between the two runs", {}, fair}}};
}

// The recipe of arm B; nothing: its options are not valid.
std::optional<Recipe> arm_b(const State& state) {
    try {
        const std::string options = state.text("options");
        return parse_recipe(state.text("arm_b") + (options.empty() ? "" : ":" + options));
    } catch (const Error&) {
        return std::nullopt;
    }
}

// How many of the three GEMMs of a linear layer read operands of 8 bits.
int gemms_in_8_bits(const Recipe& recipe) {
    int count = 0;
    for (const Gemm gemm : {Gemm::fprop, Gemm::dgrad, Gemm::wgrad}) {
        const Recipe here = recipe_of_gemm(recipe, gemm);
        count += is_fp8(*here.fwd) && (gemm == Gemm::fprop || is_fp8(*here.bwd));
    }
    return count;
}

Verdict two_of_three(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const auto recipe = arm_b(now);
    const int narrow = recipe ? gemms_in_8_bits(*recipe) : 0;
    const auto moved = changed(trail.start, now);
    constexpr std::array<std::string_view, 2> kOfRecipe = {"arm_b", "options"};
    const bool same = std::ranges::all_of(moved, [&](const std::string& name) {
        return std::ranges::find(kOfRecipe, name) != kOfRecipe.end();
    });
    return {
        .conditions = {{"2,000 steps, unchanged on the way", {steps_done(now)}, finished(now)},
                       {"two of arm B\u2019s three GEMMs in 8 bits, in every layer",
                        {fmt::format("{} in 8 bits", narrow)},
                        narrow == 2 && recipe->wide.empty()},
                       {"nothing else changed: only Arm B and the operands of its GEMMs", {}, same},
                       {"the loss at most 1.5 % above BF16", {percent(gap)}, finished(now) && gap <= 1.5}}};
}

// Both runs have a scaler that grows; one saturates, where no Inf ever stops it.
Verdict loss_scaler(const Trail& trail, const Prediction*) {
    constexpr double kEndless = 0x1p100, kClose = 10;
    const State *grown = nullptr, *settled = nullptr;
    for (const Step& step : trail.steps) {
        const State& s = step.after;
        if (!finished(s)) continue;
        const bool saturates = s.text("overflow") == "saturate";
        if (saturates && s.number("loss_scale_b") > kEndless && s.number("skipped_b") == 0) grown = &s;
        if (!saturates && s.number("skipped_b") > 0 && s.number("gap_b_pct") <= kClose) settled = &s;
    }
    const bool fair = grown && settled && changed(*grown, *settled) == std::vector<std::string>{"overflow"};
    const auto told = [](const State* state) {
        return state ? fmt::format("2^{:.0f}, {} skipped, {}", std::log2(state->number("loss_scale_b")),
                                   state->number("skipped_b"), percent(state->number("gap_b_pct")))
                     : std::string("no such run");
    };
    return {.conditions = {{"2,000 steps, saturating: the scale above 2^100, no step skipped",
                            {told(grown)},
                            grown != nullptr},
                           {"2,000 steps, Inf or NaN: steps skipped, at most 10 % above BF16",
                            {told(settled)},
                            settled != nullptr},
                           {"no other setting differs between the two runs", {}, fair}}};
}

// Both runs have 8 micro-batches; what goes into the history differs.
Verdict saturating_casts(const Trail& trail, const Prediction*) {
    constexpr double kClose = 0.1;
    const State *largest = nullptr, *last = nullptr;
    for (const Step& step : trail.steps) {
        const State& s = step.after;
        if (!finished(s) || s.text("accumulate") != "8" || !(s.number("saturated_casts_pct_x1") > 0))
            continue;
        if (s.text("amax_of") == "max") largest = &s;
        if (s.text("amax_of") == "last") last = &s;
    }
    const auto share = [](const State* state) {
        return state ? state->number("saturated_casts_pct_x1") : std::nan("");
    };
    const auto told = [&](const State* state) {
        return state ? percent(share(state)) + " of x1\u2019s casts saturate" : std::string("no such run");
    };
    const bool fair = largest && last && changed(*largest, *last) == std::vector<std::string>{"amax_of"};
    const double factor = share(last) / share(largest), typed = trail.answered_number("factor");
    return {.conditions = {
                {"2,000 steps of 8 micro-batches, the largest amax", {told(largest)}, largest != nullptr},
                {"2,000 steps of 8 micro-batches, the last amax", {told(last)}, last != nullptr},
                {"no other setting differs between the two runs", {}, fair},
                {"the factor between these two shares, within 10 %",
                 {std::isnan(typed) ? "\u2013" : format_number(typed, 3, true)},
                 std::abs(typed / factor - 1) <= kClose}}};
}

// Both arms have the same rate; the moments in 8 bits win at a low one and lose at a high one.
Verdict rate_of_v(const Trail& trail, const Prediction*) {
    constexpr double kLoses = 10;
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const bool arms = now.text("arm_a") == "bf16" && now.text("recipe_b") == "bf16:v=e4m3";
    return {.conditions = {{"A in BF16, B in BF16 with v in E4M3 and no other option",
                            {recipe_label(now.text("arm_a")) + "; " + now.text("recipe_b")},
                            arms},
                           {"2,000 steps, unchanged on the way", {steps_done(now)}, finished(now)},
                           {"the loss of B at least 10 % above that of A",
                            {percent(gap)},
                            finished(now) && gap >= kLoses}},
            .note = finished(now) ? "learning rate " + now.text("lr") : ""};
}

}  // namespace

std::span<const NamedJudge> TrainLab::judges() const {
    static constexpr std::array kJudges = {NamedJudge{"twins", twins},
                                           NamedJudge{"curve_lies", curve_lies},
                                           NamedJudge{"one_control", one_control},
                                           NamedJudge{"without_master_weights", without_master_weights},
                                           NamedJudge{"two_of_three", two_of_three},
                                           NamedJudge{"loss_scaler", loss_scaler},
                                           NamedJudge{"saturating_casts", saturating_casts},
                                           NamedJudge{"rate_of_v", rate_of_v}};
    return kJudges;
}

}  // namespace fp8lab::train
