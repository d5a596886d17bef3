#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "labs/window/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::window;

namespace {

struct Screen : test::LabScreen<WindowLab, WindowView> {
    explicit Screen(ImVec2 stage = {860, 780}, float scale = 1) : LabScreen(stage, scale) {
        set("cols=4096");
    }
    float binade() const {  // px
        const auto& item = gui.context.probes.items.at("window.histogram");
        return item.rect.width() / static_cast<float>(std::log2(item.axes->x.hi / item.axes->x.lo));
    }
};

}  // namespace

TEST_CASE("the window's handle moves the scale by hand, by what it was dragged") {
    Screen screen;
    screen.set("source=manual");
    screen.set("scale=0.001");
    screen.drag("window.handle", -3 * screen.binade());
    CHECK(screen.lab->params.scale == doctest::Approx(0.008).epsilon(0.02));
}

TEST_CASE("the window's handle moves the margin by whole powers of two") {
    Screen screen;
    screen.drag("window.handle", 2.2F * screen.binade());
    CHECK(screen.lab->params.margin == 2);
    CHECK(screen.words("window.number.overflow") == "0 %");
    screen.drag("window.handle", -4 * screen.binade());
    CHECK(screen.lab->params.margin == -2);
    CHECK(screen.words("window.number.overflow") != "0 %");
    // The axis makes room for what saturates, but never under the hand: however slow, a drag is its length.
    for (const int steps : {1, 3, 40}) {
        screen.set("margin=1");
        screen.drag("window.handle", -3 * screen.binade(), steps);
        CAPTURE(steps);
        CHECK(screen.lab->params.margin == -2);
    }
}

TEST_CASE("the cliff is read beside the slider: 464 becomes 448, one more is NaN") {
    Screen screen;
    screen.set("source=manual");
    screen.set("scale=1");
    screen.set("overflow=nonsaturate");
    screen.set("probe=464");
    CHECK(screen.words("window.probe_cast") == "448");
    CHECK(screen.words("window.probe_next") == "NaN");
}

TEST_CASE("the lower figure is the margin or the loss scale") {
    Screen screen;
    CHECK(screen.gui.context.probes.items.contains("window.margin_sweep"));
    screen.click("window.picture.1");
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK(screen.gui.context.probes.items.contains("window.loss"));
}

TEST_CASE("at most six controls of L4 show at a time, and six behind More") {
    Screen screen({860, 1600});
    std::set<std::string> names;
    for (const Field& field : screen.lab.fields()) {
        CHECK_FALSE(field.info.help.empty());
        if (!field.info.hidden) names.insert(field.info.name);
    }
    for (const bool more : {false, true}) {
        if (more) screen.click("window.more");
        for (const char* tensor : {"normal", "lognormal", "zeros", "decades"}) {
            for (const char* source : {"current", "manual", "percentile", "ema"}) {
                screen.set(std::string("tensor=") + tensor);
                screen.set("outliers=3");
                screen.set(std::string("source=") + source);
                screen.gui.context.probes.items.clear();
                screen.frame();
                CAPTURE(tensor);
                CAPTURE(source);
                const auto count = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
                    return screen.gui.context.probes.items.contains(name);
                });
                CHECK(count <= (more ? 12 : 6));
                CHECK(count >= 4);
            }
        }
    }
}

TEST_CASE("every tensor of L4 fits every stage") {
    const std::array<ImVec2, 4> kSizes = {ImVec2{560, 536}, {860, 780}, {944, 540}, {1500, 1000}};
    for (const ImVec2 size : kSizes) {
        for (const float scale : {0.75F, 1.0F, 2.0F}) {
            Screen screen({size.x * scale, size.y * scale}, scale);
            for (const char* tensor : {"tensor=normal", "tensor=lognormal", "tensor=zeros"}) {
                for (const char* margin : {"margin=-3", "margin=12"}) {
                    screen.gui.context.probes.items.clear();
                    screen.set(tensor);
                    screen.set(margin);
                    CAPTURE(size.x);
                    CAPTURE(scale);
                    CAPTURE(tensor);
                    CHECK(test::draw_data_fault().empty());
                    for (const char* name : {"window.histogram", "window.handle", "probe"}) {
                        const Rect rect = screen.gui.rect(name);
                        CAPTURE(name);
                        CHECK(rect.width() > 100 * scale);
                        CHECK(rect.x0 >= screen.area.x0 - 1);
                        CHECK(rect.x1 <= screen.area.x1 + 1);
                        CHECK(rect.y1 <= screen.area.y1 + 1);
                    }
                }
            }
        }
    }
}
