// An exercise: predict, act, be judged, explain. Labs hand out theirs through Lab::exercises() as data
// (labs/<id>/exercises.cpp); one panel shows them all, one test drives them all, one verb judges their
// evidence again.
//
//   {.id = "L5.3", .title = "The slider that does nothing", .question = "Find ...",
//    .hints = {"nudge", "which control", "worked value"}, .judge = same_scales,
//    .solver = {sets("algo", "most_recent"), acts("pin"), sets("history", "64")},
//    .near_misses = {NearMiss{"max looks back", {sets("algo", "max"), ...}}, NearMiss{...}}}
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/figure/figure.h"
#include "core/lesson/trail.h"

namespace fp8lab {

// ---- What is predicted before the controls open.
struct NumberPrediction {
    std::string label, unit = {};
    double min = 0, max = 1, initial = 0.5;
    bool logarithmic = false;
    double step = 0;  // what the value snaps to; 0: continuous
};
struct ChoicePrediction {
    std::vector<std::string> choices;  // 2-5, short
};
struct CurvePrediction {
    std::string figure;      // id of the lab's figure that the drawn lines are laid over
    AxisSpec x, y;           // both with a range: the empty axes, without an answer in them
    std::vector<double> at;  // x of the knobs, 3-7
    std::vector<std::string> lines = {"your line"};  // one or two, drawn one after the other
    double initial = 0;                              // y of every knob at first
};
using PredictionSpec = std::variant<std::monostate, NumberPrediction, ChoicePrediction, CurvePrediction>;

// What the learner committed. Kept, never graded.
struct Prediction {
    bool skipped = false;
    std::vector<double> values;  // the number; the index of the choice; y of the knobs, line after line
    std::string at;              // local time, ISO 8601
};

// ---- What is typed or chosen in the panel. Each becomes an Event{answer}; shown as a field under the
// question.
struct Answer {
    std::string name, label, unit;
    std::vector<std::string> choices = {};  // not empty: one of these; else a number
};

// ---- The verdict: the live table that ends in "yes" or "not yet".
struct Condition {
    std::string text;                 // "relative L2"
    std::vector<std::string> values;  // as read by people, one under each of Exercise::columns (or one)
    bool met = false;
};
struct Verdict {
    std::vector<Condition> conditions;
    std::string note = {};  // the state they hold for: "log-normal, sigma 2, amax scale"
    // What the prediction is held against, shaped as Prediction::values. Empty: not measured yet.
    std::vector<double> measured = {};
    bool passed() const;  // at least one condition, and all met
};

// Pure: looks at the trail and, where it matters that one was made, at the prediction (null: none yet). May
// run computations of its own (a sweep), never the clock, a file or a lab that someone else holds. Must not
// demand "a learner's own action": judge_exercise() does, for all.
using Judge = Verdict (*)(const Trail&, const Prediction*);

struct NearMiss {
    std::string why;  // what is missing
    std::vector<Event> events;
};

struct Exercise {
    std::string id;        // "L5.3"
    std::string title;     // 2-4 words
    std::string question;  // 1-2 sentences: what to reach, not how
    PredictionSpec prediction = {};
    std::string predict = {};             // the question that the prediction answers; empty without one
    std::vector<std::string> start = {};  // "field=value" on top of the lab's defaults
    std::vector<Answer> answers = {};
    std::vector<std::string> columns = {};  // heads over Condition::values: "E4M3", "E5M2"; may be empty
    std::array<std::string, 3> hints = {};  // nudge, which control, worked value
    Judge judge = nullptr;
    std::string explanation = {};  // shown after passing: why it is so, 1-3 sentences

    // Specimens, driven by one test: the start fails, the solver passes, both near misses fail.
    std::vector<Event> solver = {};
    std::array<NearMiss, 2> near_misses = {};
};

// What one attempt may hold. A key that is held gives 30 events a second; whoever grades repeats each on a
// lab and keeps the state after it, 4 to 15 KB.
inline constexpr std::size_t kMostEvents = 5'000;

// The judge's verdict, and one condition more while the trail holds no event of the learner's, or more than
// kMostEvents.
Verdict judge_exercise(const Exercise& exercise, const Trail& trail, const Prediction* prediction);

}  // namespace fp8lab
