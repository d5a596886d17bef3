// Runs an exercise on a lab without a window: used by the panel, the tests and `check`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/lesson/evidence.h"
#include "labs/lab.h"

namespace fp8lab {

// The present fields and metrics. Of a lab that trains: the metrics that follow from its record(); none
// without a record.
State observe(Lab& lab);

// Brings the lab to the exercise's start. Throws usage_error where Exercise::start does not fit the lab.
void begin_exercise(Lab& lab, const Exercise& exercise);

// What the learner has in the fields that Exercise::start keeps and does not set, where it is not their default. An attempt begins with it as
// its first step.
std::vector<Event> kept_events(Lab& lab, const Exercise& exercise);

// Called between events and while a lab computes; it ends the work by throwing. May be empty.
using Between = std::function<void()>;

// Does the events of one step, then calls update() until the lab rests. An answer changes nothing. Throws
// usage_error where the lab has no such field, value or action.
void carry_out(Lab& lab, std::span<const Event> events, const Between& between = {});

// Repeats all steps from the exercise's start. A lab that trains does not train again: it takes the records.
// Throws usage_error as carry_out() does, input_error for a record that the lab cannot take.
Trail replay(Lab& lab, const Exercise& exercise, std::span<const Evidence::EventGroup> groups,
             const Between& between = {});
// The same for events that are a step each; a lab that trains does train.
Trail perform(Lab& lab, const Exercise& exercise, std::span<const Event> events);

// One attempt on the lab in the window: records the events of the learner and judges them.
class ExerciseRun {
  public:
    ExerciseRun(Lab& lab, const Exercise& exercise,
                Prediction prediction);  // begins; hears of the lab's actions
    // Continues an interrupted attempt: its steps are repeated. Throws as replay() does.
    ExerciseRun(Lab& lab, const Exercise& exercise, Prediction prediction,
                std::span<const Evidence::EventGroup> groups, int hints);
    ~ExerciseRun();
    ExerciseRun(const ExerciseRun&) = delete;
    ExerciseRun& operator=(const ExerciseRun&) = delete;

    // Call once a frame, after the views. `hands_off`: no mouse button is down, so that a drag is one event.
    // Returns true when there is a new verdict, which is when the lab is at rest after the events; present()
    // follows a training while it runs. Throws what the lab's update() throws.
    bool follow(bool hands_off);
    void answer(std::string_view name, std::string text);
    void open_hint();

    const Exercise& exercise() const { return exercise_; }
    const Trail& trail() const { return trail_; }
    const Verdict& verdict() const { return verdict_; }  // of what a grader would repeat; it alone passes
    // The same; of a training that has not ended: as its newest step would be judged.
    const Verdict& present() const { return present_; }
    const Prediction& prediction() const { return prediction_; }
    int hints() const { return hints_; }
    Evidence evidence() const;  // of the attempt so far; to be stored when it has passed

  private:
    using Fields = std::vector<std::pair<std::string, std::string>>;
    void note_edits();
    void judge();
    void look_at_training();

    Lab& lab_;
    const Exercise& exercise_;
    Prediction prediction_;
    Trail trail_;
    Verdict verdict_, present_;
    double judged_step_ = -1;     // of a training: the step that present_ is of
    Fields seen_;                 // the fields after the events so far
    std::vector<Event> pending_;  // since the lab last rested
    bool acted_ = false;          // there was an action in this frame: fields that it changed are not edits
    int hints_ = 0;
};

struct ExerciseEntry {
    const LabEntry* lab;
    const Exercise* exercise;  // lives as long as the program
};
std::vector<ExerciseEntry> all_exercises();

std::string local_time();  // now, ISO 8601

}  // namespace fp8lab
