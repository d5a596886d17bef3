// Every exercise of every lab, from its specimens: one test for all.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/base/match.h"
#include "labs/error/model_sweep.h"
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

std::vector<std::string> texts(const std::vector<Condition>& conditions) {
    std::vector<std::string> out;
    for (const Condition& condition : conditions) out.push_back(condition.text);
    return out;
}

// The list that the panel shows before the exercise is begun is the whole list: what refuses stands in it.
void check_list(const Exercise& exercise, const Verdict& verdict) {
    CHECK_MESSAGE(texts(verdict.conditions) == texts(conditions_of(exercise)), words(verdict));
}

void check_specimens(const ExerciseEntry& entry) {
    CAPTURE(entry.exercise->id);
    Verdict start = judged(entry, {});
    const Verdict solved = judged(entry, entry.exercise->solver);
    CHECK_MESSAGE(!start.passed(), words(start));
    REQUIRE(start.conditions.back().text ==
            "something done by yourself");  // of judge_exercise(), not of the judge
    start.conditions.pop_back();
    check_list(*entry.exercise, start);
    check_list(*entry.exercise, solved);
    CHECK_MESSAGE(solved.passed(), words(solved));
    for (const NearMiss& miss : entry.exercise->near_misses) {
        CAPTURE(miss.why);
        CHECK_FALSE(miss.events.empty());
        const Verdict missed = judged(entry, miss.events);
        check_list(*entry.exercise, missed);
        const auto by = std::ranges::find(missed.conditions, miss.refused_by, &Condition::text);
        REQUIRE_MESSAGE(by != missed.conditions.end(),
                        "no condition is named: " << miss.refused_by << words(missed));
        CHECK_MESSAGE(!by->met, words(missed));
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

TEST_CASE("L13.4 takes an alignment after 250 to 350 steps, as its question and its condition say") {
    const auto lab = find_lab("transformer").make();
    const auto all = lab->exercises();
    const auto exercise = std::ranges::find(all, "L13.4", &Exercise::id);
    REQUIRE(exercise != all.end());
    CHECK(exercise->question.find("250 to 350") != std::string::npos);
    const test::TransformerRuns runs;
    std::string missing;
    Trail trail = runs.trail(*exercise, exercise->solver, missing);
    REQUIRE(missing.empty());
    auto& metrics = trail.steps.back().after.metrics;
    const auto aligned = std::ranges::find(metrics, "aligned_at", &Metric::name);
    REQUIRE(aligned != metrics.end());
    for (const auto& [step, taken] :
         {std::pair{249, false}, {250, true}, {300, true}, {319, true}, {350, true}, {351, false}}) {
        CAPTURE(step);
        aligned->value = step;
        const Verdict verdict = judge_exercise(*exercise, trail, &kGuess);
        CHECK(verdict.passed() == taken);
        const auto by = std::ranges::find(verdict.conditions, false, &Condition::met);
        REQUIRE((by == verdict.conditions.end()) == taken);
        if (!taken) CHECK(by->text.find("250 to 350 steps") != std::string::npos);
    }
}

TEST_CASE("the conditions follow a training while it runs, and only its end is judged") {
    const auto lab = find_lab("train").make();
    lab->set_wake([] {});
    lab->update();
    ExerciseRun run(*lab, lab->exercises()[0], {.skipped = true, .values = {}, .at = {}});
    const auto steps = [](const Verdict& verdict) { return verdict.conditions.at(0).values.at(0); };
    const std::string none = steps(run.verdict());
    lab->act("run");
    std::set<std::string> seen;
    while (seen.size() < 4) {  // what the panel shows, snapshot after snapshot
        lab->update();
        CHECK_FALSE(run.follow(true));
        if (lab->busy() && steps(run.present()) != none) seen.insert(steps(run.present()));
        std::this_thread::yield();
    }
    CHECK(steps(run.verdict()) == none);
    CHECK(run.trail().steps.empty());
    // A run that will not count is judged by none of its numbers.
    lab->act("poison");
    while (lab->no_record().empty()) lab->update();
    run.follow(true);
    CHECK(steps(run.present()) == none);
    lab->act("pause");
}

TEST_CASE("an exercise keeps of the lab what its start says, where it is not the default") {
    const auto lab = find_lab("bits").make();
    Exercise exercise = lab->exercises().front();
    const auto fields = lab->fields();
    const auto code = std::ranges::find(fields, "code", [](const Field& field) { return field.info.name; });
    REQUIRE(code != fields.end());
    exercise.start = {"code", "form*"};
    CHECK(kept_events(*lab, exercise).empty());
    set_field(lab->fields(), "code=60");
    set_field(lab->fields(), "format=e5m2");
    CHECK(kept_events(*lab, exercise) == std::vector{sets("format", "e5m2"), sets("code", "60")});
    exercise.start = {"format"};
    const Trail trail =
        replay(*lab, exercise, std::vector{Evidence::EventGroup{kept_events(*lab, exercise), {}}});
    CHECK(trail.start.text("format") == "e4m3");
    CHECK(trail.now().text("format") == "e5m2");
    CHECK(trail.now().text("code") == trail.start.text("code"));
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

TEST_CASE("every lab has its exercises: four at least") {
    for (const LabEntry& entry : lab_registry()) {
        CAPTURE(std::string(entry.id));
        CHECK(entry.make()->exercises().size() >= 4);
    }
}

TEST_CASE("every judge of a lab has a name of its own and judges an exercise") {
    for (const LabEntry& entry : lab_registry()) {
        const auto lab = entry.make();
        std::set<std::string_view> names;
        for (const NamedJudge& judge : lab->judges()) {
            CAPTURE(std::string(judge.name));
            CHECK(names.insert(judge.name).second);
            CHECK(std::ranges::count(lab->exercises(), judge.judge, &Exercise::judge) > 0);
        }
    }
}

TEST_CASE("the exercises of a lab are read once") {
    for (const LabEntry& entry : lab_registry())
        CHECK(entry.make()->exercises().data() == entry.make()->exercises().data());
}

// A sketch is compared with what the judge measures, at the places of the knobs.
TEST_CASE("L3.1 and L4.2 measure at the knobs of their sketches") {
    const auto sketch = [](const Exercise& exercise) {
        return std::get<CurvePrediction>(exercise.prediction);
    };
    const auto error_lab = find_lab("error").make();
    const Exercise& worst = error_lab->exercises()[0];
    REQUIRE(worst.id == "L3.1");
    std::vector<double> at_knobs;
    for (const double x : sketch(worst).at)
        at_knobs.push_back(error::worst_near(error::rounder_of("e4m3"), 1, x));
    CHECK(judge_exercise(worst, perform(*error_lab, worst, worst.solver), &kGuess).measured == at_knobs);

    const auto window = find_lab("window").make();
    const Exercise& headroom = window->exercises()[1];
    REQUIRE(headroom.id == "L4.2");
    const Trail trail = perform(*window, headroom, headroom.solver);
    at_knobs.clear();
    for (const std::string& line : sketch(headroom).lines)
        for (const double margin : sketch(headroom).at)
            at_knobs.push_back(trail.start.number(lower_case(line) + ".sqnr_db_at_margin_" +
                                                  std::to_string(static_cast<int>(margin))));
    CHECK(judge_exercise(headroom, trail, &kGuess).measured == at_knobs);
}

TEST_CASE("settings that a lab refuses end no repetition of an attempt, but as its last ones") {
    const auto lab = find_lab("serve").make();
    const auto all = lab->exercises();
    const auto exercise = std::ranges::find(all, "L17.2", &Exercise::id);
    REQUIRE(exercise != all.end());
    const auto group = [](const char* field, const char* value) {
        return Evidence::EventGroup{.events = {Event{Event::Kind::set, field, value}}};
    };
    std::vector<Evidence::EventGroup> groups = {group("scheme", "int4-g32"), group("scheme", "nvfp4"),
                                                group("method", "smooth"), group("network", "digits-s3")};
    const Trail trail = replay(*lab, *exercise, groups, {});
    CHECK(std::isnan(trail.steps[0].after.number("divergence")));
    const Verdict verdict = judge_exercise(*exercise, trail, &kGuess);
    CHECK_MESSAGE(verdict.passed(), words(verdict));
    groups.push_back(group("scheme", "int4-g32"));
    CHECK_THROWS_WITH_AS(replay(*lab, *exercise, groups, {}), doctest::Contains("weights only"), Error);
}

TEST_CASE("what an exercise's start hides is shown again by what it says uncovers it") {
    std::set<std::string> found;
    for (const ExerciseEntry& entry : all_exercises()) {
        CAPTURE(entry.exercise->id);
        const auto lab = entry.lab->make();
        begin_exercise(*lab, *entry.exercise);
        const auto hidden = lab->state();
        for (const std::string& assignment : entry.exercise->uncovers) {
            set_field(lab->fields(), assignment);
            found.insert(entry.exercise->id);
        }
        CHECK((lab->state() != hidden) == !entry.exercise->uncovers.empty());
    }
    CHECK(found == std::set<std::string>{"L3.1", "L3.2", "L9.4", "L10.6", "W.1", "W.5", "W.7"});
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
