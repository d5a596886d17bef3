// The judges of L13's exercises, assets/exercises/transformer.json. They judge runs that nothing but the
// alignment interrupted (TransformerLab::record()).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/transformer/model.h"

namespace fp8lab::transformer {
namespace {

// After this many steps L13.4 takes an alignment: about half of the training is left to show what it does.
constexpr double kAlignFrom = 250, kAlignTo = 350;

// Not part of what is trained, or set by the button.
bool is_no_setting(std::string_view field) {
    return field == "tensor" || field == "backend" || field == "align_step";
}

std::vector<std::string> changed_settings(const Trail& trail) {
    std::vector<std::string> out;
    const auto &before = trail.start.fields, &now = trail.now().fields;
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i] != now.at(i) && !is_no_setting(before[i].first)) out.push_back(before[i].first);
    return out;
}

bool whole(const State& state) { return state.number("step") >= kSteps; }

std::string percent_of(double value) {
    return std::isnan(value) ? "–" : format_number(value, 3, true) + " %";
}

Condition whole_run(const State& state) {
    const double steps = state.number("step");
    return {"600 steps, unchanged on the way",
            {std::isnan(steps) ? "no run" : format_number(steps)},
            whole(state)};
}

Condition channel_aligned(const State& state) {
    const double at = state.number("aligned_at");
    return {"a channel aligned after 250 to 350 steps",
            {std::isnan(at) ? "not aligned" : format_number(at)},
            at >= kAlignFrom && at <= kAlignTo};
}

// The index among the choices "below 0.5 %", "0.5 to 2 %", "2 to 10 %", "more".
double bucket(double gap) {
    const double size = std::abs(gap);
    return size < 0.5 ? 0 : size < 2 ? 1 : size < 10 ? 2 : 3;
}

Verdict below_two(const Trail& trail, const Prediction*) {
    constexpr std::array<std::string_view, 5> kScaled = {"delayed", "current", "rowwise", "block128",
                                                         "mxfp8"};
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const bool arms = now.text("arm_a") == "bf16" &&
                      std::ranges::find(kScaled, now.text("arm_b")) != kScaled.end() &&
                      now.text("wide") == "none";
    return {.conditions = {whole_run(now),
                           {"text; A in BF16, B in scaled FP8, no linear kept in BF16",
                            {recipe_label(now.text("arm_a")) + "; " + recipe_label(now.text("arm_b"))},
                            arms && now.text("task") == "text"},
                           {"the loss at most 2 % above BF16", {percent_of(gap)}, whole(now) && gap <= 2}},
            .measured = whole(now) ? std::vector{bucket(gap)} : std::vector<double>{}};
}

Verdict untrained(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double answer = trail.answered_number("first"), first = now.number("first_loss_b"),
                 ln_v = std::log(55.0);
    return {
        .conditions = {
            {"your number, within 0.05",
             {std::isnan(answer) ? "–" : format_number(answer, 4)},
             std::abs(answer - ln_v) <= 0.05},
            {"text: the first loss of arm B, measured, as an untrained head gives it within 1 %",
             {std::isnan(first) ? "no step yet" : format_number(first, 4)},
             now.number("step") >= 1 && std::abs(first / ln_v - 1) <= 0.01 && now.text("task") == "text"}}};
}

Verdict twice_the_batch(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct"), lost = now.number("worst_dy_lost_pct");
    const auto moved = changed_settings(trail);
    const bool one = moved == std::vector<std::string>{"batch"};
    return {.conditions = {{"the batch changed, and no other setting",
                            {moved.empty() ? "none changed" : fmt::format("{}", fmt::join(moved, ", "))},
                            one},
                           whole_run(now),
                           {"the loss at least 50 % above BF16", {percent_of(gap)}, whole(now) && gap >= 50},
                           {"80 % or more of a gradient’s elements become 0",
                            {percent_of(lost)},
                            whole(now) && lost >= 80}},
            .note = whole(now) ? "in " + now.text("worst_dy") + ", mean of the last 100 steps" : "",
            .measured =
                whole(now) && one && now.number("batch") == 16 ? std::vector{gap} : std::vector<double>{}};
}

Verdict find_it(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const std::string tensor = now.field("tensor");
    const bool worst = whole(now) && tensor == now.text("worst_x");
    const double lost = worst ? now.number("worst_x_lost_pct") : std::nan("");
    return {
        .conditions = {channel_aligned(now),
                       whole_run(now),
                       {"the selected tensor loses most of all x", {tensor}, worst},
                       {"80 % or more of it becomes 0, mean of 100 steps", {percent_of(lost)}, lost >= 80},
                       {"the loss 10 % or more above BF16", {percent_of(gap)}, whole(now) && gap >= 10}}};
}

Verdict repair(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct"), at = now.number("aligned_at");
    const auto row = std::ranges::find(recipes(), now.text("arm_b"), &Recipe::base);
    const bool eight = row != recipes().end() && width_bits(*row->fwd) == 8 && width_bits(*row->bwd) == 8;
    return {.conditions = {
                {"a channel aligned after 300 steps or fewer",
                 {std::isnan(at) ? "not aligned" : format_number(at)},
                 at <= kSteps / 2.0},
                whole_run(now),
                {"all eight linears in 8 bits",
                 {now.text("arm_b") + (now.text("wide") == "none" ? "" : ", wide " + now.text("wide"))},
                 eight && now.text("wide") == "none"},
                {"the loss within 2 % of BF16", {percent_of(gap)}, whole(now) && std::abs(gap) <= 2}}};
}

Verdict four_bits(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double gap = now.number("gap_b_pct");
    const std::string wide = now.text("wide");
    return {.conditions = {whole_run(now),
                           {"A in BF16, B in NVFP4 as Transformer Engine has it",
                            {now.text("arm_b")},
                            now.text("arm_b") == "nvfp4-te" && now.text("arm_a") == "bf16"},
                           {"a block or more in four bits", {wide}, wide != "first+last"},
                           {"the loss at most 4 % above BF16", {percent_of(gap)}, whole(now) && gap <= 4}}};
}

}  // namespace

std::span<const NamedJudge> TransformerLab::judges() const {
    static constexpr std::array kJudges = {NamedJudge{"below_two", below_two},
                                           NamedJudge{"untrained", untrained},
                                           NamedJudge{"twice_the_batch", twice_the_batch},
                                           NamedJudge{"find_it", find_it},
                                           NamedJudge{"repair", repair},
                                           NamedJudge{"four_bits", four_bits}};
    return kJudges;
}

}  // namespace fp8lab::transformer
