// L8's view without a display: every control acts on the model, in every state and size.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "core/files/files.h"
#include "labs/train/view.h"
#include "tests/fake_gpu.h"
#include "tests/gui/gui.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::train;

namespace {

struct Screen {
    explicit Screen(ImVec2 size = {1440, 900}, Theme theme = Theme::dark, float scale = 1)
        : Screen(cpu_backend(), size, theme, scale) {}
    explicit Screen(Backends backends, ImVec2 size = {1440, 900}, Theme theme = Theme::dark, float scale = 1)
        : gui(size, theme, scale), lab(std::move(backends)), width(size.x), height(size.y) {
        for (const char* setting : {"batch=16", "steps=60"}) set_field(lab.fields(), setting);
        lab.set_wake([] {});  // as in the window, where the speed is held
    }

    // Stage left and panel right, as the shell lays them out.
    void frame() {
        lab.update();
        gui.raw_frame([this](ui::Context& c) {
            const float panel = c.px(360);
            ImGui::SetNextWindowPos({0, 0});
            ImGui::SetNextWindowSize({width, height});
            ImGui::Begin("screen", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
            stage = {c.px(24), c.px(92), width - panel - c.px(24), height - c.px(28)};
            view.stage(c, stage);
            ImGui::SetCursorScreenPos({width - panel + c.px(24), c.px(72)});
            ImGui::BeginChild("explore", {c.px(312), 0});
            view.explore(c, c.px(312));
            ImGui::EndChild();
            ImGui::End();
        });
    }
    void click(std::string_view probe) {
        frame();
        gui.move(gui.center(probe));
        frame();
        gui.mouse(true);
        frame();
        gui.mouse(false);
        frame();
    }
    template <class Done>
    void frames_until(Done done) {
        for (int i = 0; i < 5000 && !done(); ++i) {
            frame();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        REQUIRE(done());
    }

    test::Gui gui;
    TrainLab lab;
    TrainView view{lab};
    Rect stage;
    float width, height;
};

// Assets of a test's own.
struct Assets : Scratch {
    Assets() { setenv("FP8LAB_ASSETS", path.c_str(), 1); }
    ~Assets() { unsetenv("FP8LAB_ASSETS"); }
};

}  // namespace

TEST_CASE("step, run, pause and reset do what they say") {
    Screen screen;
    screen.click("train.step");
    screen.frames_until([&] { return screen.lab.step() == 1; });
    set_field(screen.lab.fields(), "speed_limit=5");
    screen.click("train.run");
    screen.frames_until([&] { return screen.lab.step() > 2; });
    CHECK(screen.lab.running());
    screen.click("train.run");  // is "Pause" now
    screen.frames_until([&] { return screen.lab.status().state == RunState::paused; });
    const int paused_at = screen.lab.step();
    CHECK(paused_at < 60);
    screen.click("train.reset");
    CHECK(screen.lab.step() == 0);
}

TEST_CASE("the keys are Space and full stop") {
    Screen screen;
    screen.frame();
    CHECK(screen.view.key(screen.gui.context, ui::Key{'.'}));
    screen.frames_until([&] { return screen.lab.step() == 1; });
    set_field(screen.lab.fields(), "speed_limit=5");
    screen.frame();  // else the run would start, and end, before the limit reaches it
    CHECK(screen.view.key(screen.gui.context, ui::Key{' '}));
    screen.frames_until([&] { return screen.lab.step() > 1; });
    CHECK(screen.lab.running());
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key{'Q'}));
}

TEST_CASE("the run-to slider lets the training go on to the step it is dragged to, and no further") {
    Screen screen;
    screen.lab.advance(5);
    screen.frame();
    const Rect track = screen.gui.rect("train.run_to");
    const float y = (track.y0 + track.y1) / 2;
    screen.gui.move({track.x0 + 12, y});
    screen.frame();
    screen.gui.mouse(true);
    screen.frame();
    screen.gui.move({(track.x0 + track.x1) / 2, y});
    screen.frame();
    CHECK(screen.lab.step() == 5);  // still in the hand
    screen.gui.mouse(false);
    screen.frame();
    screen.frames_until(
        [&] { return screen.lab.status().state == RunState::paused && screen.lab.step() == 30; });
}

