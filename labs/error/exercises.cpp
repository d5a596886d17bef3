// The judges of L3's exercises, assets/exercises/error.json.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/error/model.h"

namespace fp8lab::error {

namespace {

constexpr std::array kSketchAt = {1e-4, 6e-3, 0.4, 25.0, 1000.0};

std::string name_of_kind(const std::string& kind) {
    for (const Choice& choice : tensor_kinds())
        if (choice.id == kind) return choice.label;
    return kind;
}

std::string percent(double ratio) { return format_number(100 * ratio, 3, true) + " %"; }

Verdict worst_case(const Trail& trail, const Prediction*) {
    const auto condition = [&](const char* name, const char* label, double truth, double tolerance) {
        const double answer = trail.answered_number(name);
        std::vector<std::string> said;
        if (!std::isnan(answer))
            said.push_back(percent(answer));
        else if (const std::string typed = trail.answered(name); !typed.empty())
            said.push_back(typed + " is no number");
        return Condition{label, std::move(said), std::fabs(answer - truth) <= tolerance};
    };
    Verdict verdict{.conditions = {condition("e4m3", "E4M3, within 0.3 percentage points", 1.0 / 17, 0.003),
                                   condition("e5m2", "E5M2, within 0.6 percentage points", 1.0 / 9, 0.006)}};
    if (!verdict.passed()) return verdict;  // the curve that the sketch is compared with shows the answer
    for (const double x : kSketchAt) verdict.measured.push_back(worst_near(rounder_of("e4m3"), 1, x));
    return verdict;
}

constexpr std::array<std::string_view, 3> kCurves = {"a", "b", "c"};

std::string_view name_of(std::string_view rounder) {
    return rounder == "e4m3" ? "E4M3" : rounder == "e5m2" ? "E5M2" : "fixed point";
}

Verdict impostor(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double seed = now.number("seed");
    const auto truth = blind_order(std::isnan(seed) ? 0 : static_cast<int>(seed));
    Verdict verdict;
    bool all = true;
    for (std::size_t i = 0; i < kCurves.size(); ++i) all &= trail.answered(kCurves[i]) == name_of(truth[i]);
    // Not one by one: three conditions would let it be tried out.
    verdict.conditions = {{"all three names are right", {}, all},
                          {"the plot showed no names", {}, now.text("blind") == "on"}};
    return verdict;
}

Verdict disagree(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double mean[] = {now.number("e4m3.mean_rel"), now.number("e5m2.mean_rel")};
    const double l2[] = {now.number("e4m3.rel_l2"), now.number("e5m2.rel_l2")};
    return {
        .conditions = {{"mean relative: E5M2 wins", {percent(mean[0]), percent(mean[1])}, mean[1] < mean[0]},
                       {"relative L2: E4M3 wins", {percent(l2[0]), percent(l2[1])}, l2[0] < l2[1]}},
        .note = fmt::format(
            "{}{}, {}", name_of_kind(now.text("tensor")),
            now.text("tensor") == "lognormal" ? ", sigma " + format_number(now.number("sigma")) : "",
            now.text("scaling") == "amax" ? "amax scale" : "scale 1")};
}

Verdict twice_as_good(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double ratio = now.number("e5m2.mean_rel") / now.number("e4m3.mean_rel");
    const bool is_normal = now.text("tensor") == "normal" && now.text("file").empty();
    Verdict verdict{.conditions = {{"a Gaussian tensor",
                                    {now.text("file").empty() ? name_of_kind(now.text("tensor")) : "a file"},
                                    is_normal},
                                   {"scaled by its amax",
                                    {now.text("scaling") == "amax" ? "amax scale" : "scale 1"},
                                    now.text("scaling") == "amax"},
                                   {"E5M2’s mean error is 1.8 to 2.3 times E4M3’s",
                                    {format_number(ratio, 3)},
                                    ratio >= 1.8 && ratio <= 2.3}}};
    if (verdict.passed()) verdict.measured = {ratio};
    return verdict;
}

}  // namespace

std::span<const NamedJudge> RoundingError::judges() {
    static constexpr std::array kJudges = {NamedJudge{"worst_case", worst_case},
                                           NamedJudge{"impostor", impostor}, NamedJudge{"disagree", disagree},
                                           NamedJudge{"twice_as_good", twice_as_good}};
    return kJudges;
}

}  // namespace fp8lab::error
