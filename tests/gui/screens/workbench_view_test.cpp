// The Workbench's view without a display: rows, heads, recipes and keys act on the model, at every size.
#include <doctest/doctest.h>

#include <array>

#include "labs/workbench/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::workbench;

namespace {

using Screen = test::LabScreen<WorkbenchLab, WorkbenchView>;

std::string selected_name(const Screen& screen) {
    return screen.lab.scanned().store->tensors()[*screen.lab.selected()].name;
}

}  // namespace

TEST_CASE("the Workbench: a press on a row selects its worst tensor, on a recipe shows it") {
    Screen screen;
    CHECK(screen.words("workbench.progress") == "150 of 150 scanned");
    CHECK(screen.lab.selected_row() == 0);
    screen.click("workbench.row.2");
    CHECK(selected_name(screen) == "dact.head");
    CHECK(screen.lab.selected_row() == 2);
    const std::string before = screen.words("workbench.where");
    screen.click("workbench.recipe.mxfp6-e2m3");
    CHECK(screen.lab.params().recipe == "mxfp6-e2m3");
    CHECK(screen.words("workbench.where") != before);
}

TEST_CASE("the Workbench: a press on a head sorts by it, and again turns the order") {
    Screen screen;
    screen.click("workbench.head.binades");
    CHECK(screen.lab.params().order == "binades");
    const double most = screen.lab.table().front().binades;
    CHECK(most == doctest::Approx(62.6).epsilon(0.001));
    screen.click("workbench.head.binades");
    CHECK(screen.lab.params().ascending);
    CHECK(screen.lab.table().back().binades == most);
    screen.click("workbench.head.nvfp4");
    CHECK(screen.lab.params().order == "nvfp4");
    CHECK_FALSE(screen.lab.params().ascending);
}

TEST_CASE("the Workbench: keys move through the rows, unfold a kind and fold it again") {
    Screen screen;
    const auto press = [&](ui::Key key) {
        const bool used = screen.view.key(screen.gui.context, key);
        screen.frame();
        return used;
    };
    CHECK(press(ui::Key::down));
    CHECK(screen.lab.selected_row() == 1);
    CHECK(press(ui::Key::page_down));
    CHECK(*screen.lab.selected_row() > 3);
    for (int i = 0; i < 20; ++i) press(ui::Key::page_up);
    CHECK(screen.lab.selected_row() == 0);
    const std::string kind = screen.lab.table()[0].name;
    CHECK(press(ui::Key::enter));
    CHECK_FALSE(screen.lab.params().fold);
    CHECK(screen.lab.params().filter == kind);
    CHECK(screen.lab.table().size() == 4);
    CHECK(press(ui::Key::backspace));
    CHECK(screen.lab.params().fold);
    CHECK(screen.lab.table().size() > 20);
}

TEST_CASE("the Workbench: in the exercise the other recipes are covered") {
    Screen screen;
    screen.set("covered=true");
    CHECK(screen.shows("workbench.recipe.mxfp8"));
    CHECK(screen.lab.advice_title() == "Which recipe has the fewest bits?");
}

TEST_CASE("the Workbench: a second file shows what changed, before and after") {
    Screen screen;
    CHECK_FALSE(screen.shows("workbench.change"));
    screen.set("compare=transformer-0");
    CHECK(screen.shows("workbench.change"));
    CHECK_FALSE(screen.shows("workbench.where"));
}

TEST_CASE("the Workbench: buttons lead to the labs that take a tensor") {
    Screen screen;
    for (const char* lab : {"L2", "L3", "L4", "L5", "L6", "L11", "L12"}) {
        CAPTURE(lab);
        screen.gui.context.wanted_lab = {};
        screen.click(std::string("workbench.use.") + lab);
        CHECK_FALSE(screen.gui.context.wanted_lab.lab.empty());
        REQUIRE_FALSE(screen.gui.context.wanted_lab.fields.empty());
        CHECK(screen.gui.context.wanted_lab.fields.back().starts_with("file="));
    }
}

TEST_CASE("the Workbench: nothing leaves the stage at any size, and a narrow one has two parts") {
    for (const ImVec2 size : {ImVec2{860, 780}, ImVec2{968, 520}, ImVec2{600, 560}, ImVec2{1400, 1000}}) {
        CAPTURE(size.x);
        Screen screen(size);
        for (const char* set : {"fold=true", "fold=false", "compare=transformer-0", "columns=small"}) {
            screen.set(set);
            for (const char* name : {"workbench.progress", "workbench.row.0"}) {
                const Rect rect = screen.gui.rect(name);
                CHECK(rect.x0 >= screen.area.x0 - 8);
                CHECK(rect.x1 <= screen.area.x1 + 8);
            }
        }
        if (size.x > 640) continue;
        CHECK_FALSE(screen.shows("workbench.recipe.mxfp8"));
        screen.click("workbench.part.1");
        CHECK(screen.shows("workbench.recipe.mxfp8"));
    }
}