TEST_CASE("presses of the full stop during a step all count, a typed step is run to") {
    Screen screen;
    set_field(screen.lab.fields(), "speed_limit=20");
    screen.frame();
    for (int i = 0; i < 17; ++i) CHECK(screen.view.key(screen.gui.context, ui::Key::period));
    screen.frames_until([&] { return screen.lab.step() == 17 && !screen.lab.running(); });
    set_field(screen.lab.fields(), "speed_limit=0");
    screen.click("train.at_step");
    for (int i = 0; i < 3; ++i) screen.frame();  // the field has the keyboard
    ui::feed_text("33");
    screen.frame();
    test::tap(ui::Key::enter, [&] { screen.frame(); });
    screen.frames_until([&] { return screen.lab.step() == 33 && !screen.lab.running(); });
}

TEST_CASE("a full stop while the training goes is no step, and one after its pause is") {
    Screen screen;
    set_field(screen.lab.fields(), "speed_limit=10");
    screen.frame();
    std::vector<std::string> told;
    screen.lab.set_listener([&](std::string_view action) { told.emplace_back(action); });
    CHECK(screen.view.key(screen.gui.context, ui::Key::space));
    screen.frames_until([&] { return screen.lab.step() > 0; });
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key::period));
    CHECK(screen.view.key(screen.gui.context, ui::Key::space));
    CHECK(screen.view.key(screen.gui.context, ui::Key::period));  // the step before may still be under way
    CHECK(told == std::vector<std::string>{"run", "pause", "step"});
    screen.frames_until([&] { return !screen.lab.running(); });
    CHECK(screen.lab.step() < 60);
}

TEST_CASE("a setting moved between two steps reaches the running training's arm B") {
    Screen screen;
    screen.lab.advance(3);
    screen.frame();
    const Rect margin = screen.gui.rect("train.margin");
    screen.gui.move({margin.x1 - 8, (margin.y0 + margin.y1) / 2});
    screen.frame();
    screen.gui.mouse(true);
    screen.frame();
    screen.gui.mouse(false);
    screen.frame();
    screen.frame();
    CHECK(screen.lab.params().margin == 8);
    CHECK(screen.lab.spec().arms[1].margin == 8);
    CHECK(screen.lab.spec().arms[0].base == "bf16");
    screen.click("train.algo.1");
    CHECK(screen.lab.params().algo == "most_recent");
    CHECK(screen.lab.step() == 3);
}

TEST_CASE("a row of the health table and the class switch choose the histogram's tensor") {
    Screen screen;
    screen.lab.advance(2);
    screen.click("train.tensor.w2");
    CHECK(screen.lab.shown_tensor() == MlpTensor{TensorClass::w, 2});
    screen.click("train.tensor.0");
    CHECK(screen.lab.shown_tensor() == MlpTensor{TensorClass::x, 2});
}

TEST_CASE("the poison button works while there is a training and is dead before") {
    Screen screen;
    screen.click("train.poison");
    CHECK(screen.lab.command().find("times 1000") == std::string::npos);
    screen.lab.advance(5);
    screen.click("train.poison");
    CHECK(screen.lab.command().find("# changed after step 5: batch times 1000") != std::string::npos);
    const double before = screen.lab.history().arms()[0].loss.last();
    screen.lab.advance(1);
    CHECK(screen.lab.history().arms()[0].loss.last() > 2 * before);
}

TEST_CASE("the copy buttons copy the command and the recipe") {
    Screen screen;
    screen.click("train.copy_command");
    CHECK(std::string(ImGui::GetClipboardText()) == screen.lab.command());
    screen.click("train.copy_recipe");
    CHECK(std::string(ImGui::GetClipboardText()) == screen.lab.transformer_engine());
}

TEST_CASE("the speed is chosen in the panel, a speed of a scene is one more choice") {
    Screen screen;
    CHECK(screen.lab.params().speed_limit == 200);
    screen.click("train.speed_limit.2");
    CHECK(screen.lab.params().speed_limit == 0);
    screen.click("train.speed_limit.0");
    CHECK(screen.lab.params().speed_limit == 20);
    set_field(screen.lab.fields(), "speed_limit=57");
    screen.click("train.speed_limit.0");
    CHECK(screen.lab.params().speed_limit == 57);
    screen.click("train.speed_limit.3");
    CHECK(screen.lab.params().speed_limit == 0);
}

