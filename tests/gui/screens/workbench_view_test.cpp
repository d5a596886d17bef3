// The Workbench's view without a display: rows, heads, recipes and keys act on the model, at every size.
#include <doctest/doctest.h>

#include <array>
#include <filesystem>

#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "labs/workbench/view.h"
#include "tests/gui/screens/lab_screen.h"
#include "tests/scratch.h"
#include "tests/unit/verify/faulty_files.h"

using namespace fp8lab;
using namespace fp8lab::workbench;

namespace {

using Screen = test::LabScreen<WorkbenchLab, WorkbenchView>;

std::string selected_name(const Screen& screen) {
    return screen.lab->scanned().store->tensors()[*screen.lab->selected()].name;
}

}  // namespace

TEST_CASE("the Workbench: a press on a row selects its worst tensor, on a recipe shows it") {
    Screen screen;
    CHECK(screen.words("workbench.progress") == "150 of 150 scanned");
    CHECK(screen.lab->selected_row() == 0);
    screen.click("workbench.row.2");
    CHECK(selected_name(screen) == "dact.head");
    CHECK(screen.lab->selected_row() == 2);
    const std::string before = screen.words("workbench.where");
    screen.click("workbench.recipe.mxfp6-e2m3");
    CHECK(screen.lab->params.recipe == "mxfp6-e2m3");
    CHECK(screen.words("workbench.where") != before);
}

TEST_CASE("the Workbench: a press on a head sorts by it, and again turns the order") {
    Screen screen;
    screen.click("workbench.head.binades");
    CHECK(screen.lab->params.order == "binades");
    const double most = screen.lab->list.front().binades;
    CHECK(most == doctest::Approx(62.6).epsilon(0.001));
    screen.click("workbench.head.binades");
    CHECK(screen.lab->params.ascending);
    CHECK(screen.lab->list.back().binades == most);
    screen.click("workbench.head.nvfp4");
    CHECK(screen.lab->params.order == "nvfp4");
    CHECK_FALSE(screen.lab->params.ascending);
}

TEST_CASE("the Workbench: keys move through the rows, unfold a kind and fold it again") {
    Screen screen;
    const auto press = [&](ui::Key key) {
        const bool used = screen.view.key(screen.gui.context, key);
        screen.frame();
        return used;
    };
    CHECK(press(ui::Key::down));
    CHECK(screen.lab->selected_row() == 1);
    CHECK(press(ui::Key::page_down));
    CHECK(*screen.lab->selected_row() > 3);
    for (int i = 0; i < 20; ++i) press(ui::Key::page_up);
    CHECK(screen.lab->selected_row() == 0);
    const std::string kind = screen.lab->list[0].name;
    CHECK(press(ui::Key::enter));
    CHECK_FALSE(screen.lab->params.fold);
    CHECK(screen.lab->params.filter == kind);
    CHECK(screen.lab->list.size() == 4);
    CHECK(press(ui::Key::backspace));
    CHECK(screen.lab->params.fold);
    CHECK(screen.lab->list.size() > 20);
}

