// Scenes on the desk: opened, held fast, saved, sent as text.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "app/shell/export/png.h"
#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "labs/course/scene_run.h"
#include "labs/four/model.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;

namespace {

Scene scene_with(const std::string& members) {
    return parse_scene(R"({"fp8lab_scene": 1, "lab": "window", "title": "T", )" + members + "}", "s.f8scene");
}

}  // namespace

TEST_CASE(
    "what a scene locks shows its value and does not move, what it hides is not there, Reset all lets go") {
    test::ShellDesk desk;
    desk.shell.open(scene_with(R"("state": {"margin": 3}, "locked": ["margin"], "hidden": ["format"])"));
    desk.gui.context.probes.items.clear();
    desk.frame();
    CHECK(desk.shows("margin.locked"));
    CHECK_FALSE(desk.shows("margin"));
    CHECK_FALSE(desk.shows("format"));
    desk.drag("window.handle", 60, 0);  // a control of the view's own
    CHECK(desk.shell.lab()->state()["margin"] == 3);
    desk.click("panel.reset");
    desk.gui.context.probes.items.clear();
    desk.frame();
    CHECK_FALSE(desk.shows("margin.locked"));
    CHECK(desk.shows("format"));
    desk.drag("window.handle", 60, 0);
    CHECK(desk.shell.lab()->state()["margin"] != 0);
}

