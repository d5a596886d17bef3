#include "labs/recheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/units.h"
#include "labs/exercise_run.h"

namespace fp8lab {
namespace {

// Another machine's exp and log may differ in the last place, and a mean of many in the last few.
constexpr double kSame = 1e-9;
// A retrained loss: another CPU's matrix products round differently, and 2,000 steps carry that along.
constexpr double kSameLoss = 0.02;

bool same(double a, double b, double tolerance) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

std::string words(const Metric& metric) {
    return metric.text.empty() ? shortest(metric.value) : "'" + metric.text + "'";
}

// Of what is claimed: a later version of the lab may say more.
void compare_values(const std::vector<Metric>& claimed, const std::vector<Metric>& found,
                    std::vector<std::string>& problems) {
    for (const Metric& claim : claimed) {
        const auto metric =
            std::ranges::find_if(found, [&](const Metric& m) { return m.name == claim.name; });
        if (metric == found.end())
            problems.push_back(fmt::format("{} is no value of this lab", claim.name));
        else if (claim.text != metric->text || !same(claim.value, metric->value, kSame))
            problems.push_back(fmt::format("{} is {}, not {}", claim.name, words(*metric), words(claim)));
    }
}

void compare_start(const Evidence& evidence, const State& start, std::vector<std::string>& problems) {
    for (const auto& [name, value] : evidence.start)
        if (start.field(name) != value)
            problems.push_back(fmt::format("it does not start where the exercise does: {} is '{}' there",
                                           name, start.field(name)));
}

void compare_conditions(const Evidence& evidence, const Verdict& verdict,
                        std::vector<std::string>& problems) {
    for (const Condition& condition : verdict.conditions)
        if (!condition.met) problems.push_back(fmt::format("not met: {}", condition.text));
    const auto same_condition = [](const Condition& a, const Condition& b) {
        return a.text == b.text && a.values == b.values && a.met == b.met;
    };
    if (!std::ranges::equal(evidence.conditions, verdict.conditions, same_condition))
        problems.emplace_back("its table of conditions is not the one that the judge gives");
}

void compare_measured(const Evidence& evidence, const Verdict& verdict, std::vector<std::string>& problems) {
    const auto same_value = [](double a, double b) { return same(a, b, kSame); };
    if (!std::ranges::equal(evidence.measured, verdict.measured, same_value))
        problems.emplace_back("what it holds the prediction against is not what is measured");
}

// What the evidence says of its origin. A training may come from another machine, with another device's word.
void compare_origin(const Evidence& evidence, const Lab& lab, const State& now,
                    std::vector<std::string>& problems) {
    if (evidence.seed != now.text("seed"))
        problems.push_back(fmt::format("seed is '{}', not '{}'", now.text("seed"), evidence.seed));
    const std::string_view provenance = to_string(lab.provenance());
    if (!lab.live() && evidence.provenance != provenance)
        problems.push_back(fmt::format("its values are {}, not {}", provenance, evidence.provenance));
}

// Every record of the evidence against a training of the same fields, here and now.
void retrain(const Evidence& evidence, const Exercise& exercise, const Trail& trail, Recheck& out) {
    std::vector<Evidence::Deed> again = evidence.deeds;
    for (std::size_t i = 0; i < again.size(); ++i) {
        if (again[i].record.empty()) continue;
        if (i > 0 && evidence.deeds[i].record == evidence.deeds[i - 1].record) {
            again[i].record = again[i - 1].record;
            continue;
        }
        const auto lab = find_lab(evidence.lab).make();
        for (const auto& [name, value] : trail.steps[i].after.fields)
            set_field(lab->fields(), name + "=" + value);
        const Event run = acts("run");
        carry_out(*lab, {&run, 1});
        again[i].record = lab->record();
        const State state = observe(*lab);
        for (const Metric& metric : state.metrics)
            if (const double was = trail.steps[i].after.number(metric.name);
                metric.name.starts_with("loss_") && !same(metric.value, was, kSameLoss))
                out.problems.push_back(fmt::format("retrained, {} is {}, not {}", metric.name,
                                                   format_number(metric.value), format_number(was)));
    }
    const auto lab = find_lab(evidence.lab).make();
    const Verdict verdict = judge_exercise(exercise, replay(*lab, exercise, again), &evidence.prediction);
    for (const Condition& condition : verdict.conditions)
        if (!condition.met) out.problems.push_back(fmt::format("retrained, not met: {}", condition.text));
    out.how = "retrained";
}

void judge_again(const Evidence& evidence, bool rerun, Recheck& out) {
    const auto all = all_exercises();
    const auto entry = std::ranges::find_if(
        all, [&](const ExerciseEntry& e) { return e.exercise->id == evidence.exercise; });
    if (entry == all.end()) {
        out.problems.push_back(fmt::format("there is no exercise '{}'", evidence.exercise));
        return;
    }
    if (entry->lab->id != evidence.lab) {
        out.problems.push_back(fmt::format("{} is no exercise of lab '{}'", evidence.exercise, evidence.lab));
        return;
    }
    const auto lab = entry->lab->make();
    out.how = lab->live() ? "judged from its series" : "repeated";
    const Trail trail = replay(*lab, *entry->exercise, evidence.deeds);
    out.verdict = judge_exercise(*entry->exercise, trail, &evidence.prediction);
    compare_start(evidence, trail.start, out.problems);
    compare_values(evidence.values, trail.now().metrics, out.problems);
    compare_conditions(evidence, out.verdict, out.problems);
    compare_measured(evidence, out.verdict, out.problems);
    compare_origin(evidence, *lab, trail.now(), out.problems);
    if (rerun && lab->live()) retrain(evidence, *entry->exercise, trail, out);
}

}  // namespace

Recheck recheck(const Evidence& evidence, bool rerun) {
    Recheck out;
    try {
        judge_again(evidence, rerun, out);
    } catch (const Error& error) {  // a field, value, action or record that the lab does not take
        out.problems.emplace_back(error.what());
    }
    return out;
}

}  // namespace fp8lab
