// The view of the Workbench's tab "A run" without a display: lanes, cursor, tables and keys act on the model.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "core/files/files.h"
#include "labs/workbench/view.h"
#include "tests/gui/screens/lab_screen.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::workbench;

namespace {

using RunScreen = test::LabScreen<WorkbenchLab, WorkbenchView>;

void open_sample(RunScreen& screen) {
    for (const char* each : {"experiment=run", "run=tiny-swiglu", "history=64"}) screen.set(each);
    screen.frame();
}

std::string chosen_tensor(const RunScreen& screen) {
    return screen.lab->doctor.log()->tensors[*screen.lab->doctor.selected()].name();
}

}  // namespace

TEST_CASE("A run: the switch opens it, and the button its sample") {
    RunScreen screen;
    CHECK(screen.view.question().empty());
    screen.click("experiment.1");
    CHECK(screen.lab->shows_run());
    CHECK_FALSE(screen.view.question().empty());
    REQUIRE(screen.shows("doctor.sample"));
    screen.click("doctor.sample");
    screen.frame();
    CHECK(screen.lab->params.run.run == kSampleRun);
    CHECK(screen.words("doctor.progress") == "read to the end");
    CHECK(screen.words("doctor.lane.0") == "b.1.down.x");  // with a history of 16
    screen.click("experiment.0");
    screen.frame();
    CHECK(screen.words("workbench.progress") == "150 of 150 scanned");
}

TEST_CASE(
    "A run: a press on a finding selects its tensor and its first step, on a history judges the run under "
    "it") {
    RunScreen screen;
    open_sample(screen);
    CHECK(screen.words("doctor.findings") == "3 findings; 15 of 18 tensors are well");
    screen.click("doctor.finding.2");
    CHECK(chosen_tensor(screen) == "b.1.down.x");
    CHECK(screen.lab->doctor.cursor() == 153);
    screen.click("doctor.finding.1");
    CHECK(chosen_tensor(screen) == "inp.x");
    screen.click("doctor.history.4");
    CHECK(screen.lab->params.run.history == 4);
    screen.click("doctor.history.most_recent");
    CHECK(screen.lab->params.run.algo == "most_recent");
    screen.click("doctor.under.current");
    CHECK(screen.lab->params.run.recipe == "current");
    screen.click("doctor.under.delayed:history=1024");
    CHECK(screen.lab->params.run.recipe == "delayed");
    CHECK(screen.lab->params.run.history == 1024);
    CHECK(screen.lab->params.run.algo == "max");
}

TEST_CASE("A run: a press in a lane puts the cursor there, a drag takes it along") {
    RunScreen screen;
    open_sample(screen);
    const Rect lane = screen.gui.rect("doctor.lane.1");
    const float y = (lane.y0 + lane.y1) / 2;
    screen.click({lane.x1 - 1, y});
    CHECK(chosen_tensor(screen) == "inp.x");
    CHECK(screen.lab->doctor.cursor() == 239);
    screen.drag({lane.x1 - 1, y}, -300);
    const int there = screen.lab->doctor.cursor();
    CHECK(there < 200);
    CHECK(there > 60);
    const Rect cursor = screen.gui.rect("doctor.cursor");
    CHECK(std::fabs(cursor.x0 - (lane.x1 - 301)) < 4);
    // On the names a press selects only.
    const Rect first = screen.gui.rect("doctor.lane.0");
    screen.click({first.x0 + 20, (first.y0 + first.y1) / 2});
    CHECK(chosen_tensor(screen) == "out.x");
    CHECK(screen.lab->doctor.cursor() == there);
}

TEST_CASE("A run: keys move through steps and tensors") {
    RunScreen screen;
    open_sample(screen);
    screen.set("run_step=90");
    const auto press = [&](ui::Key key) {
        const bool used = screen.view.key(screen.gui.context, key);
        screen.frame();
        return used;
    };
    CHECK(press(ui::Key::right));
    CHECK(screen.lab->doctor.cursor() == 91);
    CHECK(press(ui::Key::left));
    CHECK(press(ui::Key::left));
    CHECK(screen.lab->doctor.cursor() == 89);
    CHECK(press(ui::Key::home));
    CHECK(screen.lab->doctor.cursor() == 0);
    CHECK(press(ui::Key::end));
    CHECK(screen.lab->doctor.cursor() == 239);
    CHECK(chosen_tensor(screen) == "out.x");
    CHECK(press(ui::Key::down));
    CHECK(chosen_tensor(screen) == "inp.x");
    CHECK(press(ui::Key::up));
    CHECK(press(ui::Key::up));
    CHECK(chosen_tensor(screen) == "out.x");
    CHECK_FALSE(press(ui::Key::slash));
    screen.set("run=");
    CHECK_FALSE(press(ui::Key::right));  // no run: none to move through
}