TEST_CASE("the menu of a recipe says E4M3 where all its formats are E4M3") {
    Screen screen;
    screen.frame();
    const auto menu = [&] {
        screen.frame();
        return screen.gui.context.probes.items.at("train.label.arm_b").words;
    };
    const std::string hybrid = menu();
    REQUIRE(hybrid.find("HYBRID") != std::string::npos);
    set_field(screen.lab.fields(), "bwd=e4m3");
    CHECK(menu().find("HYBRID") == std::string::npos);
    CHECK(menu().find("E4M3") != std::string::npos);
    set_field(screen.lab.fields(), "bwd=recipe");
    CHECK(menu() == hybrid);
}

TEST_CASE("a finished training says so once and can be run again") {
    Screen screen;
    set_field(screen.lab.fields(), "steps=40");
    std::string told;
    const auto finished = [&] {
        auto& notice = screen.gui.context.notice;
        if (!notice.title.empty()) told += std::exchange(notice, {}).title + ".";
        return screen.lab.step() > 0 && screen.lab.finished() && !screen.lab.busy();
    };
    for (int run = 0; run < 2; ++run) {
        screen.click("train.run");
        screen.frames_until([&] { return !screen.lab.finished(); });
        screen.frames_until(finished);
        for (int i = 0; i < 3; ++i) screen.frame();
        finished();
        CHECK(told == (run == 0 ? "Both arms finished." : "Both arms finished.Both arms finished."));
    }
}

TEST_CASE("every state draws at every size, inside its area") {
    for (const float scale : {1.0F, 2.0F}) {
        for (const ImVec2 size : {ImVec2{1440, 900}, ImVec2{1024, 640}}) {
            for (const char* task : {"teacher", "spiral"}) {
                CAPTURE(scale);
                CAPTURE(size.x);
                CAPTURE(task);
                Screen screen({size.x * scale, size.y * scale}, Theme::light, scale);
                set_field(screen.lab.fields(), std::string("task=") + task);
                for (const int steps : {0, 1, 40}) {
                    if (steps > 0) screen.lab.advance(steps);
                    screen.frame();
                    screen.frame();
                    CHECK(test::draw_data_fault().empty());
                    for (const char* name :
                         {"train.loss", "train.gap", "train.run", "train.step", "train.reset", "train.run_to",
                          "train.tensor.x1", "train.tensor.dy3"}) {
                        CAPTURE(name);
                        const Rect rect = screen.gui.rect(name);
                        CHECK(rect.x0 >= screen.stage.x0 - 12 * scale);
                        CHECK(rect.x1 <= screen.stage.x1 + 1);
                        CHECK(rect.y0 >= screen.stage.y0);
                        CHECK(rect.y1 <= screen.stage.y1 + 1);
                    }
                    CHECK(screen.gui.rect("train.loss").y1 < screen.gui.rect("train.gap").y0);
                    CHECK(screen.gui.rect("train.gap").y1 < screen.gui.rect("train.tensor.x1").y0);
                    CHECK(screen.gui.rect("train.tensor.dy3").y1 <= screen.gui.rect("train.run").y0);
                }
            }
        }
    }
}

TEST_CASE("the backend switch: the GPU can be chosen where there is one, and is dead where there is none") {
    {
        Screen without;
        without.click("train.backend.1");
        CHECK(without.lab.backend() == "cpu");
    }
    Screen with(test::fake_backends());
    CHECK(with.lab.backend() == "cuda");
    with.click("train.backend.0");
    CHECK(with.lab.backend() == "cpu");
    with.click("train.backend.1");
    CHECK(with.lab.backend() == "cuda");
}

TEST_CASE("on a GPU the right column shows the parts of one step, in every size") {
    for (const ImVec2 size : {ImVec2{1440, 900}, ImVec2{1024, 640}}) {
        for (const char* arm_c : {"arm_c=none", "arm_c=current"}) {
            Screen screen(test::fake_backends(), size);
            set_field(screen.lab.fields(), arm_c);
            screen.lab.advance(10);
            screen.click("train.picture.1");
            CHECK(test::draw_data_fault().empty());
            const Rect plot = screen.gui.rect("train.one_step");
            CHECK(plot.x1 <= screen.stage.x1 + 1);
            CHECK(plot.y1 < screen.gui.rect("train.run").y0);
        }
    }
}

