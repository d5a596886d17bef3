#include <doctest/doctest.h>

#include <cmath>

#include "labs/ruler/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::ruler;

namespace {

struct Screen : test::LabScreen<RulerLab, RulerView> {
    using LabScreen::LabScreen;
    // The place of a value on the linear axis.
    float x_of(double value) const {
        const Rect plot = gui.rect("ruler.data");
        return plot.x0 + static_cast<float>(value / lab->outcome->axis.hi) * plot.width();
    }
};

}  // namespace

TEST_CASE("the handle dragged to half its place doubles the scale") {
    Screen screen;
    const float from = screen.gui.center("ruler.handle").x;
    const float zero = screen.gui.rect("ruler.data").x0;
    screen.drag("ruler.handle", (zero - from) / 2);
    CHECK(screen.lab->params.scale == doctest::Approx(2).epsilon(0.01));
    CHECK(screen.lab->outcome->lanes.front().cast.stats.overflow > 0);
}

TEST_CASE("the interval's knobs are dragged along the axis and do not pass each other") {
    Screen screen;
    screen.drag("ruler.interval_hi", screen.x_of(320) - screen.x_of(256));
    CHECK(screen.lab->params.brush_hi == doctest::Approx(320).epsilon(0.01));
    CHECK(screen.lab->params.brush_lo == 128);
    screen.drag("ruler.interval_lo", screen.x_of(500) - screen.x_of(128));
    CHECK(screen.lab->params.brush_lo == screen.lab->params.brush_hi);
    CHECK(screen.lab->params.brush_hi == doctest::Approx(320).epsilon(0.01));
}

TEST_CASE("the numbers of the table are copied exactly, and no gap is nothing to copy") {
    Screen screen;
    const Lane& lane = screen.lab->outcome->lanes.front();
    const std::string row = "value." + std::string(lane.format.label) + ".";
    const auto copied = [&](int column) {
        screen.click(row + std::to_string(column));
        screen.click(row + std::to_string(column) + ".1");  // exact
        return std::stod(ImGui::GetClipboardText());
    };
    CHECK(copied(2) == lane.brushed.min_gap);
    CHECK(copied(7) == lane.cast.stats.sqnr_db());
    screen.set("brush_hi=1e9");
    screen.set("brush_lo=1e8");  // no code there
    CHECK(screen.lab->outcome->lanes.front().brushed.min_gap == 0);
    CHECK_FALSE(screen.shows(row + "2"));
    CHECK(screen.shows(row + "1"));
}

TEST_CASE("ruler and tensor share the edges of their x axis") {
    Screen screen;
    const Rect marks = screen.gui.rect("ruler.marks"), data = screen.gui.rect("ruler.data");
    CHECK(marks.x0 == doctest::Approx(static_cast<double>(data.x0)));
    CHECK(marks.x1 == doctest::Approx(static_cast<double>(data.x1)));
    CHECK(marks.y1 < data.y0);
}

TEST_CASE("without a tensor there is no handle, and the gaps take the histogram's place") {
    Screen screen;
    screen.gui.context.probes.items.clear();
    screen.set("tensor=none");
    CHECK(screen.gui.context.probes.items.count("ruler.handle") == 0);
    CHECK(screen.gui.context.probes.items.count("ruler.gaps") == 1);
    CHECK(screen.gui.context.probes.items.count("size") == 0);
}

TEST_CASE("at most six controls stand in the first tier, at most six behind More") {
    RulerLab lab;
    int first = 0, more = 0;
    for (const Field& field : lab.fields()) {
        if (field.info.hidden || field.info.name == "file")
            continue;  // a file takes the place of four others
        (field.info.more ? more : first) += 1;
        CHECK_FALSE(field.info.help.empty());
    }
    CHECK(first <= 6);
    CHECK(more <= 6);
}

TEST_CASE("every axis and number of rulers fits every stage") {
    const ImVec2 sizes[] = {{560, 536}, {860, 760}, {944, 540}, {1500, 1000}};
    for (const ImVec2 size : sizes) {
        for (const float scale : {0.75F, 1.0F, 2.0F}) {
            Screen screen({size.x * scale, size.y * scale}, scale);
            for (const char* axis : {"linear", "log", "binades"}) {
                for (const char* fourth : {"none", "int8"}) {
                    CAPTURE(size.x);
                    CAPTURE(scale);
                    CAPTURE(axis);
                    CAPTURE(fourth);
                    screen.gui.context.probes.items.clear();
                    screen.set(std::string("axis=") + axis);
                    screen.set("third=e2m1");
                    screen.set(std::string("fourth=") + fourth);
                    screen.set("fixed_point=on");
                    CHECK(test::draw_data_fault().empty());
                    for (const char* name : {"ruler.marks", "ruler.data", "ruler.handle"}) {
                        const Rect rect = screen.gui.rect(name);
                        CAPTURE(name);
                        CHECK(rect.width() > 100 * scale);
                        CHECK(rect.height() > 15 * scale);
                        CHECK(rect.x0 >= screen.area.x0 - 1);
                        CHECK(rect.x1 <= screen.area.x1 + 1);
                        CHECK(rect.y1 <= screen.area.y1 + 1);
                    }
                }
            }
        }
    }
}

TEST_CASE("the handle follows the mouse on every axis, also where the window ends beyond the figure") {
    for (const char* axis : {"linear", "log"})
        for (const char* scale : {"1", "0.05", "4"}) {
            CAPTURE(axis);
            CAPTURE(scale);
            Screen screen;
            screen.set(std::string("axis=") + axis);
            screen.set(std::string("scale=") + scale);
            const Rect data = screen.gui.rect("ruler.data");
            const float from = screen.gui.center("ruler.handle").x;
            const float by = from > (data.x0 + data.x1) / 2 ? -90.0F : 90.0F;
            screen.drag("ruler.handle", by);
            screen.frame();
            CHECK(screen.gui.center("ruler.handle").x == doctest::Approx(from + by).epsilon(0.005));
            CHECK_FALSE(screen.shows("ruler.data.whole"));  // nothing was panned
        }
}
