// L10's view without a display: every control acts on the model, in every state and size.
#include <doctest/doctest.h>

#include <cmath>

#include "labs/memory/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::memory;

namespace {

using Screen = test::LabScreen<MemoryLab, MemoryView>;

}  // namespace

TEST_CASE("a cell's menu changes what is kept, and where") {
    Screen screen;
    screen.click("memory.w");
    screen.click("memory.w.5");  // as the plan, none, FP32, BF16, FP16, E4M3
    CHECK(screen.lab->params.formats[index(Row::weights)] == "e4m3");
    CHECK(screen.lab->outcome->own.account[Row::weights] == 7e9);
    screen.click("memory.m_at");
    screen.click("memory.m_at.2");
    CHECK(screen.lab->outcome->own.account.on_cpu() == 28e9);
}

TEST_CASE("a plan brings its own cells") {
    Screen screen;
    screen.set("g=e4m3");
    screen.click("plan");
    screen.click("plan.2");
    CHECK(screen.lab->params.plan == plans()[2].id);
    CHECK(screen.lab->params.formats[index(Row::gradients)] == "plan");
    CHECK_FALSE(screen.lab->outcome->own.changed);
}

TEST_CASE("the dot 'now' is dragged along the tokens, and stays in the range of a sequence") {
    Screen screen;
    screen.set("seq=4096");
    const Rect plot = screen.gui.rect("memory.tokens");
    screen.drag("memory.seq", plot.width() / 7);  // of seven binades
    CHECK(screen.lab->params.sequence == doctest::Approx(8192).epsilon(0.05));
    screen.drag("memory.seq", 4 * plot.width());
    CHECK(screen.lab->params.sequence <= 131072);
    screen.drag("memory.seq", -8 * plot.width());
    CHECK(screen.lab->params.sequence >= 512);
}

TEST_CASE("a press on another plan makes it the compared one") {
    Screen screen;
    screen.click("memory.plan.fp8-lm");
    CHECK(screen.lab->params.compare == "fp8-lm");
}

TEST_CASE("L8's network: its cells are no menus, hidden bytes are not shown") {
    Screen screen;
    screen.set("model=mlp");
    CHECK_FALSE(screen.shows("memory.w"));
    CHECK_FALSE(screen.shows("seq"));
    CHECK(screen.shows("value.FP8.2"));
    screen.set("own_hidden=on");
    CHECK_FALSE(screen.shows("value.FP8.2"));
    CHECK(screen.words("memory.total").ends_with(" GB"));
}

TEST_CASE("bars and table fit every stage, a narrow one shows the table or the tokens") {
    for (const ImVec2 size : {ImVec2{560, 536}, {860, 760}, {944, 540}, {1500, 1000}})
        for (const float scale : {0.75F, 1.0F, 2.0F})
            for (const char* plan : {"te", "seed-offload", "inference-fp8"}) {
                Screen screen({size.x * scale, size.y * scale}, scale);
                CAPTURE(size.x);
                CAPTURE(scale);
                CAPTURE(plan);
                screen.set(std::string("plan=") + plan);
                CHECK(test::draw_data_fault().empty());
                const Rect bars = screen.gui.rect("memory.bars");
                CHECK(bars.height() > 90 * scale);
                CHECK(bars.x1 <= screen.area.x1 + 1);
                const bool narrow = size.x < 700;
                CHECK(screen.shows("memory.tokens") != narrow);
                if (!narrow) continue;
                screen.click("memory.picture.1");
                screen.gui.context.probes.items.clear();
                screen.frame();
                CHECK(screen.shows("memory.tokens"));
                CHECK_FALSE(screen.shows("memory.w"));
            }
}
