#include <doctest/doctest.h>

#include <cmath>

#include "labs/error/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::error;

namespace {

using Screen = test::LabScreen<ErrorLab, ErrorView>;

}  // namespace

TEST_CASE("the marker is dragged along the axis and stays in it") {
    Screen screen;
    const auto drag_to = [&](float x) {
        screen.gui.move(screen.gui.center("error.marker"));
        screen.frame();
        screen.gui.mouse(true);
        screen.frame();
        screen.gui.move({x, screen.gui.center("error.marker").y});
        screen.frame();
        screen.gui.mouse(false);
        screen.frame();
    };
    const Rect plot = screen.gui.rect("error.error");
    drag_to((plot.x0 + plot.x1) / 2);  // of 1e-4 to 1e3, in logarithms
    CHECK(screen.lab->params.at == doctest::Approx(std::pow(10, -0.5)).epsilon(0.02));
    drag_to(plot.x1 + 500);
    CHECK(screen.lab->params.at == doctest::Approx(1000));
}

TEST_CASE("error and tensor share the edges of their x axis") {
    Screen screen;
    const Rect error = screen.gui.rect("error.error"), tensor = screen.gui.rect("error.data");
    CHECK(error.x0 == doctest::Approx(static_cast<double>(tensor.x0)));
    CHECK(error.x1 == doctest::Approx(static_cast<double>(tensor.x1)));
    CHECK(error.y1 < tensor.y0);
}

TEST_CASE("controls without an effect on the tensor are not shown") {
    Screen screen;
    CHECK_FALSE(screen.shows("sigma"));
    screen.set("tensor=lognormal");
    CHECK(screen.shows("sigma"));
}

TEST_CASE("error and metrics fit every stage, the tensor gives way on low ones") {
    for (const ImVec2 size : {ImVec2{560, 536}, {860, 760}, {944, 540}, {1500, 1000}})
        for (const float scale : {0.75F, 1.0F, 2.0F})
            for (const char* overlay : {"none", "both"}) {
                Screen screen({size.x * scale, size.y * scale}, scale);
                CAPTURE(size.x);
                CAPTURE(scale);
                screen.set(std::string("overlay=") + overlay);
                CHECK(test::draw_data_fault().empty());
                const Rect rect = screen.gui.rect("error.error");
                CHECK(rect.height() > 120 * scale);
                CHECK(rect.x0 >= screen.area.x0 - 1);
                CHECK(rect.x1 <= screen.area.x1 + 1);
                CHECK(rect.y1 <= screen.area.y1 + 1);
                if (size.y > 700) CHECK(screen.gui.rect("error.data").height() > 60 * scale);
            }
}

TEST_CASE("blind, nothing on the stage tells the curves apart but their shape") {
    Screen screen;
    screen.gui.context.probes.items.clear();
    screen.set("blind=on");
    CHECK_FALSE(screen.shows("error.marker"));
    CHECK(screen.shows("error.error.legend.A"));
    CHECK_FALSE(screen.shows("error.error.legend.E4M3"));
}
