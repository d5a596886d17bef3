#include "labs/course/undo.h"

#include <doctest/doctest.h>

#include "labs/course/exercise_run.h"
#include "labs/lab.h"

using namespace fp8lab;
using Json = nlohmann::json;

TEST_CASE("every change at rest is a step, back and forth, a new one ends what could be redone") {
    UndoHistory history;
    for (int i = 0; i < 3; ++i) history.note({{"a", i}, {"b", 0}}, i, false);
    CHECK(history.undoable() == 2);
    CHECK(history.undo()->at("a") == 1);
    CHECK(history.undo()->at("a") == 0);
    CHECK(history.undo() == nullptr);
    CHECK(history.redo()->at("a") == 1);
    history.note({{"a", 1}, {"b", 0}}, 3, false);
    CHECK(history.redoable() == 1);
    history.note({{"a", 7}, {"b", 0}}, 4, false);
    CHECK(history.redo() == nullptr);
    CHECK(history.undo()->at("a") == 1);
}

TEST_CASE("a burst of keys on one field is one step, a pause, another field or the mouse begins the next") {
    UndoHistory history;
    const auto steps = [&](Json state, double at, bool keys) {
        history.note(state, at, keys);
        return history.undoable();
    };
    steps({{"a", 0}, {"b", 0}}, 0, true);
    CHECK(steps({{"a", 1}, {"b", 0}}, 10.0, true) == 1);
    CHECK(steps({{"a", 2}, {"b", 0}}, 10.9, true) == 1);
    CHECK(steps({{"a", 3}, {"b", 0}}, 11.8, true) == 1);
    CHECK(steps({{"a", 4}, {"b", 0}}, 13.0, true) == 2);   // a pause
    CHECK(steps({{"a", 4}, {"b", 1}}, 13.1, true) == 3);   // another field
    CHECK(steps({{"a", 4}, {"b", 2}}, 13.2, false) == 4);  // the mouse
    CHECK(steps({{"a", 4}, {"b", 3}}, 13.3, true) == 5);
    CHECK(steps({{"a", 0}, {"b", 0}}, 13.4, true) == 6);  // several at once: Reset all
    CHECK(history.undo()->at("b") == 3);
}

TEST_CASE("two hundred steps are kept, the oldest go") {
    UndoHistory history;
    for (int i = 0; i <= 300; ++i) history.note({{"a", i}}, 2.0 * i, true);
    CHECK(history.undoable() == UndoHistory::kSteps);
    const Json* last = nullptr;
    for (const Json* state = history.undo(); state != nullptr; state = history.undo()) last = state;
    REQUIRE(last != nullptr);
    CHECK(last->at("a") == 100);
}

TEST_CASE("what the lab makes of a restored state is no step of its own") {
    UndoHistory history;
    history.note({{"a", 1}}, 0, false);
    history.note({{"a", 2}}, 5, false);
    history.undo();
    history.note({{"a", 0}}, 6, false);  // it holds 1 to be 0
    CHECK(history.undoable() == 0);
    CHECK(history.redo()->at("a") == 2);
}

namespace {

// Without what L16 has learned of a case: its first diagnosis, that it was revealed, and of which deal that is stay known.
Json without_known(Json state) {
    for (auto at = state.begin(); at != state.end();)
        at = at.key().starts_with("first_") || at.key().starts_with("revealed_") || at.key() == "said_in"
                 ? state.erase(at)
                 : std::next(at);
    return state;
}

}  // namespace

TEST_CASE("in every lab: what was set comes back by undo, field by field") {
    for (const LabEntry& entry : lab_registry()) {
        const auto lab = entry.make();
        lab->set_wake([] {});  // as in a window, where what a lab refuses ends nothing
        lab->update();
        CAPTURE(entry.id);
        UndoHistory history;
        history.note(lab->state(), 0, false);
        const Json start = lab->state();
        double now = 0;
        for (const Field& field : lab->fields()) {
            if (field.choices.size() < 2) continue;
            set_field(field, field.choices[1].id);
            lab->update();
            history.note(lab->state(), now += 10, false);
        }
        REQUIRE(history.undoable() > 0);
        while (const Json* state = history.undo()) {
            lab->restore(*state);
            lab->update();
            CHECK(without_known(lab->state()) == without_known(*state));
        }
        CHECK(without_known(lab->state()) == without_known(start));
    }
}

TEST_CASE("in an attempt an undo is an edit like any other: the trail has it as sets") {
    const auto lab = find_lab("ruler").make();
    const Exercise& exercise = lab->exercises()[1];
    ExerciseRun run(*lab, exercise, {.skipped = true, .values = {}, .at = {}});
    UndoHistory history;
    history.note(lab->state(), 0, false);
    set_field(lab->fields(), "brush_lo=0.5");
    lab->update();
    run.follow(true);
    history.note(lab->state(), 5, false);
    lab->restore(*history.undo());
    lab->update();
    run.follow(true);
    REQUIRE(run.trail().steps.size() == 2);
    CHECK(run.trail().steps[1].events.front().kind == Event::Kind::set);
    CHECK(run.trail().steps[1].events.front().name == "brush_lo");
    CHECK(run.trail().now().fields == run.trail().start.fields);
}

TEST_CASE("an attempt that was broken off goes on: the same trail, the same verdict, the same evidence") {
    for (const char* id : {"L1.1", "L2.2", "L5.3", "L8.1"}) {
        CAPTURE(id);
        for (const ExerciseEntry& entry : all_exercises()) {
            if (entry.exercise->id != id) continue;
            const auto lab = entry.lab->make();
            const Trail trail = perform(*lab, *entry.exercise, entry.exercise->solver);
            std::vector<Evidence::EventGroup> groups;
            for (const Step& step : trail.steps) groups.push_back({step.events, step.record});
            const auto fresh = entry.lab->make();
            const ExerciseRun run(*fresh, *entry.exercise, {.skipped = true, .values = {}, .at = {}}, groups,
                                  2);
            CHECK(run.trail().now().fields == trail.now().fields);
            CHECK(run.verdict().passed());
            CHECK(run.hints() == 2);
            CHECK(run.evidence().groups == groups);
        }
    }
}

TEST_CASE(
    "what loses more than fields comes back over its step, back and forth, also where the fields are the "
    "same") {
    UndoHistory history;
    int attempt = 1;
    const auto lose = [&](int next) {
        history.with_next([&attempt, lost = attempt]() mutable { std::swap(attempt, lost); });
        attempt = next;
    };
    history.note({{"a", 1}}, 0, true);
    lose(2);
    CHECK(history.swaps());
    history.note({{"a", 1}}, 0.1, true);
    CHECK(history.undoable() == 1);
    history.note({{"a", 5}}, 0.2, true);  // a change of its own, although keys made it at once
    CHECK(history.undoable() == 2);
    CHECK_FALSE(history.swaps());
    CHECK(history.undo()->at("a") == 1);
    CHECK(attempt == 2);
    CHECK(history.swaps());
    CHECK(history.undo()->at("a") == 1);
    CHECK(attempt == 1);
    CHECK(history.redo()->at("a") == 1);
    CHECK(attempt == 2);
    history.undo();
    CHECK(attempt == 1);
}
