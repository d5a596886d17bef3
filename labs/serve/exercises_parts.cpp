// The judges of L17.3 to L17.5: draft, rollout, QAT.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/measured.h"
#include "labs/serve/judges.h"
#include "labs/serve/model.h"

namespace fp8lab::serve {
namespace {

using FieldValues = std::initializer_list<std::pair<const char*, const char*>>;

bool has(const State& s, FieldValues fields) {
    return std::ranges::all_of(fields,
                               [&](const auto& field) { return s.text(field.first) == field.second; });
}

// ---- L17.3
bool is_nvfp4_draft(const State& s) {
    return has(s, {{"experiment", "draft"},
                   {"model", "transformer"},
                   {"draft", "nvfp4"},
                   {"draft_lower", "both"},
                   {"temperature", "1"},
                   {"target", "bf16"}});
}
bool at_its_best(const State& s) {
    constexpr double kAlmost = 0.99;
    return s.number("speedup") >= kAlmost * s.number("best_speedup");
}

// ---- L17.4
bool is_e4m3(const std::string& scheme) {
    constexpr std::array kSchemesOfE4m3 = {"e4m3", "e4m3-row", "e4m3-128"};
    return std::ranges::find(kSchemesOfE4m3, scheme) != kSchemesOfE4m3.end();
}

// ---- L17.5
bool is_labels(const State& s) {
    return has(s, {{"experiment", "qat"}, {"scheme", "e4m3"}, {"teacher", "labels"}, {"steps", "200"}}) &&
           s.text("network").starts_with("digits");
}
// Of to nearest.
double share_left(const State& s) { return s.number("qat_divergence") / s.number("qat_nearest"); }

}  // namespace

Verdict seven_times(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto by_bytes = [](const State& s) {
        return is_nvfp4_draft(s) && s.text("cost") == "bytes" && at_its_best(s);
    };
    const double speedup = now.number("speedup");
    constexpr double kAll_pct = 100;
    return measured(
        {.conditions =
             {{"NVFP4, weights and activations, temperature 1, bytes against BF16: the best length, to 1 %",
               {},
               trail.visited(by_bytes)},
              {"now at 1/7 of a pass: the best length, to 1 %",
               {fmt::format("{:.2f}×", speedup)},
               is_nvfp4_draft(now) && now.text("cost") == "1/7" && at_its_best(now)},
              {"the acceptance that 7 times needs at 1/7",
               {trail.answered("alpha")},
               trail.answered_number("alpha") == kAll_pct}}},
        trail.start.number("best_speedup"));
}

Verdict as_long_as_it_is(const Trail& trail, const Prediction*) {
    constexpr double kLeast_pct = 72;  // the cache alone: 78, E4M3 per row: 67
    constexpr double kWeights = 0;     // of the choices: what costs more
    const State& now = trail.now();
    const bool cache = now.text("kv") == "fp8" && now.text("rollout") == "bf16";
    const bool weights = now.text("kv") == "bf16" && is_e4m3(now.text("rollout"));
    const double ess = now.number("ess_pct");
    return measured({.conditions = {{"56 tokens, 128 answers, temperature 1, no weight cut",
                                     {},
                                     has(now, {{"experiment", "rollout"},
                                               {"model", "transformer"},
                                               {"tokens", "56"},
                                               {"answers", "128"},
                                               {"temperature", "1"},
                                               {"truncate", "off"}})},
                                    {"in E4M3 are weights with inputs, or the cache: one of the two",
                                     {},
                                     cache || weights},
                                    {"an effective sample size of 72 % or more",
                                     {fmt::format("{:.0f} %", ess)},
                                     ess >= kLeast_pct}}},
                    kWeights);
}

Verdict trained_worse(const Trail& trail, const Prediction*) {
    constexpr double kFurther = 2, kCloser = 0.8;
    const State& now = trail.now();
    const auto further = [&](const State& s) {
        return is_labels(s) && s.text("network") == now.text("network") && share_left(s) >= kFurther;
    };
    const double left = share_left(now);
    return {.conditions = {
                {"digits, E4M3, labels, 200 steps", {}, is_labels(now)},
                {"one training ended twice as far as to nearest, or further", {}, trail.visited(further)},
                {"now, at another learning rate: at most 0.8 of to nearest",
                 {fmt::format("{:.2f}", left)},
                 is_labels(now) && left <= kCloser}}};
}

}  // namespace fp8lab::serve