TEST_CASE("the Workbench: in the exercise the other recipes are covered") {
    Screen screen;
    screen.set("covered=true");
    CHECK(screen.shows("workbench.recipe.mxfp8"));
    CHECK(screen.lab->advice_title() == "Which recipe has the fewest bits?");
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

TEST_CASE("the Workbench: / filters by name, from the key and from the character") {
    Screen screen;
    for (const bool character : {false, true}) {
        screen.set("filter=");
        CHECK_FALSE(screen.shows("workbench.filter"));
        CHECK((character ? screen.view.character(screen.gui.context, '/')
                         : screen.view.key(screen.gui.context, ui::Key::slash)));
        screen.frame();
        screen.frame();
        REQUIRE(screen.shows("workbench.filter"));
        ui::feed_text("attention");
        screen.frame();
        test::tap(ui::Key::enter, [&] { screen.frame(); });
        CHECK(screen.lab->params.filter == "attention");
        screen.frame();
        CHECK(screen.lab->list.size() < 20);
        CHECK(screen.shows("workbench.filter"));  // what filters stays to be seen
    }
    CHECK_FALSE(screen.view.character(screen.gui.context, 'x'));
}

TEST_CASE("the Workbench: a file is opened from its folder, and the second one too") {
    const Scratch scratch;
    std::filesystem::create_directory(scratch.path / "models");
    for (const char* name : {"models/one.npy", "models/two.npy", "models/notes.txt", "models/.hidden.npy"})
        write_file(scratch.path / name, to_npy(std::vector<float>{1, 2}, std::vector<std::size_t>{2}));
    Screen screen;
    screen.set("file=" + (scratch / "models/one.npy"));
    screen.click("workbench.open.file");
    REQUIRE(screen.shows("workbench.name.2"));
    CHECK_FALSE(screen.shows("workbench.name.3"));  // .., one.npy, two.npy
    screen.click("workbench.name.2");
    screen.frame();
    CHECK(screen.lab->params.file == scratch / "models/two.npy");
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK_FALSE(screen.shows("workbench.path"));
    screen.click("workbench.open.compare");
    REQUIRE(screen.shows("workbench.path"));
    screen.click("workbench.path");
    for (int i = 0; i < 3; ++i) screen.frame();
    test::tap(
        ui::Key::a, [&] { screen.frame(); }, true);
    ui::feed_text(scratch / "models/one.npy");
    screen.frame();
    test::tap(ui::Key::enter, [&] { screen.frame(); });
    screen.frame();
    CHECK(screen.lab->params.compare == scratch / "models/one.npy");
}

TEST_CASE(
    "the Workbench: with a second file each row has its values before, and what is missing is at the end") {
    Screen screen;
    const float high = screen.gui.rect("workbench.row.0").height();
    screen.set("compare=transformer-0");
    CHECK(screen.gui.rect("workbench.row.0").height() > 1.4F * high);
    for (const TableRow& row : screen.lab->list) {
        const bool moments = row.name.starts_with("adam.");
        CHECK(row.before.change == (moments ? "new" : "same"));
        CHECK(row.before.underflow_pct.size() == (moments ? 0 : screen.lab->scanned().recipes.size()));
    }
}

TEST_CASE("the Workbench: a switch corrects what the selected tensor is") {
    Screen screen;
    screen.set("tensor=dact.head");
    screen.click("workbench.class.0");
    screen.frame();
    CHECK(screen.lab->row()->use == TensorUse::w);
    screen.click("workbench.class.2");
    screen.frame();
    CHECK(screen.lab->params.uses.empty());
}

TEST_CASE(
    "the Workbench: against an original a tensor says its fault above its histogram and in the status line") {
    const Scratch scratch;
    const faulty::Shape shape{.rows = 64, .cols = 128};
    const faulty::Values w = faulty::weights(1, shape);
    faulty::Case bad{.name = "", .original = w};
    faulty::Weight weight = faulty::cast("mxfp4", w, shape);
    faulty::swap_pairs(weight.codes);
    faulty::add(bad.file, "proj", weight);
    faulty::write_case(scratch.path, bad, shape);
    Screen screen;
    screen.set("file=" + (scratch / "model.safetensors"));
    CHECK_FALSE(screen.shows("compare_as.1"));
    screen.set("compare=" + (scratch / "original.safetensors"));
    CHECK(screen.lab->params.compare_as == "earlier");
    screen.click("compare_as.1");
    CHECK(screen.lab->params.compare_as == "original");
    CHECK(screen.words("workbench.fault").starts_with("Nibbles swapped: relative L2 "));
    const auto status = screen.view.status();
    CHECK(status.back().first == "against");
    CHECK(status.back().second.starts_with("nibbles swapped; relative L2 0.1"));
    screen.set("compare_as=earlier");
    CHECK_FALSE(screen.shows("workbench.fault"));
    CHECK(screen.view.status().back().first == "as");
}
