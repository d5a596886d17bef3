// What a learner did in an exercise, and what the lab said after each thing done. A judge sees nothing else;
// so an exercise can be judged again, headlessly, from its events alone: a fresh lab on which they are
// repeated gives the same trail.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/metric.h"

namespace fp8lab {

// A learner's own act. A drag is one event: where it ended.
struct Event {
    enum class Kind { set, act, answer };
    Kind kind = Kind::set;
    std::string name;   // set: the field; act: the lab's action, "step"; answer: the exercise's Answer::name
    std::string value;  // set: as field_text(); answer: as typed, or the choice's id; act: empty
    bool operator==(const Event&) const = default;
};
Event sets(std::string field, std::string value);
Event acts(std::string action);
Event types(std::string name, std::string value);

// The lab as it stands: every field and every metric, typed by their tables.
struct State {
    std::vector<std::pair<std::string, std::string>> fields;
    std::vector<Metric> metrics;

    // A metric, or a field that holds a number. NaN where the lab gives none of that name in this state (no
    // condition on it is then met).
    double number(std::string_view name) const;
    // A metric that is a word, or a field; empty where there is none.
    std::string text(std::string_view name) const;
    std::string field(std::string_view name) const;  // only a field; empty where there is none
};

// What was done between two states that the lab came to rest in; mostly one event.
struct Step {
    std::vector<Event> events;
    State after;
    // What a lab that trains has measured in a finished run, as JSON (Lab::record()); empty for the others,
    // whose state follows from the events.
    std::string record = {};
};

struct Trail {
    State start;  // the exercise's start: the lab's defaults and Exercise::start
    std::vector<Step> steps;

    const State& now() const { return steps.empty() ? start : steps.back().after; }
    // Also the start counts as visited.
    bool visited(const std::function<bool(const State&)>& condition) const;
    bool did(std::string_view action) const;
    // The last answer typed under that name; none yet: empty, NaN.
    std::string answered(std::string_view name) const;
    double answered_number(std::string_view name) const;
};

// A number as people type it: "0.0588", "5.88 %", "1/17", "2^-9". NaN where it is none.
double parse_answer(std::string_view text);

}  // namespace fp8lab
