// No two texts overlap, none is cut, none lies over a mark: in every lab, before, during and after each of its
// exercises, in each of its scenes, on the desk and in presentation. One size here; FP8LAB_TEST_ALL=1: 1440x900 and
// 1024x640 at scales 1 and 2.
#include <span>
#include <vector>

#include "core/lesson/evidence.h"
#include "core/lesson/scene.h"
#include "labs/course/exercise_run.h"
#include "labs/course/lecture.h"
#include "labs/course/scene_run.h"
#include "labs/list.h"
#include "tests/gui/screens/whole_desk.h"
#include "tests/transformer_runs.h"

using namespace fp8lab;
using test::Screen;

namespace {

struct Desk : test::WholeDesk {
    using WholeDesk::WholeDesk;
    void check(const std::string& what) {
        draw();
        const Lab* lab = shell.lab();
        if (lab != nullptr && !lab->live()) {
            while (lab->busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            draw();
        }
        CAPTURE(what);
        CHECK(test::Faults(gui.context, {}, {}, true).all() == "");
    }
};

std::vector<Screen> screens() {
    const std::vector<Screen> every = {
        {{1440, 900}, 1}, {{1024, 640}, 1}, {{2880, 1800}, 2}, {{2048, 1280}, 2}};
    return tests_all() ? every : std::vector<Screen>{every.front()};
}

using Groups = std::vector<Evidence::EventGroup>;

// What a learner's events leave behind. Trainings of a lab that trains come from their records: of L13 kept ones, of
// L8 made here.
Groups groups_of(const LabEntry& entry, const Exercise& exercise, std::span<const Event> events) {
    Groups groups;
    if (entry.id == "transformer") {
        static const test::TransformerRuns runs;
        std::string missing;
        for (Step& step : runs.trail(exercise, events, missing).steps)
            groups.push_back({std::move(step.events), std::move(step.record)});
        REQUIRE(missing == "");
    } else if (const auto lab = entry.make(); lab->live()) {
        for (Step& step : perform(*lab, exercise, events).steps)
            groups.push_back({std::move(step.events), std::move(step.record)});
    } else {
        for (const Event& event : events) groups.push_back({{event}, {}});
    }
    return groups;
}

Prediction guess(const Exercise& exercise) {
    Prediction out{.skipped = false, .values = {}, .at = local_time()};
    if (const auto* number = std::get_if<NumberPrediction>(&exercise.prediction))
        out.values = {number->initial};
    else if (std::holds_alternative<ChoicePrediction>(exercise.prediction))
        out.values = {0};
    else if (const auto* curve = std::get_if<CurvePrediction>(&exercise.prediction))
        out.values.assign(curve->at.size() * curve->lines.size(), curve->initial);
    else
        out.skipped = true;
    return out;
}

// Brings the desk to an attempt with these events, as after a crash.
void attempt(Desk& desk, const LabEntry& entry, std::size_t index, const Groups& groups, int hints) {
    Lab& lab = *desk.shell.lab();
    const Exercise& exercise = lab.exercises()[index];
    const std::string id(entry.id);
    std::map<std::string, nlohmann::json> values;
    nlohmann::json typed = nlohmann::json::object();
    for (std::size_t i = 0; i < groups.size(); ++i) {
        values["deed." + id + "." + std::to_string(i)] = to_json(groups[i]);
        for (const Event& event : groups[i].events)
            if (event.kind == Event::Kind::answer) typed[event.name] = event.value;
    }
    values["attempt." + id] = {{"selected", index},
                               {"again", false},
                               {"draft", std::vector<double>{}},
                               {"run",
                                {{"exercise", exercise.id},
                                 {"prediction", to_json(guess(exercise))},
                                 {"hints", hints},
                                 {"typed", typed},
                                 {"deeds", groups.size()}}}};
    desk.shell.exercises().restore(lab, values);
}

void check_exercises(Desk& desk, const LabEntry& entry) {
    desk.shell.show(Tab::exercises);
    for (std::size_t i = 0; i < desk.shell.lab()->exercises().size(); ++i) {
        const Exercise& exercise = desk.shell.lab()->exercises()[i];
        desk.shell.lab()->reset();
        desk.shell.exercises().select(*desk.shell.lab(), i);
        desk.check(exercise.id + " before");
        attempt(desk, entry, i, {}, 0);
        desk.check(exercise.id + " begun");
        std::vector<Event> miss = exercise.near_misses.front().events;
        if (entry.id == "train") miss.insert(miss.begin(), sets("steps", "200"));  // a tenth of the time
        attempt(desk, entry, i, groups_of(entry, exercise, miss), 3);
        desk.check(exercise.id + " nearly: " + exercise.near_misses.front().why);
        attempt(desk, entry, i, groups_of(entry, exercise, exercise.solver), 1);
        desk.check(exercise.id + " passed");
        CHECK(desk.shell.exercises().progress().passed(exercise.id) != nullptr);
    }
}

void check_scenes(Desk& desk, const LabEntry& entry) {
    for (const auto& path : shipped_scenes()) {
        const Scene scene = read_scene(path);
        if (find_lab(scene.lab).id != entry.id) continue;
        desk.shell.open(scene);
        desk.shell.show(Tab::explore);
        desk.check(path.stem().string());
    }
}

void check_lab(const LabEntry& entry) {
    for (const Screen screen : screens()) {
        CAPTURE(screen.size.x);
        CAPTURE(screen.scale);
        Desk desk(screen);
        desk.shell.open(entry.id);
        for (const Tab tab : {Tab::explore, Tab::learn}) {
            desk.shell.show(tab);
            desk.check(std::string(entry.id) + (tab == Tab::explore ? " explore" : " learn"));
        }
        check_scenes(desk, entry);
        check_exercises(desk, entry);
    }
}

}  // namespace

// A test of its own for each lab of the list, so that they run at once.
#define FP8LAB_OVERLAP(lab) \
    TEST_CASE("no text overlaps or is cut, in every state of " #lab) { check_lab(lab::entry()); }
FP8LAB_LABS(FP8LAB_OVERLAP)
#undef FP8LAB_OVERLAP

TEST_CASE("no text overlaps or is cut on home") {
    for (const Screen screen : screens()) {
        Desk desk(screen);
        desk.check("home");
    }
}