TEST_CASE("without a GPU and without a recording there is nothing of a GPU to see") {
    const Assets scratch;
    Screen none;
    none.frame();
    CHECK_FALSE(none.gui.context.probes.items.contains("train.picture.1"));
    CHECK(none.lab.recorded() == nullptr);
}

TEST_CASE("a recording is drawn with its badge, a broken one as its fault") {
    for (const bool broken : {false, true}) {
        CAPTURE(broken);
        const Assets scratch;  // recordings are read once for each folder
        std::filesystem::create_directories(scratch / "recordings");
        write_file(
            scratch / "recordings/h200.json",
            std::string_view(broken ? "{" : R"({"gpu": "NVIDIA H200", "driver": "580.95", "cuda": "13.0",
            "date": "2026-11-21", "command": "fp8lab bench step", "results": [{"bench": "step",
            "layers": [1024, 4096, 1024], "batch": 4096, "arms": [{"recipe": "bf16", "median_ms": 1.5,
            "iqr_ms": 0.01, "tflops": 400}, {"recipe": "delayed", "median_ms": 1, "iqr_ms": 0, "tflops": 600}]}]})"));
        Screen screen;
        screen.click("train.picture.1");
        REQUIRE(screen.lab.recorded());
        CHECK(screen.lab.recorded()->problem.empty() == !broken);
        CHECK_FALSE(screen.gui.context.probes.items.contains("train.recording"));  // there is one
        CHECK(screen.gui.context.probes.items.contains("badge") == !broken);
        CHECK(test::draw_data_fault().empty());
    }
}

TEST_CASE("where the pictures' names take two rows, each of them can be chosen") {
    Screen screen({1024, 640});
    set_field(screen.lab.fields(), "task=spiral");
    screen.lab.advance(2);
    screen.click("train.picture.2");
    CHECK(screen.gui.rect("train.picture.2").y1 <= screen.gui.rect("train.run").y0);
    screen.frame();
    CHECK(screen.gui.context.probes.items.contains("train.recording.name"));
}

TEST_CASE("of several recordings the table shows the one that its menu names") {
    Screen screen;
    screen.click("train.picture.1");
    const auto name = [&] { return screen.gui.context.probes.items.at("train.recording.name").words; };
    CHECK(name().starts_with("H200, 2026-"));
    screen.click("train.recording");
    screen.click("train.recording.1");
    screen.frame();
    CHECK(name().starts_with("H100, 2026-"));
    CHECK(test::draw_data_fault().empty());
}

TEST_CASE("after a failure the run button starts anew, on the CPU if that is chosen") {
    Screen screen(test::fake_backends({.lost_at = 3}));
    screen.click("train.run");
    screen.frames_until([&] { return screen.lab.failed(); });
    CHECK(test::draw_data_fault().empty());
    screen.click("train.backend.0");
    screen.click("train.run");
    screen.frames_until([&] { return screen.lab.step() > 3; });
    CHECK(screen.lab.provenance() == Provenance::cpu_emulated);
}

TEST_CASE("larger sizes are offered on the GPU, with their batch") {
    Screen screen(test::fake_backends());
    set_field(screen.lab.fields(), "task=noise");
    screen.click("train.more_run");
    screen.click("train.size");
    screen.click("train.size.1");
    CHECK(screen.lab.params().size == "1024");
    CHECK(screen.lab.params().batch == 4096);
    CHECK(screen.lab.spec().layers == std::vector{1024, 4096, 1024});
}

TEST_CASE("on the CPU the menu of sizes offers the smallest and the one at hand, and gives what it offers") {
    Screen screen;
    set_field(screen.lab.fields(), "task=noise");
    set_field(screen.lab.fields(), "size=4096");
    screen.click("train.more_run");
    screen.click("train.size");
    CHECK(screen.gui.context.probes.items.count("train.size.2") == 0);
    screen.click("train.size.1");
    CHECK(screen.lab.params().size == "4096");
    screen.click("train.size");
    screen.click("train.size.0");
    CHECK(screen.lab.params().size == "768");
    CHECK(screen.lab.params().batch == 32);
}
