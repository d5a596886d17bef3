// An exercise on a lab, without a window: what the panel, the tests and `check` share.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/lesson/evidence.h"
#include "labs/lab.h"

namespace fp8lab {

// Every field and metric, as it stands. Of a lab that trains: the metrics that follow from its record(), none
// without.
State observe(Lab& lab);

// The lab at the exercise's start. Throws usage_error where Exercise::start does not fit the lab.
void begin_exercise(Lab& lab, const Exercise& exercise);

// Asked between events and while a lab computes; ends the work by throwing. Empty: nobody asks.
using Between = std::function<void()>;

// The events of one step, then update() until the lab rests. An answer changes nothing. Throws usage_error
// where the lab has no such field, value or action.
void carry_out(Lab& lab, std::span<const Event> events, const Between& between = {});

// From the exercise's start through all deeds. A lab that trains does not train again: it takes the records.
// Throws usage_error as carry_out() does, input_error for a record that the lab cannot take.
Trail replay(Lab& lab, const Exercise& exercise, std::span<const Evidence::Deed> deeds,
             const Between& between = {});
// The same for events that are each a step of their own, done for real.
Trail perform(Lab& lab, const Exercise& exercise, std::span<const Event> events);

// One attempt, on the lab in the window: notes what the learner does and judges it.
class ExerciseRun {
  public:
    ExerciseRun(Lab& lab, const Exercise& exercise,
                Prediction prediction);  // begins; listens to the lab's actions
    // Goes on with one that was broken off: its deeds are repeated. Throws as replay() does.
    ExerciseRun(Lab& lab, const Exercise& exercise, Prediction prediction,
                std::span<const Evidence::Deed> deeds, int hints);
    ~ExerciseRun();
    ExerciseRun(const ExerciseRun&) = delete;
    ExerciseRun& operator=(const ExerciseRun&) = delete;

    // Once a frame, after the views. `hands_off`: no mouse button is down, so that a drag is one event. True
    // when there is a new verdict: once the lab shows what follows from the events. Throws what the lab's
    // update() throws.
    bool follow(bool hands_off);
    void answer(std::string_view name, std::string text);
    void open_hint();

    const Exercise& exercise() const { return exercise_; }
    const Trail& trail() const { return trail_; }
    const Verdict& verdict() const { return verdict_; }
    const Prediction& prediction() const { return prediction_; }
    int hints() const { return hints_; }
    Evidence evidence() const;  // of the attempt so far; worth keeping once it has passed

  private:
    using Fields = std::vector<std::pair<std::string, std::string>>;
    void note_edits();
    void judge();

    Lab& lab_;
    const Exercise& exercise_;
    Prediction prediction_;
    Trail trail_;
    Verdict verdict_;
    Fields seen_;                 // the fields that the events so far account for
    std::vector<Event> pending_;  // since the lab last rested
    bool acted_ = false;          // an action was done in this frame: what it moved is no edit
    int hints_ = 0;
};

struct ExerciseEntry {
    const LabEntry* lab;
    const Exercise* exercise;  // lives as long as the program
};
std::vector<ExerciseEntry> all_exercises();

std::string local_time();  // now, ISO 8601

}  // namespace fp8lab
