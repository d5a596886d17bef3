// L12's view without a display: every control acts on the model, in every state and size.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "labs/four/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::four;

namespace {

using Screen = test::LabScreen<FourLab, FourView>;

}  // namespace

TEST_CASE("L12: a press on a map marks the block there, in both maps, arrow keys go to its neighbours") {
    Screen screen;
    const Rect map = screen.gui.rect("four.map.0");
    screen.click(Point{map.x0 + 0.75F * map.width(), map.y0 + 0.03F * map.height()});
    CHECK(screen.lab->params.block_index == 1);  // first row, second block
    screen.click(Point{map.x0 + 0.2F * map.width(), map.y0 + 0.97F * map.height()});
    CHECK(screen.lab->params.block_index == 30);
    const Rect marked = screen.gui.rect("four.marked.1"), other = screen.gui.rect("four.map.1");
    CHECK(marked.x0 >= other.x0 - 2);
    CHECK(marked.y1 == doctest::Approx(other.y1).epsilon(0.02));
    screen.set("format=mxfp4");
    screen.click(Point{map.x0 + 0.75F * map.width(), map.y0 + 0.1F * map.height()});
    CHECK(screen.lab->marked_index() == 1);  // one block a row
    CHECK(screen.words("four.block").find("rounds up to") != std::string::npos);
}

TEST_CASE("L12: a press on a kind of tensor chooses it") {
    Screen screen;
    screen.click("four.kind.lognormal");
    CHECK(screen.lab->params.tensor.kind == "lognormal");
    CHECK(screen.words("four.sqnr") != "");
}

TEST_CASE("L12: switches without an effect do not move, Train with it leads to L8") {
    Screen screen({860, 1200});
    screen.set("format=mxfp4");
    for (const char* other : {"block.1", "target.1", "target.2"}) CHECK_FALSE(screen.shows(other));
    screen.click("block.0");
    screen.click("target.0");
    CHECK((screen.lab->params.block == "1x16" && screen.lab->params.target == "6"));
    screen.set("format=nvfp4");
    screen.click("block.1");
    CHECK(screen.lab->params.block == "16x16");
    screen.click("four.train");
    CHECK(screen.gui.context.wanted_lab.lab == "train");
    CHECK(screen.gui.context.wanted_lab.fields.front() == "arm_b=nvfp4");
}

TEST_CASE("L12: the stage is whole at every size, for every tensor") {
    for (const ImVec2 size : {ImVec2{560, 536}, {860, 760}, {944, 540}, {1500, 1000}})
        for (const float scale : {0.75F, 1.0F, 2.0F})
            for (const char* tensor : {"swiglu_h", "picture"}) {
                Screen screen({size.x * scale, size.y * scale}, scale);
                CAPTURE(size.x);
                CAPTURE(scale);
                CAPTURE(tensor);
                screen.set(std::string("tensor=") + tensor);
                CHECK(test::draw_data_fault().empty());
                const bool narrow = size.x < 700;
                CHECK(screen.shows("four.mean") != narrow);
                const Rect data = screen.gui.rect("four.data");
                CHECK(data.height() > 90 * scale);
                CHECK(data.y1 <= screen.area.y1 + 1);
                const Rect tiles = screen.gui.rect("four.tiles");
                CHECK(tiles.x1 <= screen.area.x1 + 1);
                CHECK(tiles.height() > 80 * scale);
                if (!narrow) continue;
                screen.click("four.picture.1");
                CHECK(screen.shows("four.mean"));
            }
}

TEST_CASE(
    "L12: the smallest stage has the key of the codes, rows that stand apart, and the block in the switch") {
    Screen screen({608, 530});
    const auto says = [&](std::string_view words) {
        return std::ranges::any_of(screen.gui.context.probes.texts,
                                   [&](const auto& text) { return text.words == words; });
    };
    CHECK(says("|code|"));
    float before = 0;
    for (const char* row : {"Gaussian", "Laplace", "Student t, 3", "Log-normal"}) {
        const auto text = std::ranges::find(screen.gui.context.probes.texts, row, &ui::Probes::Text::words);
        REQUIRE(text != screen.gui.context.probes.texts.end());
        if (before > 0) CHECK(text->rect.y0 - before >= 16);
        before = text->rect.y0;
    }
    CHECK_FALSE(says("Marked block"));
    screen.click("four.picture.2");
    screen.frame();
    CHECK(says("Marked block"));
}
