#include <doctest/doctest.h>

#include <algorithm>

#include "labs/blocks/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::blocks;

namespace {

using Screen = test::LabScreen<BlocksLab, BlocksView>;

}  // namespace

TEST_CASE("the block under the mouse is outlined in all three maps") {
    Screen screen;
    screen.set("scheme=128x128");
    const auto outlines = [&] {
        int rectangles = 0;
        for (const auto& [name, item] : screen.gui.context.probes.items)
            rectangles += name.starts_with("blocks.outline.");
        return rectangles;
    };
    CHECK(outlines() == 0);
    const Rect map = screen.gui.rect("blocks.error");
    screen.gui.move({map.x0 + 0.75F * map.width(), map.y0 + 0.25F * map.height()});
    screen.frame();
    screen.frame();
    REQUIRE(outlines() == 3);
    // The upper right one of four, in every map.
    const Rect outline = screen.gui.rect("blocks.outline.0"), magnitude = screen.gui.rect("blocks.magnitude");
    CHECK(outline.x0 == doctest::Approx(static_cast<double>(magnitude.x0 + magnitude.x1) / 2).epsilon(0.01));
    CHECK(outline.x1 == doctest::Approx(static_cast<double>(magnitude.x1)).epsilon(0.01));
    CHECK(outline.y0 == doctest::Approx(static_cast<double>(magnitude.y0)).epsilon(0.01));
    CHECK(outline.height() == doctest::Approx(static_cast<double>(magnitude.height()) / 2).epsilon(0.02));
}

TEST_CASE("the maps of both copies take the place of tensor and error") {
    Screen screen;
    screen.set("maps=transpose");
    const auto& items = screen.gui.context.probes.items;
    CHECK(items.count("blocks.scales_by_rows") == 1);
    CHECK(items.count("blocks.difference") == 1);
    CHECK(items.count("blocks.error") == 0);
}

TEST_CASE("the rule of the power of two is there where there is one") {
    Screen screen;
    CHECK(screen.gui.context.probes.items.count("rule") == 0);
    CHECK(screen.gui.context.probes.items.count("pow2") == 1);
    screen.set("scheme=mx32");
    CHECK(screen.gui.context.probes.items.count("rule") == 1);
    CHECK(screen.gui.context.probes.items.count("pow2") == 0);
}

TEST_CASE("the numbers of the schemes are copied exactly") {
    Screen screen;
    for (const Contender& contender : screen.lab->outcome->contenders) {
        const std::string cell = "value." + contender.scheme.id + ".2";  // bits/element
        CAPTURE(cell);
        screen.click(cell);
        screen.click(cell + ".1");  // exact
        CHECK(std::stod(ImGui::GetClipboardText()) == contender.score.bits_per_element);
    }
}

TEST_CASE("maps and schemes fit every stage") {
    for (const ImVec2 size : {ImVec2{560, 536}, ImVec2{860, 760}, ImVec2{944, 540}, ImVec2{1500, 1000}})
        for (const float scale : {0.75F, 1.0F, 2.0F}) {
            Screen screen({size.x * scale, size.y * scale}, scale);
            for (const char* scheme : {"scheme=tensor", "scheme=nvfp4"}) {
                CAPTURE(size.x);
                CAPTURE(scale);
                screen.set(scheme);
                CHECK(test::draw_data_fault().empty());
                for (const char* name :
                     {"blocks.magnitude", "blocks.scales", "blocks.error", "blocks.schemes"}) {
                    const Rect rect = screen.gui.rect(name);
                    CAPTURE(name);
                    CHECK(rect.width() > 80 * scale);
                    CHECK(rect.height() > 60 * scale);
                    CHECK(rect.x0 >= screen.area.x0 - 1);
                    CHECK(rect.x1 <= screen.area.x1 + 1);
                    CHECK(rect.y1 <= screen.area.y1 + 1);
                }
            }
        }
}

TEST_CASE("a press on a row of the table chooses that scheme and its rule") {
    Screen screen;
    screen.click("blocks.scheme.mx32-floor");
    CHECK(screen.lab->params.scheme_id() == "mx32-floor");
    screen.click("blocks.scheme.row");
    CHECK(screen.lab->params.scheme_id() == "row");
}
