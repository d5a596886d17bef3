// Every exercise of every lab, from its specimens: one test for all.
#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "tests/transformer_runs.h"

using namespace fp8lab;

namespace {

constexpr Prediction kGuess{};

Verdict judged(const ExerciseEntry& entry, std::span<const Event> events) {
    if (entry.lab->id == "transformer") {  // trainings of half a minute: recorded
        static const test::TransformerRuns runs;
        std::string missing;
        const Trail trail = runs.trail(*entry.exercise, events, missing);
        REQUIRE_MESSAGE(missing.empty(), "not recorded: " << missing);
        return judge_exercise(*entry.exercise, trail, &kGuess);
    }
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

TEST_CASE("every exercise: its start fails, its solver passes, every near miss fails") {
    for (const ExerciseEntry& entry : all_exercises())
        if (!entry.lab->make()->live()) check_specimens(entry);
}

TEST_CASE("every exercise of a lab that trains: its start fails, its solver passes, every near miss fails") {
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

TEST_CASE("in a window, where labs compute on a thread, every step is judged by its own result") {
    const auto lab = find_lab("delayed").make();
    lab->set_wake([] {});
    lab->update();
    ExerciseRun run(*lab, lab->exercises()[0], {.skipped = true, .values = {}, .at = {}});
    CHECK(run.trail().start.number("a.saturated_steps") == 11);
    CHECK(run.verdict().measured == std::vector<double>{11});
    for (int round = 0; round < 20; ++round) {
        const bool roomy = round % 2 == 0;
        set_field(lab->fields(), roomy ? "margin=1" : "margin=0");
        while (!run.follow(true)) std::this_thread::yield();  // a frame of the window, but for lab.update()
        CHECK(run.trail().now().number("margin") == (roomy ? 1 : 0));
        CHECK(run.trail().now().number("a.saturated_steps") == (roomy ? 0 : 11));
    }
}

TEST_CASE("every exercise has what its panel shows, and an id of its own") {
    std::set<std::string> ids;
    for (const auto& [lab, exercise] : all_exercises()) {
        CAPTURE(exercise->id);
        CHECK(ids.insert(exercise->id).second);
        CHECK(exercise->id.starts_with((lab->number > 0 ? lab->mark() : std::string("W")) + "."));
        CHECK_FALSE(exercise->title.empty());
        CHECK_FALSE(exercise->question.empty());
        CHECK_FALSE(exercise->explanation.empty());
        for (const std::string& hint : exercise->hints) CHECK_FALSE(hint.empty());
        // A miss twice under other words would be none: each does something else.
        const std::vector<NearMiss>& misses = exercise->near_misses;
        CHECK(misses.size() >= (lab->make()->info().number <= 8 ? 2U : 3U));
        for (std::size_t i = 0; i < misses.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) CHECK(misses[i].events != misses[j].events);
        CHECK(exercise->predict.empty() == std::holds_alternative<std::monostate>(exercise->prediction));
    }
}

TEST_CASE("a scene that already fulfils an exercise does not pass it: the learner must act") {
    for (const ExerciseEntry& entry : all_exercises()) {
        Exercise scene = *entry.exercise;
        for (const Event& event : scene.solver)
            if (event.kind == Event::Kind::set) scene.start.push_back(event.name + "=" + event.value);
        CAPTURE(scene.id);
        const auto lab = entry.lab->make();
        const Verdict verdict = judge_exercise(scene, perform(*lab, scene, {}), &kGuess);
        CHECK_FALSE(verdict.passed());
        CHECK(verdict.conditions.back().text == "something done by yourself");
        CHECK_FALSE(verdict.conditions.back().met);
    }
}

TEST_CASE("every lab has its exercises: four to six each") {
    for (const LabEntry& entry : lab_registry()) {
        CAPTURE(std::string(entry.id));
        const auto count = entry.make()->exercises().size();
        CHECK(count >= 4);
        CHECK(count <= 6);
    }
}

TEST_CASE("what an exercise reveals is an action of its lab that changes what is shown") {
    std::size_t found = 0;
    for (const ExerciseEntry& entry : all_exercises()) {
        if (entry.exercise->reveals.empty()) continue;
        ++found;
        CAPTURE(entry.exercise->id);
        const auto lab = entry.lab->make();
        const auto before = lab->state();
        lab->act(entry.exercise->reveals);
        CHECK(lab->state() != before);
    }
    CHECK(found > 0);
}
