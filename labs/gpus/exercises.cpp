// The judges of L15's exercises, assets/exercises/gpus.json.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "labs/gpus/model.h"
#include "labs/measured.h"

namespace fp8lab::gpus {
namespace {

constexpr double kMostSumError_pct = 2, kLeastSpread_pct = 10, kMostGap_pct = 6, kMostLost_pct = 5;
constexpr double kHalf_pct = 50, kQuarter_pct = 25;
constexpr int kAfterBadStep = 1100;
constexpr double kMostLossOff_pct = 0.3;

bool says(const State& s, std::string_view name, std::string_view word) { return s.field(name) == word; }
std::vector<std::string> percent(double value) {
    return {std::isfinite(value) ? pct(value) + " %" : std::string("–")};
}
bool same(const Trail& trail, std::initializer_list<std::string_view> fields) {
    return std::ranges::all_of(
        fields, [&](std::string_view name) { return trail.now().field(name) == trail.start.field(name); });
}

// ---- L15.1
Verdict what_stays_wide(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double error = now.number("sum_error_pct");
    const bool reads = says(now, "wscale", "reduced") || says(now, "wscale", "shard");
    return measured(
        {.conditions = {{"64 GPUs, the same seed, weights sharded",
                         {},
                         same(trail, {"gpus", "seed", "shard"})},
                        {"weights are sent in E4M3", {}, says(now, "gather", "e4m3")},
                        {"the sum is less than 2 % off", percent(error), error < kMostSumError_pct},
                        {"every GPU reads the same weights", {}, reads}}},
        trail.start.number("sum_error_pct"));
}

// ---- L15.2
Verdict the_sum_stops(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    int from = 1;
    while (from <= kSumRanks && !(now.number(fmt::format("sum.e4m3.{}.kept_pct", from)) < kHalf_pct))
        from *= 2;
    const bool found = from <= kSumRanks && trail.answered_number("n") == from;
    return {.conditions = {
                {"the same seed", {}, same(trail, {"seed"})},
                {"the smallest power of two that keeps less than 50 %", {trail.answered("n")}, found}}};
}

// ---- L15.3
bool trained(const State& s) { return s.number("steps_done") == kSteps && says(s, "gather", "e4m3"); }

Verdict equal_bytes(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto unlike = [](const State& s) {
        return trained(s) && s.number("bytes_equal") == 1 && s.number("values_equal") == 0 &&
               s.number("spread_pct") >= kLeastSpread_pct;
    };
    const double gap = now.number("gap_pct");
    return {.conditions = {
                {"after 2 000 steps: the same bytes, weights 10 % apart or more", {}, trail.visited(unlike)},
                {"the same seed, sums and number of GPUs, no bad rank",
                 {},
                 same(trail, {"seed", "gpus", "sum", "bad"})},
                {"now, in E4M3 after 2 000 steps: all read the same",
                 {},
                 trained(now) && now.number("values_equal") == 1},
                {"the loss is at most 6 % above BF16", percent(gap), trained(now) && gap <= kMostGap_pct}}};
}

// ---- L15.4
Verdict one_bad_rank(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double others = now.number("x1_lost_pct.others");
    const bool there = says(now, "bad", "x1e6") && same(trail, {"gpus", "seed"});
    const bool late = now.number("steps_done") >= kAfterBadStep;
    constexpr double kAll = 3;  // of the choices, with reduced amaxes
    return measured({.conditions = {{"rank 2 gets its batch × 1e6, the same seed and GPUs", {}, there},
                                    {"1 100 steps or more", {now.text("step")}, late},
                                    {"the other ranks lose at most 5 % of x1", percent(others),
                                     others <= kMostLost_pct}}},
                    kAll);
}

// ---- L15.5
bool on_1024(const State& s) {
    return says(s, "gpus", "1024") && says(s, "overlap", "on") && says(s, "link", "node") &&
           says(s, "shard", "zero1") && says(s, "sum", "bf16");
}
Verdict stops_paying(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double share = now.number("network_share_pct");
    const auto half = [](const State& s) { return on_1024(s) && s.number("network_share_pct") >= kHalf_pct; };
    return {.conditions = {{"1 024 GPUs, ZeRO-1, sums in BF16, overlap, NVLink + 400 Gb/s", {}, on_1024(now)},
                           {"the network took 50 % of a step or more", {}, trail.visited(half)},
                           {"now it takes 25 % or less", percent(share), share <= kQuarter_pct}}};
}

// ---- L15.6
Verdict same_steps(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double off = now.number("loss_off_pct");
    const bool several = now.field("gpus") != "1" && same(trail, {"seed", "shard"});
    constexpr double kSeveral = 2;  // of the choices: measured with the settings of the start
    return measured(
        {.conditions = {{"2 GPUs or more, the same seed, weights sharded", {}, several},
                        {"200 steps or more", {now.text("step")}, now.number("steps_done") >= kSameSteps},
                        {"after every 50th step all read the same weights",
                         {},
                         now.number("checks_equal") == 1},
                        {"each of the first 200 losses: at most 0.3 % from one GPU’s", percent(off),
                         off <= kMostLossOff_pct}}},
        kSeveral);
}

}  // namespace

std::span<const NamedJudge> Gpus::judges() {
    static constexpr std::array kJudges = {
        NamedJudge{"what_stays_wide", what_stays_wide}, NamedJudge{"the_sum_stops", the_sum_stops},
        NamedJudge{"equal_bytes", equal_bytes},         NamedJudge{"one_bad_rank", one_bad_rank},
        NamedJudge{"stops_paying", stops_paying},       NamedJudge{"same_steps", same_steps}};
    return kJudges;
}

}  // namespace fp8lab::gpus
