#include <doctest/doctest.h>

#include <array>
#include <set>

#include "labs/delayed/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::delayed;

namespace {

struct Screen : test::LabScreen<DelayedLab, DelayedView> {
    using LabScreen::LabScreen;
    std::string strip(const char* row, int step) const {
        return words("delayed.strip." + std::string(row) + "." + std::to_string(step));
    }
};

}  // namespace

TEST_CASE("the strips show the trace of numerics.md 3.2 under the plot's columns") {
    Screen screen;
    constexpr std::array kScales = {"1", "224", "112", "112", "4.48", "4.48", "4.48", "4.48", "224"};
    const Rect plot = screen.gui.rect("delayed.timeline");
    for (int t = 0; t < 9; ++t) {
        CAPTURE(t);
        CHECK(screen.strip("scale", t) == kScales.at(static_cast<std::size_t>(t)));
        CHECK(screen.strip("step", t) == std::to_string(t));
        CHECK((screen.strip("saturated", t) != "0") == (t == 1 || t == 3));
        const Rect cell = screen.gui.rect("delayed.strip.scale." + std::to_string(t));
        CHECK(cell.x0 == doctest::Approx(plot.x0 + plot.width() * static_cast<float>(t) / 9).epsilon(0.01));
        CHECK(cell.y0 >= plot.y1 - 1);
    }
    CHECK(screen.strip("underflow", 3) == "0");
    CHECK(screen.strip("sqnr", 3) == "1.51");
}

TEST_CASE("the transport steps through the trace, and a click on the timeline goes there") {
    Screen screen;
    CHECK(screen.lab->params.step == 3);
    screen.click("delayed.on");
    CHECK(screen.lab->params.step == 4);
    screen.click("delayed.back");
    screen.click("delayed.back");
    CHECK(screen.lab->params.step == 2);
    screen.click("delayed.first");
    CHECK(screen.lab->params.step == 0);
    screen.click("delayed.back");
    CHECK(screen.lab->params.step == 0);
    const Rect plot = screen.gui.rect("delayed.timeline");
    screen.click({plot.x0 + plot.width() * 7.5F / 9, (plot.y0 + plot.y1) / 2});
    CHECK(screen.lab->params.step == 7);
    const Rect scrub = screen.gui.rect("delayed.scrub");
    screen.click({scrub.x0 + scrub.width() * 5.5F / 9, (scrub.y0 + scrub.y1) / 2});
    CHECK(screen.lab->params.step == 5);
}

TEST_CASE("play takes a step every half second and rests at the end of the series") {
    Screen screen;
    screen.click("delayed.first");
    CHECK(screen.view.key(screen.gui.context, ui::Key{' '}));
    int frames = 0;
    for (; screen.lab->params.step < 8 && frames < 600; ++frames) screen.frame();  // 60 a second
    CHECK(frames > 8 * 25);
    CHECK(frames < 8 * 35);
    for (int i = 0; i < 60; ++i) screen.frame();
    CHECK(screen.lab->params.step == 8);
    CHECK_FALSE(screen.gui.context.wants_redraw);
}

TEST_CASE("key B walks through A, A and B, and B, the notebook's order says so") {
    Screen screen;
    CHECK_FALSE(screen.shows("delayed.notebooks_order"));
    CHECK(screen.view.key(screen.gui.context, ui::Key{'B'}));
    screen.lab.update();
    screen.frame();
    CHECK(screen.lab->params.compare == "b");
    CHECK(screen.shows("delayed.notebooks_order"));
    CHECK(screen.strip("scale", 3) == "4.48");
    for (int t = 0; t < 9; ++t) CHECK(screen.strip("saturated", t) == "0");
    screen.view.key(screen.gui.context, ui::Key{'B'});
    CHECK(screen.lab->params.compare == "a");
    CHECK_FALSE(screen.view.key(screen.gui.context, ui::Key{'Q'}));
}

TEST_CASE("pin and unpin are buttons") {
    Screen screen;
    screen.click("delayed.pin");
    CHECK(screen.lab->params.other == "pinned");
    screen.set("history=1");
    CHECK(screen.lab->b().machine.history == 4);
    screen.click("delayed.unpin");
    CHECK(screen.lab->params.other == "notebook");
}

TEST_CASE("at most six controls of L5 show at a time, and six behind More") {
    Screen screen({860, 1600});
    std::set<std::string> names;
    for (const Field& field : screen.lab.fields()) {
        CHECK_FALSE(field.info.help.empty());
        if (!field.info.hidden) names.insert(field.info.name);
    }
    const auto count = [&] {
        return std::count_if(names.begin(), names.end(),
                             [&](const std::string& name) { return screen.shows(name); });
    };
    for (const bool more : {false, true}) {
        if (more) screen.click("delayed.more");
        for (const Choice& scenario : scenario_choices()) {
            if (scenario.id == "file" || scenario.id == "rows") continue;
            for (const char* algo : {"max", "ema", "percentile", "static", "current"}) {
                screen.set("scenario=" + scenario.id);
                screen.set(std::string("algo=") + algo);
                screen.gui.context.probes.items.clear();
                screen.frame();
                CAPTURE(scenario.id);
                CAPTURE(algo);
                CHECK(count() <= (more ? 12 : 6));
                CHECK(count() >= 3);
            }
        }
    }
}

TEST_CASE("every scenario of L5 fits every stage") {
    const std::array<ImVec2, 4> kSizes = {ImVec2{560, 536}, {860, 780}, {944, 540}, {1500, 1000}};
    for (const ImVec2 size : kSizes) {
        for (const float scale : {0.75F, 1.0F, 2.0F}) {
            Screen screen({size.x * scale, size.y * scale}, scale);
            for (const char* scenario : {"trace", "ramp", "spike", "poison", "dy1"}) {
                for (const char* compare : {"ab", "b"}) {
                    screen.gui.context.probes.items.clear();
                    screen.set(std::string("scenario=") + scenario);
                    screen.set(std::string("compare=") + compare);
                    screen.set("history=1024");
                    CAPTURE(size.x);
                    CAPTURE(scale);
                    CAPTURE(std::string(scenario));
                    CAPTURE(std::string(compare));
                    CHECK(test::draw_data_fault().empty());
                    const Rect plot = screen.gui.rect("delayed.timeline");
                    CHECK(plot.height() > 100 * scale);
                    CHECK(plot.width() > 300 * scale);
                    for (const char* name : {"delayed.scrub", "delayed.play", "delayed.strip.step.0"}) {
                        const Rect rect = screen.gui.rect(name);
                        CAPTURE(name);
                        CHECK(rect.x0 >= screen.area.x0 - 1);
                        CHECK(rect.x1 <= screen.area.x1 + 1);
                        CHECK(rect.y1 <= screen.area.y1 + 1);
                    }
                }
            }
        }
    }
}