TEST_CASE("A run: nothing leaves the stage at any size, and all parts can be reached") {
    for (const ImVec2 size : {ImVec2{860, 780}, ImVec2{968, 520}, ImVec2{600, 560}, ImVec2{1400, 1000}}) {
        CAPTURE(size.x);
        RunScreen screen(size);
        for (const char* set :
             {"experiment=run", "run=tiny-swiglu", "healthy=true", "layers=inp", "layers="}) {
            screen.set(set);
            screen.frame();
            for (const auto& [name, item] : screen.gui.context.probes.items) {
                if (!name.starts_with("doctor.") || name.starts_with("doctor.under")) continue;
                CAPTURE(name);
                CHECK(item.rect.x0 >= screen.area.x0 - 8);
                CHECK(item.rect.x1 <= screen.area.x1 + 8);
            }
        }
        const bool tall = size.y > 700, beside = size.x > 700;
        CHECK(screen.shows("doctor.findings"));
        CHECK(screen.shows("doctor.histories") == tall);
        if (tall) continue;
        screen.click("doctor.part.1");
        screen.frame();
        CHECK(screen.shows("doctor.history.64"));
        if (!beside) screen.click("doctor.part.2");
        screen.frame();
        CHECK(screen.shows("doctor.binades"));
    }
}

TEST_CASE("A run: an exercise covers what is found, not what it rests on") {
    RunScreen screen;
    open_sample(screen);
    CHECK(screen.shows("doctor.under.current"));
    CHECK(screen.words("doctor.title").find("b.1.down.x") != std::string::npos);
    screen.set("covered=true");
    CHECK_FALSE(screen.shows("doctor.finding.0"));
    CHECK_FALSE(screen.shows("doctor.under.current"));
    CHECK(screen.words("doctor.title").find("b.1.down.x") == std::string::npos);
    CHECK(screen.shows("doctor.lane.2"));
}

TEST_CASE("A run: the first bad file is said in the strip, the empty stage stays") {
    const Scratch scratch;
    RunScreen screen;
    screen.lab.set_wake([] {});
    screen.set("experiment=run");
    screen.set("run=" + (scratch / "nowhere.jsonl"));
    CHECK(screen.words("doctor.problem").find("nowhere.jsonl") != std::string::npos);
    CHECK(screen.shows("doctor.sample"));
}

TEST_CASE("A run: what cannot be judged and a loss that is not finite stand where they are looked for") {
    const Scratch scratch;
    std::string text = "{\"fp8lab\":1,\"kinds\":\"xwd\",\"every\":1,\"recipe\":\"bf16\"}\n";
    for (int step = 0; step < 80; ++step) {
        const std::string head = "{\"step\":" + std::to_string(step);
        text += head + ",\"tensor\":\"a.x\",\"amax\":" + (step == 40 ? "90000" : "2.5") + "}\n" + head +
                ",\"loss\":" + (step < 70 ? "0.5" : "NaN") + "}\n";
    }
    write_file(scratch.path / "amaxes.jsonl", text);
    RunScreen screen;
    for (const std::string& each : {std::string("experiment=run"), "run=" + (scratch / "amaxes.jsonl"),
                                    std::string("run_recipe=delayed"), std::string("history=64")})
        screen.set(each);
    screen.frame();
    CHECK(screen.words("doctor.loss.odd") == "NaN in step 70");
    const Rect odd = screen.gui.rect("doctor.loss.odd");
    CHECK(odd.x1 <= screen.area.x1);
    CHECK(screen.words("doctor.title").starts_with("The loss is NaN in step 70; after a spike in step 40"));
    REQUIRE(screen.shows("doctor.unknown"));
    CHECK(screen.words("doctor.unknown").starts_with("1 of 1 tensor has no counters of binades"));
    open_sample(screen);
    CHECK_FALSE(screen.shows("doctor.loss.odd"));
    CHECK_FALSE(screen.shows("doctor.unknown"));
}

TEST_CASE("A run: a folder is opened from its browser, and logs are listed") {
    const Scratch scratch;
    std::filesystem::create_directory(scratch.path / "logs");
    for (const char* name : {"logs/a.jsonl", "logs/b.csv", "logs/c.npy"})
        write_file(scratch.path / name, std::string_view("x"));
    RunScreen screen;
    screen.lab.set_wake([] {});
    screen.set("experiment=run");
    screen.set("run=" + (scratch / "logs/b.csv"));
    screen.click("workbench.open.run");
    REQUIRE(screen.shows("workbench.name.3"));  // .., this folder, two logs
    CHECK_FALSE(screen.shows("workbench.name.4"));
    screen.click("workbench.name.2");
    screen.frame();
    CHECK(screen.lab->params.run.run == scratch / "logs/a.jsonl");
}