TEST_CASE("a lab is saved as a scene by keys, asked about before it is replaced, and found again") {
    test::ShellDesk desk;
    desk.shell.open("delayed");
    set_field(desk.shell.lab()->fields(), "history=64");
    desk.frame();
    desk.key(ui::Key::s, true);
    CHECK(desk.shows("scene.save"));
    desk.click("scene.save");
    const auto folder = desk.scratch.path / "scenes";
    REQUIRE(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
    const Scene saved = read_scene(std::filesystem::directory_iterator(folder)->path());
    CHECK(saved.state == nlohmann::ordered_json{{"history", 64}});
    desk.gui.context.probes.items.clear();
    desk.frame();
    CHECK_FALSE(desk.shows("scene.save"));  // the sheet is gone
    set_field(desk.shell.lab()->fields(), "history=8");
    desk.frame();
    desk.key(ui::Key::s, true);
    desk.click("scene.save");
    CHECK(read_scene(saved.where).state["history"] == 64);  // not without a second press
    desk.click("scene.save");
    CHECK(read_scene(saved.where).state["history"] == 8);
    desk.shell.lab()->reset();
    desk.shell.open_file(saved.where);
    CHECK(desk.shell.lab()->state()["history"] == 8);
}

TEST_CASE(
    "the sheet of a scene by keys: Tab goes from the title to the notes and on to the vote, all of it is in "
    "the file") {
    test::ShellDesk desk;
    desk.shell.open("delayed");
    desk.frame();
    desk.key(ui::Key::s, true);
    const auto type = [&](std::string_view text) {
        for (int i = 0; i < 3; ++i) desk.frame();  // the field takes the keyboard
        ui::feed_text(text);
        desk.frame();
        desk.frame();
    };
    const auto kept = [&] { return desk.gui.context.probes.items.find("scene.kept")->second.words; };
    desk.click("scene.title");
    type(" one");
    CHECK(kept().ends_with("-one.f8scene"));  // while it is typed
    const std::string file = kept().substr(std::string("Kept as ").size());
    for (const char* text : {"Say it twice", "How many steps saturate?", "0; 4 ; 11"}) {
        desk.key(ui::Key::tab);
        type(text);
    }
    CHECK(kept() == "Kept as " + file);
    desk.key(ui::Key::tab);  // the right answer: no field, so Tab puts the ring there
    CHECK(desk.gui.context.focus.name == "scene.right");
    for (int i = 0; i < 3; ++i) desk.key(ui::Key::right);
    desk.key(ui::Key::tab);
    CHECK(desk.gui.context.focus.name == "scene.save");
    desk.key(ui::Key::enter);
    const Scene saved = read_scene(file);
    CHECK(saved.title.ends_with(" one"));
    CHECK(saved.notes == "Say it twice");
    REQUIRE(saved.predict.has_value());
    CHECK(saved.predict->question == "How many steps saturate?");
    CHECK(saved.predict->choices == std::vector<std::string>{"0", "4", "11"});
    CHECK(saved.predict->answer == 2);
}

TEST_CASE("a vote with one answer is not saved, and the sheet says what it needs") {
    test::ShellDesk desk;
    desk.shell.open("delayed");
    desk.frame();
    desk.key(ui::Key::s, true);
    desk.click("scene.question");
    for (int i = 0; i < 3; ++i) desk.frame();
    ui::feed_text("How many?");
    desk.frame();
    desk.key(ui::Key::enter);
    desk.click("scene.save");
    CHECK(desk.shows("scene.save"));
    CHECK(test::draw_data_fault() == "");
    CHECK_FALSE(std::filesystem::exists(desk.scratch.path / "scenes"));
}

TEST_CASE("a scene goes through the clipboard, what is no scene is said so and changes nothing") {
    test::ShellDesk desk;
    desk.shell.open("delayed");
    set_field(desk.shell.lab()->fields(), "margin=2");
    desk.frame();
    desk.key(ui::Key::s, true);
    desk.click("scene.copy");
    CHECK(is_scene_line(ImGui::GetClipboardText()));
    desk.shell.lab()->reset();
    desk.shell.open("bits");
    desk.frame();
    desk.key(ui::Key::v, true);
    REQUIRE(desk.shell.lab()->info().id == "delayed");
    CHECK(desk.shell.lab()->state()["margin"] == 2);
    ImGui::SetClipboardText("good morning");
    desk.key(ui::Key::v, true);
    CHECK(desk.shell.lab()->state()["margin"] == 2);
    desk.gui.context.probes.items.clear();
    desk.frame();
    CHECK(desk.shows("toast"));
}

TEST_CASE(
    "files dropped on the window: scenes open, decks are presented, tensors go to a lab that takes one") {
    test::ShellDesk desk;
    desk.shell.open_file(shipped_scenes().front());
    CHECK(desk.shell.lab()->info().id == "bits");
    const auto broken = desk.scratch.path / "broken.f8scene";
    write_file(broken, std::string_view("{\"fp8lab_scene\": 1,"));
    desk.shell.open_file(broken);
    CHECK(desk.shell.lab()->info().id == "bits");
    desk.shell.open("error");
    desk.shell.open_file("/nowhere/w.npy");
    CHECK(desk.shell.lab()->state()["file"] == "/nowhere/w.npy");  // the lab says what is wrong with it
    desk.shell.open("four");
    const auto picture = desk.scratch.path / "photo.png";
    const std::vector<std::uint8_t> grey(20 * 20 * 3, 51);
    write_file(picture, encode_png(20, 20, grey));
    desk.shell.open_file(picture);
    desk.frame();
    while (desk.shell.lab()->busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    desk.frame();
    CHECK(dynamic_cast<four::FourLab&>(*desk.shell.lab())->outcome->tensor[0].picture);
    desk.shell.open_file(shipped_decks().front());
    CHECK(desk.shell.presentation().active());
}

TEST_CASE("logs dropped on the window open the Workbench's tab of a run, whichever lab is open") {
    test::ShellDesk desk;
    desk.shell.open("bits");
    const std::vector<std::string> paths = {"/nowhere/a.jsonl", "/nowhere/b.jsonl"};
    desk.shell.open_files(paths);
    REQUIRE(desk.shell.lab()->info().id == "workbench");
    CHECK(desk.shell.lab()->state()["experiment"] == "run");
    CHECK(desk.shell.lab()->state()["run"] == "/nowhere/a.jsonl\n/nowhere/b.jsonl");
    CHECK(desk.shell.lab()->state()["file"] == "transformer-600");
    desk.shell.open("ruler");
    desk.shell.open_file("/nowhere/nvdlfw_inspect_globalrank-0.log");
    REQUIRE(desk.shell.lab()->info().id == "workbench");
    CHECK(desk.shell.lab()->state()["run"] == "/nowhere/nvdlfw_inspect_globalrank-0.log");
}

TEST_CASE("Ctrl O lists every shipped scene and deck") {
    test::ShellDesk desk;
    desk.key(ui::Key::o, true);
    CHECK(desk.shows("palette.rows.0"));
    desk.key(ui::Key::enter);
    CHECK((desk.shell.presentation().active() || desk.shell.lab() != nullptr));
}

TEST_CASE("a scene whose lab computes apart does not tell the numbers of before") {
    test::ShellDesk desk;
    const auto scenes = shipped_scenes();
    const auto path = std::ranges::find_if(
        scenes, [](const auto& file) { return file.filename().string().starts_with("L11-b"); });
    REQUIRE(path != scenes.end());
    desk.shell.open(read_scene(*path));
    desk.frame();
    const std::string told = desk.gui.context.probes.items.at("toast").words;
    CHECK(told.starts_with("Where the bits go"));
    CHECK(told.find("8.25") == std::string::npos);  // bits of the mix that the lab begins with
}

TEST_CASE(
    "a scene over one's own settings, and a file over another, come back with Ctrl Z, and the toast says "
    "so") {
    test::ShellDesk desk;
    const auto scenes = shipped_scenes();
    const auto path = std::ranges::find_if(scenes, [](const auto& p) {
        return !read_scene(p).locked.empty() && lab_of(read_scene(p)).id == "window";
    });
    const Scene scene = read_scene(path == scenes.end() ? scenes.front() : *path);
    desk.shell.open(lab_of(scene).id);
    desk.frame();
    Lab& lab = *desk.shell.lab();
    for (const Field& field : lab.fields())
        if (field.info.name == "seed") set_field(field, "77");
    desk.frame();
    const auto own = lab.state();
    desk.shell.open(scene);
    desk.frame();
    desk.frame();
    REQUIRE(lab.state() != own);
    REQUIRE(desk.shows("toast.undo"));
    desk.click("toast.undo");
    CHECK(lab.state() == own);
    CHECK_FALSE(desk.shows("toast"));

    desk.shell.open("ruler");
    desk.frame();
    const auto tensor = [&](const std::string& name) {
        const auto file = desk.scratch.path / name;
        write_file(file, to_npy(std::vector<float>{1, 2}, std::vector<std::size_t>{2}));
        return file;
    };
    const auto first = tensor("first.npy"), second = tensor("second.npy");
    const auto file = [&] { return field_text(*find_field(desk.shell.lab()->fields(), "file")); };
    desk.shell.open_file(first);
    desk.frame();
    CHECK_FALSE(desk.shows("toast.undo"));  // over nothing
    desk.shell.open_file(second);
    desk.frame();
    desk.frame();
    REQUIRE(file() == second.string());
    CHECK(desk.shows("toast.undo"));
    desk.key(ui::Key::z, true);
    CHECK(file() == first.string());
}

TEST_CASE("a scene of a lab that still computes says that it is open, and no number that is not there yet") {
    test::ShellDesk desk;
    desk.shell.open(read_scene(asset("scenes/W-b-zeros.f8scene")));
    desk.frame();
    REQUIRE(desk.shows("toast"));
    CHECK(desk.gui.context.probes.items.find("toast")->second.words == "Zeros without loss: Scene opened");
}
