// Evidence as the window makes it: what the panel does while a learner does these things.
#pragma once

#include <span>
#include <stdexcept>
#include <string_view>

#include "labs/course/exercise_run.h"

namespace fp8lab::test {

inline ExerciseEntry exercise(std::string_view id) {
    for (const ExerciseEntry& entry : all_exercises())
        if (entry.exercise->id == id) return entry;
    throw std::runtime_error("no exercise " + std::string(id));
}

// The events need not pass.
inline Evidence attempt(const ExerciseEntry& entry, std::span<const Event> events, Prediction prediction) {
    const auto lab = entry.lab->make();
    ExerciseRun run(*lab, *entry.exercise, std::move(prediction));
    for (const Event& event : events) {
        if (event.kind == Event::Kind::answer)
            run.answer(event.name, event.value);
        else
            carry_out(*lab, {&event, 1});
        run.follow(true);
    }
    return run.evidence();
}

inline Evidence solved(const ExerciseEntry& entry) {
    return attempt(entry, entry.exercise->solver, {.skipped = true, .values = {}, .at = local_time()});
}

}  // namespace fp8lab::test
