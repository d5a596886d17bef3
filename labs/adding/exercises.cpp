// The judges of L7's exercises, assets/exercises/adding.json.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "core/base/units.h"
#include "labs/adding/model.h"

namespace fp8lab::adding {

namespace {

constexpr double kTarget = 0.001;  // of L7.4

std::string percent(double ratio) { return format_number(100 * ratio, 2, true) + " %"; }

// A metric of the chosen rounding or format.
double of_chosen(const State& state, const char* field, const char* metric) {
    return state.number(state.text(field) + metric);
}

Verdict stalls(const Trail& trail, const Prediction*) {
    Verdict out;
    for (const char* name : {"e4m3", "e5m2", "bf16", "fp16"}) {
        const double typed = trail.answered_number(name);
        out.conditions.push_back({std::string(find_format(name).label),
                                  {std::isnan(typed) ? "" : screen_number(typed)},
                                  typed == stall_of(find_format(name), 0, 1)});
    }
    if (out.passed()) out.measured = {stall_of(find_format("e4m3"), 0, 1)};
    return out;
}

Verdict gradients(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double error = of_chosen(now, "format", ".error_pct");
    const bool same =
        now.text("experiment") == "sum" && now.number("addend") == 0.01 && now.number("terms") == 4096;
    return {.conditions = {{"4096 times 0.01", {}, same},
                           {"the sum is off by 1 % at most",
                            {screen_number(error) + " %"},
                            std::abs(error) <= 1}},
            .measured = same ? std::vector{now.number("e4m3.sum")} : std::vector<double>{}};
}

// No more than three standard errors from the number: what stochastic rounding without a bias gives.
bool unbiased(const State& state) {
    const double bias = of_chosen(state, "rounding", ".mean") - state.number("x");
    return of_chosen(state, "rounding", ".deviation") > 0 &&
           std::abs(bias) <= 3 * of_chosen(state, "rounding", ".standard_error");
}

Verdict noisier(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double cost = now.number("nearest.tensor_sqnr_db") - of_chosen(now, "rounding", ".tensor_sqnr_db");
    return {.conditions = {{"a tensor loses 2 dB or more", {screen_number(cost) + " dB"}, cost >= 2},
                           {"10 000 draws or more",
                            {screen_number(now.number("draws"))},
                            now.number("draws") >= 10000},
                           {"the draws differ, and their mean is the number, within 3 standard errors",
                            {screen_number(of_chosen(now, "rounding", ".mean"))},
                            unbiased(now)}},
            .measured = cost >= 2 ? std::vector{cost} : std::vector<double>{}};
}

Verdict promote(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool same = now.text("experiment") == "dot" && now.text("data") == "uniform" &&
                      now.number("width") == 13 && now.number("k") == 4096;
    const double every = now.number("interval");
    const auto interval = every > 0 ? static_cast<unsigned>(every) : 0U;
    const double error = now.number("promoted.rel_rms"),
                 doubled = now.number("promoted_half_as_often.rel_rms");
    return {
        .conditions = {{"13 bits, 4096 products of one sign", {}, same},
                       {"the interval is a power of two",
                        {std::to_string(interval)},
                        std::has_single_bit(interval)},
                       {"the sum is at most 0.1 % off", {percent(error)}, error <= kTarget},
                       {"twice the interval is more than 0.1 % off", {percent(doubled)}, doubled > kTarget}},
        .measured = same ? std::vector{100 * now.number("narrow.rel_rms")} : std::vector<double>{}};
}

Verdict repair(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double off_grid = of_chosen(now, "rounding", ".tensor_off_grid_pct");
    Verdict out{.conditions = {
                    {"results that are no E4M3 values: 0 %", {screen_number(off_grid) + " %"}, off_grid == 0},
                    {"the draws differ, and their mean is the number, within 3 standard errors",
                     {screen_number(of_chosen(now, "rounding", ".mean"))},
                     unbiased(now)}}};
    out.measured = {now.number("integer.tensor_off_grid_pct")};
    return out;
}

}  // namespace

std::span<const NamedJudge> Adding::judges() {
    static constexpr std::array kJudges = {NamedJudge{"stalls", stalls}, NamedJudge{"gradients", gradients},
                                           NamedJudge{"noisier", noisier}, NamedJudge{"promote", promote},
                                           NamedJudge{"repair", repair}};
    return kJudges;
}

}  // namespace fp8lab::adding
