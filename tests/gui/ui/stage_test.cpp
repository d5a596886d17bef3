#include "labs/ui/stage/stage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "labs/ui/widgets.h"
#include "tests/gui/gui.h"

using namespace fp8lab;
using test::Gui;

TEST_CASE("items that would overlap are moved apart, in their order, between both bounds") {
    struct Item {
        float y;
        char name;
    };
    std::vector<Item> items = {{95, 'd'}, {12, 'b'}, {10, 'a'}, {90, 'c'}};
    ui::move_apart(items, 18, 0, 100);
    std::string order;
    for (const Item& item : items) order += item.name;
    CHECK(order == "abcd");
    CHECK(items[0].y == 10);
    for (std::size_t i = 1; i < items.size(); ++i) CHECK(items[i].y - items[i - 1].y >= 18);
    CHECK(items.front().y >= 0);
    CHECK(items.back().y <= 100);
}

TEST_CASE("a paragraph has as many lines as have room, a note all of them or none") {
    Gui gui;
    const std::string words(200, 'w');  // one word: broken where a line ends
    const auto drawn = [&](auto&& draw) {
        gui.frame(draw);
        return std::ranges::count_if(gui.context.probes.texts,
                                     [](const auto& text) { return text.words.starts_with("ww"); });
    };
    float end = 0, pitch = 0;
    const auto all = drawn([&](ui::Context& c) {
        pitch = c.px(ui::line_height(13));
        end = ui::paragraph(c, words, {0, 0, 200, 500});
    });
    CHECK(all > 3);
    CHECK(end == static_cast<float>(all) * pitch);
    const Rect low{0, 0, 200, 2 * pitch};
    CHECK(drawn([&](ui::Context& c) { end = ui::paragraph(c, words, low); }) == 2);
    CHECK(end == 2 * pitch);
    CHECK(drawn([&](ui::Context& c) { ui::note(c, words, low); }) == 0);
    CHECK(drawn([&](ui::Context& c) { ui::note(c, words, {0, 0, 200, 500}); }) == all);
}

TEST_CASE("a switch in a corner ends at its place and chooses, a row is pressed once") {
    Gui gui;
    const std::array<std::string, 2> labels = {"Left", "Right"};
    int selected = 0, pressed = 0;
    const Gui::Draw draw = [&](ui::Context& c) {
        ui::corner_switch(c, "part", {300, 40}, 200, labels, selected);
        pressed += ui::press_row(c, "row", {30, 100, 300, 130}, false) ? 1 : 0;
    };
    gui.frame(draw);
    CHECK(gui.rect("part.1").x1 == doctest::Approx(300).epsilon(0.02));
    gui.click("part.1", draw);
    CHECK(selected == 1);
    gui.click("row", draw);
    CHECK(pressed == 1);
}

TEST_CASE("the buttons of a recipe copy it, and open L8 with it where it trains there") {
    Gui gui;
    std::string recipe = "nvfp4:rht=off";
    const Gui::Draw draw = [&](ui::Context& c) {
        ui::recipe_buttons(c, "lab", "NVFP4BlockScaling()", recipe);
    };
    gui.frame(draw);
    gui.click("lab.copy_recipe", draw);
    CHECK(std::string(ImGui::GetClipboardText()) == "NVFP4BlockScaling()");
    gui.click("lab.train", draw);
    CHECK(gui.context.wanted_lab.lab == "train");
    CHECK(gui.context.wanted_lab.fields ==
          std::vector<std::string>{"arm_b=nvfp4", "round=recipe", "options=rht=off"});
    recipe.clear();
    gui.context.probes.items.clear();
    gui.frame(draw);
    CHECK_FALSE(gui.context.probes.items.contains("lab.train"));
}
