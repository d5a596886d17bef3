// The events of a learner in an exercise, and the state of the lab after each. A judge sees nothing else. So
// an exercise can be judged again without a window from its events alone: repeated on a new lab they give the
// same trail.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/metric.h"

namespace fp8lab {

// One event: what a learner did. A drag is one event, with the value at its end.
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
// An event as exercises and claim cards write it: "margin=1" sets a field, "!step" does an action, "?slow=1" answers.
// Throws Error{input} with an empty `where` for anything else.
Event parse_event(std::string_view text);

// The state of a lab: every field and every metric.
struct State {
    std::vector<std::pair<std::string, std::string>> fields;
    std::vector<Metric> metrics;

    // A metric, or a field with a number. NaN where the lab has none of that name in this state; conditions
    // on it are then not met.
    double number(std::string_view name) const;
    // A metric that is a word, or a field; empty where there is none.
    std::string text(std::string_view name) const;
    std::string field(std::string_view name) const;  // only a field; empty where there is none
};

// The events between two states in which the lab was at rest; usually one.
struct Step {
    std::vector<Event> events;
    State after;
    // For a lab that trains: the series of a finished run as JSON (Lab::record()). Empty for other labs, whose
    // state follows from the events.
    std::string record = {};
};

struct Trail {
    State start;  // the exercise's start: the lab's defaults and Exercise::start
    std::vector<Step> steps;

    const State& now() const { return steps.empty() ? start : steps.back().after; }
    // Whether the condition was true in any state, the start included.
    bool visited(const std::function<bool(const State&)>& condition) const;
    bool did(std::string_view action) const;
    // The last answer under that name; empty or NaN where there is none.
    std::string answered(std::string_view name) const;
    double answered_number(std::string_view name) const;
};

// The value of a typed number: "0.0588", "5.88 %", "1/17", "2^-9". NaN where it is not a number.
double parse_answer(std::string_view text);

}  // namespace fp8lab
