// Every exercise of every lab, from its specimens: one test for all.
#include <doctest/doctest.h>

#include <set>

#include "labs/exercise_run.h"

using namespace fp8lab;

namespace {

constexpr Prediction kGuess{};

Verdict judged(const ExerciseEntry& entry, std::span<const Event> events) {
    const auto lab = entry.lab->make();
    return judge_exercise(*entry.exercise, perform(*lab, *entry.exercise, events), &kGuess);
}

std::string words(const Verdict& verdict) {
    std::string out;
    for (const Condition& condition : verdict.conditions) {
        out += "\n  " + condition.text;
        for (const std::string& value : condition.values) out += " | " + value;
        out += condition.met ? ": yes" : ": not yet";
    }
    return out;
}

void check_specimens(const ExerciseEntry& entry) {
    CAPTURE(entry.exercise->id);
    const Verdict start = judged(entry, {}), solved = judged(entry, entry.exercise->solver);
    CHECK_MESSAGE(!start.passed(), words(start));
    CHECK_MESSAGE(solved.passed(), words(solved));
    for (const NearMiss& miss : entry.exercise->near_misses) {
        CAPTURE(miss.why);
        CHECK_FALSE(miss.events.empty());
        const Verdict missed = judged(entry, miss.events);
        CHECK_MESSAGE(!missed.passed(), words(missed));
    }
}

}  // namespace

TEST_CASE("every exercise: its start fails, its solver passes, both near misses fail") {
    for (const ExerciseEntry& entry : all_exercises())
        if (!entry.lab->make()->live()) check_specimens(entry);
}

TEST_CASE("every exercise of a lab that trains: its start fails, its solver passes, both near misses fail") {
    for (const ExerciseEntry& entry : all_exercises())
        if (entry.lab->make()->live()) check_specimens(entry);
}

TEST_CASE("every exercise passes the same when its lab was used before") {
    for (const LabEntry& lab : lab_registry()) {
        const auto shared = lab.make();
        if (shared->live()) continue;
        for (const Exercise& exercise : shared->exercises()) {
            CAPTURE(exercise.id);
            perform(*shared, exercise, exercise.near_misses[0].events);
            const Trail trail = perform(*shared, exercise, exercise.solver);
            CHECK(judge_exercise(exercise, trail, &kGuess).passed());
        }
    }
}

TEST_CASE("every exercise has what its panel shows, and an id of its own") {
    std::set<std::string> ids;
    for (const auto& [lab, exercise] : all_exercises()) {
        CAPTURE(exercise->id);
        CHECK(ids.insert(exercise->id).second);
        CHECK(exercise->id.starts_with("L" + std::to_string(lab->make()->info().number) + "."));
        CHECK_FALSE(exercise->title.empty());
        CHECK_FALSE(exercise->question.empty());
        CHECK_FALSE(exercise->explanation.empty());
        for (const std::string& hint : exercise->hints) CHECK_FALSE(hint.empty());
        CHECK(exercise->predict.empty() == std::holds_alternative<std::monostate>(exercise->prediction));
    }
}
