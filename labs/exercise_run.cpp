#include "labs/exercise_run.h"

#include <chrono>
#include <thread>

namespace fp8lab {

State observe(Lab& lab) {
    State state;
    for (const Field& field : lab.fields()) state.fields.emplace_back(field.info.name, field_text(field));
    state.metrics = lab.metrics();
    return state;
}

void begin_exercise(Lab& lab, const Exercise& exercise) {
    lab.reset();
    for (const std::string& assignment : exercise.start) set_field(lab.fields(), assignment);
    lab.update();
}

namespace {

// Headless labs compute inline; one that trains does not.
void settle(Lab& lab) {
    lab.update();
    while (lab.busy()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lab.update();
    }
}

}  // namespace

void apply(Lab& lab, std::span<const Event> events) {
    for (const Event& event : events) {
        if (event.kind == Event::Kind::set) set_field(lab.fields(), event.name + "=" + event.value);
        if (event.kind == Event::Kind::act) {
            settle(lab);
            lab.act(event.name);
        }
    }
    settle(lab);
}

Trail replay(Lab& lab, const Exercise& exercise, std::span<const Event> events) {
    begin_exercise(lab, exercise);
    Trail trail{.start = observe(lab), .steps = {}};
    for (const Event& event : events) {
        apply(lab, {&event, 1});
        trail.steps.push_back({{event}, observe(lab)});
    }
    return trail;
}

std::vector<ExerciseEntry> all_exercises() {
    std::vector<ExerciseEntry> out;
    for (const LabEntry& entry : lab_registry())
        for (const Exercise& exercise : entry.make()->exercises()) out.push_back({&entry, &exercise});
    return out;
}

}  // namespace fp8lab
