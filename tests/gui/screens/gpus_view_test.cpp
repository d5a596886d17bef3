// L15's view without a display: every control acts on the model, in every state and size.
#include <doctest/doctest.h>

#include <cmath>

#include "labs/gpus/view.h"
#include "tests/all.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::gpus;

namespace {

using Screen = test::LabScreen<GpusLab, GpusView>;

bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

TEST_CASE("L15: the sliders and the figure know powers of two") {
    Screen screen;
    screen.drag("gpus", 60);
    CHECK(screen.lab->params.world() > 4);
    CHECK(is_power_of_two(screen.lab->params.world()));
    screen.drag("rows", -60);
    CHECK(screen.lab->params.rows_per_gpu() < 8192);
    CHECK(is_power_of_two(screen.lab->params.rows_per_gpu()));
    const Rect line = screen.gui.rect("gpus.line");
    screen.click(Point{line.x1 - 2, line.y0 + 20});
    CHECK(screen.lab->params.world() == 16384);
    CHECK(screen.words("gpus.step_title").find("16") != std::string::npos);
    screen.click(Point{line.x0 + 2, line.y0 + 20});
    CHECK(screen.lab->params.world() == 1);
}

TEST_CASE("L15: formats and bad ranks beside their names, scales and sums in lists") {
    Screen screen;
    screen.click("gather.0");
    CHECK(screen.lab->params.gather == "bf16");
    screen.click("gather.1");
    screen.click("bad.2");
    CHECK(screen.lab->params.bad == "x1e6");
    screen.set("shard=none");
    CHECK_FALSE(screen.shows("gather.0"));
    CHECK(screen.shows("gpus.copy_command"));
    CHECK(screen.shows("gpus.copy_torchrun"));
}

TEST_CASE("L15: run to a step, one step, reset, by buttons and keys") {
    Screen screen;
    CHECK(screen.words("gpus.gap") == "–");
    screen.click("gpus.step");
    CHECK(screen.lab->outcome.step == 1);
    CHECK(screen.view.key(screen.gui.context, ui::Key::period));
    screen.frame();
    CHECK(screen.lab->outcome.step == 2);
    screen.set("wscale=own");
    screen.set("step=120");
    CHECK(screen.words("gpus.ranks_title").find("Same bytes, 4 scales") == 0);
    CHECK(screen.words("gpus.gap").find("%") != std::string::npos);
    screen.click("gpus.reset");
    CHECK(screen.lab->outcome.step == 0);
    CHECK(screen.words("gpus.gap") == "–");
    for (const ViewKey& key : screen.view.keys()) CHECK_FALSE(key.effect.empty());
}

TEST_CASE("L15: eight ranks have two pages, and paper stands behind a switch") {
    Screen screen;
    screen.set("gpus=64");
    screen.set("step=3");
    REQUIRE(screen.shows("gpus.page.1"));
    screen.click("gpus.page.1");
    screen.click("gpus.lower.1");
    CHECK(screen.gui.context.regions.contains("paper"));
    screen.set("gpus=4");
    screen.click("gpus.lower.0");
    CHECK_FALSE(screen.shows("gpus.page.1"));
}

TEST_CASE("L15: without sharding the rows are copies of the weights") {
    Screen screen;
    screen.set("shard=none");
    CHECK(screen.words("gpus.ranks_title").starts_with("Run the training"));
    screen.set("step=3");
    CHECK(screen.words("gpus.ranks_title").starts_with("Own random numbers: copies of the weights drift "));
    screen.set("gpus=8");
    CHECK(screen.shows("gpus.page.1"));
}

TEST_CASE("L15: the stage is whole at every size, in every state") {
    for (const ImVec2 size : {ImVec2{560, 536}, {860, 760}, {944, 540}, {1500, 1000}})
        for (const float scale : {1.0F, 2.0F})
            for (const char* state : {"step=0", "wscale=own", "bad=x1e6", "gpus=16384", "shard=none"}) {
                Screen screen({size.x * scale, size.y * scale}, scale);
                CAPTURE(size.x);
                CAPTURE(scale);
                CAPTURE(state);
                screen.set(state);
                if (size.x == 860) screen.set("step=4");
                CHECK(test::draw_data_fault().empty());
                const bool narrow = size.x - 48 < 680;
                CHECK(screen.shows("gpus.part.0") == narrow);
                const Rect sums = screen.gui.rect("gpus.sum");
                CHECK(sums.height() > 60 * scale);
                CHECK(sums.y1 <= screen.area.y1);
                for (int part = 0; screen.shows("gpus.lower." + std::to_string(part)); ++part) {
                    screen.click("gpus.lower." + std::to_string(part));
                    CHECK(test::draw_data_fault().empty());
                    CHECK(screen.gui.rect("gpus.run").y1 <= screen.area.y1 + 1);
                }
            }
}

TEST_CASE("L15: before the first result the stage has no numbers of it") {
    test::Gui gui({1240, 780});
    GpusLab lab;
    GpusView view{lab};
    gui.raw_frame([&](ui::Context& c) {  // without update(): as in a window while a job computes
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
        ImGui::Begin("screen", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
        view.stage(c, {24, 24, 836, 756});
        ImGui::SetCursorScreenPos({884, 24});
        ImGui::BeginChild("panel", {312, 0});
        view.explore(c, 312);
        ImGui::EndChild();
        ImGui::End();
    });
    CHECK(gui.context.probes.items.find("gpus.gap")->second.words == "–");
}
