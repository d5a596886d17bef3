// An exercise: the learner predicts, acts, is judged and explains. It is data, assets/exercises/<lab>.json
// (parse_exercises()), but for its judge, a function of the lab (labs/<id>/exercises.cpp) that the data names.
// Lab::exercises() returns those of a lab. One panel shows all exercises, one test runs all, and one verb judges their
// evidence again.
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

struct Field;

// ---- The prediction, before the controls can be used.
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

// The prediction of the learner. It is stored and never graded.
struct Prediction {
    bool skipped = false;
    std::vector<double> values;  // the number; the index of the choice; y of the knobs, line after line
    std::string at;              // local time, ISO 8601
};

// ---- An answer that is typed or chosen in the panel, in a field under the question. It becomes an
// Event{answer}.
struct Answer {
    std::string name, label, unit;
    std::vector<std::string> choices = {};  // not empty: one of these; else a number
};

// ---- The verdict: a table of conditions whose last column is "yes" or "not yet".
struct Condition {
    std::string text;                 // "relative L2"
    std::vector<std::string> values;  // as text, one for each of Exercise::columns (or one)
    bool met = false;
};
struct Verdict {
    std::vector<Condition> conditions;
    std::string note = {};  // the state that the conditions are about: "log-normal, sigma 2, amax scale"
    // The values that the prediction is compared with, as many as Prediction::values. Empty: not measured
    // yet.
    std::vector<double> measured = {};
    bool passed() const;  // at least one condition, and all met
};

// A pure function of the trail and of the prediction (null: none yet). It may compute (a sweep, say), but
// uses no clock, no file and no lab of others. It does not check that the learner acted: judge_exercise()
// does, for all exercises. It gives the same conditions for every trail, also for one without a lab's state: each
// says in its text, or in the question, all that it asks for.
using Judge = Verdict (*)(const Trail&, const Prediction*);

struct NamedJudge {
    std::string_view name;  // "idle_slider"
    Judge judge;
};

// Whether an entry of Exercise::start keeps the field as it is.
bool keeps(std::string_view entry, std::string_view field);

struct NearMiss {
    std::string why;  // what the learner got wrong
    std::vector<Event> events;
    std::string refused_by;  // the text of the condition that is not met because of it
};

struct Exercise {
    std::string id;     // "L5.3"
    std::string title;  // 2-4 words
    // At most 4 sentences that are understood alone: what to do and what must hold at the end, not the answer.
    std::string question;
    PredictionSpec prediction = {};
    std::string predict = {};  // the question that the prediction answers; empty without one
    // What answers it, and is covered until the prediction is made: figures and other parts of the lab's stage, by
    // the names that its view gives them (ui::covered()). All else of the lab stays in sight.
    std::vector<std::string> covers = {};
    bool conditions_answer = false;  // the conditions name the answer too: they come after the prediction
    // "field=value" on top of the lab's defaults. A name alone, "seed", or the beginning of several, "diagnosis_*": what the
    // learner has there stays when the exercise begins. "*": all of it. Of an exercise that was passed before nothing stays.
    std::vector<std::string> start = {};
    std::vector<Answer> answers = {};
    std::vector<std::string> columns = {};  // heads over Condition::values: "E4M3", "E5M2"; may be empty
    std::array<std::string, 3> hints = {};  // nudge, which control, worked value
    Judge judge = nullptr;
    std::string explanation = {};  // shown after passing: why it is so, 1-3 sentences
    // An action of the lab that shows what was asked for; done on passing, and from then on whenever the lab starts
    // anew. Empty: none.
    std::string reveals = {};
    // "field=value": what the start hides is shown again on passing.
    std::vector<std::string> uncovers = {};

    // Examples for the test of all exercises: the start fails, the solver passes, every near miss fails.
    std::vector<Event> solver = {};
    std::vector<NearMiss> near_misses = {};  // two or more; three or more from L9 on
};

// The largest number of events of an attempt. A key that is held down gives 30 events per second; a grader
// repeats each on a lab and keeps the state after it, 4 to 15 KB.
inline constexpr std::size_t kMostEvents = 5'000;

// The judge's verdict. It has one more condition while the trail has no event of the learner, or more than
// kMostEvents.
Verdict judge_exercise(const Exercise& exercise, const Trail& trail, const Prediction* prediction);

// The judge's conditions before anything was done: their texts, no values, none met.
std::vector<Condition> conditions_of(const Exercise& exercise);

// ---- The exercises of a lab in a file, assets/exercises/<lab>.json: an array, in the order of the panel. What is left out
// is empty.
//
//   [
//     {
//       "id": "L5.3",
//       "title": "The idle slider",
//       "question": "Show that the length of the amax history can have no effect. ...",
//       "prediction": {"choice": ["max", "most recent", "percentile"]},
//       "predict": "With which reducer does the length of the history have no effect?",
//       "covers": ["timeline"],                      left out: nothing is covered
//       "conditions_answer": true,                   left out: false
//       "start": ["scenario=spike", "history=16", "seed"],
//       "answers": [{"name": "slow", "label": "smallest margin at ×1.5", "unit": "", "choices": ["1", "2"]}],
//       "columns": ["E4M3", "E5M2"],
//       "hints": ["nudge", "which control", "worked value"],
//       "judge": "idle_slider",                      a name of Lab::judges(), labs/<lab>/exercises.cpp
//       "explanation": "most recent reads slot 0 ...",
//       "reveals": "reveal", "uncovers": ["levels=on"],
//       "solver": ["algo=most_recent", "!pin", "history=64"],
//       "near_misses": [{"why": "max looks back", "events": ["!pin", "history=64"],
//                        "refused_by": "both use the reducer most recent"}]
//     }
//   ]
//
// Events: "history=64" sets a field, "!pin" does an action of the lab, "?slow=1" types or chooses an answer.
// Predictions, each the only member of its object; "unit", "logarithmic", "step", "scale" and "lines" may be left out:
//   {"choice": ["yes", "no"]}                                                 2 to 5
//   {"number": {"label": "gap", "unit": "%", "min": 0, "max": 200, "initial": 10, "logarithmic": false, "step": 1}}
//   {"curve": {"figure": "margin", "x": {"label": "margin", "scale": "linear", "range": [-0.5, 9.5]}, "y": {...},
//              "at": [0, 3, 6, 9], "lines": ["E4M3", "INT8"], "initial": 20}}   scale: linear, log2, log10, symlog
// "question", "predict" and "explanation" may name numbers of ten trainings: {runs L8 delayed gap_pct interval}
// (core/lesson/runs.h).
//
// `fields`: those of the lab, by whose names "start", "uncovers" and events are checked. Throws input_error(where, ...),
// with line and column: not JSON; a member unknown, missing, twice or of a wrong type; an unknown judge, field, answer or
// choice; a text that is no event; an id twice; a prediction without its question, or the other way round.
std::vector<Exercise> parse_exercises(std::string_view text, const std::string& where,
                                      std::span<const NamedJudge> judges, std::span<const Field> fields);

}  // namespace fp8lab
