#include "core/lesson/exercise.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace fp8lab {

bool Verdict::passed() const {
    return !conditions.empty() &&
           std::all_of(conditions.begin(), conditions.end(), [](const Condition& c) { return c.met; });
}

bool keeps(std::string_view entry, std::string_view field) {
    return entry.ends_with('*') ? field.starts_with(entry.substr(0, entry.size() - 1)) : field == entry;
}

Verdict judge_exercise(const Exercise& exercise, const Trail& trail, const Prediction* prediction) {
    Verdict verdict = exercise.judge(trail, prediction);
    if (trail.steps.empty())
        verdict.conditions.push_back({.text = "something done by yourself", .values = {}, .met = false});
    std::size_t events = 0;
    for (const Step& step : trail.steps) events += step.events.size();
    if (events > kMostEvents)
        verdict.conditions.push_back(
            {.text = fmt::format("The attempt has at most {},{:03} events. Begin again.", kMostEvents / 1000,
                                 kMostEvents % 1000),
             .values = {std::to_string(events)},
             .met = false});
    return verdict;
}

std::vector<Condition> conditions_of(const Exercise& exercise) {
    std::vector<Condition> conditions = exercise.judge({}, nullptr).conditions;
    for (Condition& condition : conditions) condition = {.text = condition.text, .values = {}, .met = false};
    return conditions;
}

}  // namespace fp8lab
