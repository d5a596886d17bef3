// L9's view without a display, on a grid whose times follow a formula.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "labs/speed/view.h"
#include "tests/gui/screens/lab_screen.h"
#include "tests/synthetic_grid.h"

using namespace fp8lab;
using namespace fp8lab::speed;

namespace {

struct SyntheticLab : SpeedLab {
    SyntheticLab()
        : SpeedLab(std::make_shared<const Shipped>(
                       Shipped{{test::synthetic_recording("one"), test::synthetic_recording("two")}, ""}),
                   Backends(cpu_backend())) {}
};

using Screen = test::LabScreen<SyntheticLab, SpeedView>;

}  // namespace

TEST_CASE("L9: the BF16 disc is dragged along the recorded M, and the points follow") {
    Screen screen;
    screen.set("m=1024");
    const double before = screen.lab.outcome().products.front().ai_bf16;
    screen.drag("speed.disc", -60);
    const int dragged = screen.lab.params().m;
    CHECK(dragged < 1024);
    CHECK(std::ranges::count(screen.lab.outcome().all_m, dragged) == 1);
    CHECK(screen.lab.outcome().products.front().ai_bf16 < before);
    screen.drag("speed.disc", 4000);  // beyond the roof's end
    CHECK(screen.lab.params().m == 32768);
    screen.click("speed.disc");  // a click drags nothing
    CHECK(screen.lab.params().m == 32768);
}

TEST_CASE("L9: the sliders stop at recorded values, the small buttons set one more or one less") {
    Screen screen;
    screen.drag("m", -37);
    CHECK(std::ranges::count(screen.lab.outcome().all_m, screen.lab.params().m) == 1);
    screen.drag("n", -120);
    const std::pair layer{screen.lab.params().n, screen.lab.params().k};
    CHECK(std::ranges::count(screen.lab.outcome().all_layers, layer) == 1);
    screen.click("k_off.more");
    CHECK(screen.lab.params().k_off == 1);
    screen.click("k_off.less");
    CHECK(screen.lab.params().k_off == -1);
    screen.click("k_off.less");
    CHECK(screen.lab.params().k_off == 0);
}

TEST_CASE("L9: a cell of the table of refusals chooses its size, and padding makes it run") {
    Screen screen;
    screen.set("view=align");
    screen.click("speed.align.fprop.K");
    CHECK(screen.lab.params().layer() == Layer{4096, 4096, 4097});
    CHECK(screen.words("speed.headline") == "refused");
    screen.set("pad=on");
    CHECK(screen.words("speed.headline") != "refused");
    screen.click("speed.align.wgrad.M");
    CHECK(screen.lab.params().layer() == Layer{4097, 4096, 4096});
}

TEST_CASE("L9: the switch shows each of the four figures, at every size of the stage") {
    for (const ImVec2 stage : {ImVec2{860, 780}, ImVec2{640, 520}, ImVec2{1300, 1000}}) {
        Screen screen(stage);
        for (const int index : {1, 2, 3, 0}) {
            CAPTURE(stage.x);
            CAPTURE(index);
            screen.click("speed.view." + std::to_string(index));
            CHECK(screen.lab.params().view ==
                  std::array{"sweep", "qkv", "align", "formats"}.at(static_cast<std::size_t>(index)));
        }
    }
}

TEST_CASE("L9: without a step of this layer a button goes to the nearest one") {
    Screen screen;
    screen.set("m=512");
    screen.click("speed.nearest");
    CHECK(screen.lab.params().m == 8192);
    CHECK(screen.lab.outcome().step.found != nullptr);
    screen.frame();
}

TEST_CASE("L9: without a GPU nothing can be measured, and the button says why") {
    Screen screen;
    REQUIRE_FALSE(screen.lab.gpu_reason().empty());
    screen.click("speed.measure");
    CHECK(screen.lab.params().source == "one");
    CHECK_FALSE(screen.lab.busy());
    ui::Context& context = screen.gui.context;
    for (const ui::Key key : {ui::Key::space, ui::Key::g, ui::Key::s}) {
        CHECK(screen.view.key(context, key));
        CHECK(screen.lab.params().source == "one");
    }
    CHECK_FALSE(screen.view.key(context, ui::Key::m));
}

TEST_CASE("L9: a point of the sweep is a size, and a pair of the roofline is a layer: a click chooses it") {
    Screen screen;
    screen.set("view=sweep");
    const Figure sweep = screen.lab.figures()[1];
    REQUIRE(sweep.id == "sweep");
    const auto line = std::ranges::find(sweep.series, "with casts", &Series::name);
    REQUIRE(line != sweep.series.end());
    const auto& curve = std::get<LineSeries>(line->shape);
    const std::size_t third = 2;
    const int m = static_cast<int>((*curve.x)[third]);
    REQUIRE(screen.lab.params().m != m);
    const Point point = screen.place("speed.lower", sweep, m, (*curve.y)[third]);
    screen.gui.move({point.x + 3, point.y});
    screen.frame();
    CHECK(ImGui::GetMouseCursor() == ImGuiMouseCursor_Hand);
    screen.click(point);
    CHECK(screen.lab.params().m == m);
    screen.gui.move({point.x, point.y - 60});
    screen.frame();
    CHECK(ImGui::GetMouseCursor() != ImGuiMouseCursor_Hand);

    screen.set("n_off=1");
    const Product& notebook = screen.lab.outcome().notebook;
    REQUIRE(notebook.ran(true));
    const Figure roofline = screen.lab.figures()[0];
    screen.click(screen.place("speed.roofline", roofline, notebook.ai_fp8, notebook.tflops(true)));
    CHECK(screen.lab.params().layer() == kNotebook);
}

TEST_CASE("L9: f and r, from which an exercise computes, stand below the step on the smallest stage") {
    Screen screen({608, 530});
    if (!screen.lab.outcome().step.found) screen.click("speed.nearest");
    screen.frame();
    REQUIRE(screen.lab.outcome().step.found);
    std::string all;
    for (const auto& text : screen.gui.context.probes.texts) all += text.words + " ";
    CHECK(all.find("GEMM share f = ") != std::string::npos);
    CHECK(all.find("r = ") != std::string::npos);
}
