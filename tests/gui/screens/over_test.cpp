// What lies over the window: keys, palette, sheet of keys, glossary, help, tour. All of it driven by
// keyboard.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/lesson/glossary.h"
#include "core/lesson/scene.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;

namespace {

struct Desk : test::ShellDesk {
    using ShellDesk::ShellDesk;
    void type(std::string_view text) {
        ui::feed_text(text);
        frame();
        frame();
    }
    std::string lab() { return shell.lab() == nullptr ? "" : std::string(shell.lab()->info().id); }
    std::string words(std::string_view probe) const {
        return gui.context.probes.items.find(probe)->second.words;
    }
    std::string ring() const { return gui.context.focus.visible ? gui.context.focus.name : ""; }
};

bool any_over(const Desk& desk) {
    for (const char* probe : {"palette", "keys", "glossary", "manual", "help", "tour"})
        if (desk.shows(probe)) return true;
    return false;
}

Settings toured() {
    Settings settings = test::explored();
    settings.toured = true;
    return settings;
}

}  // namespace

TEST_CASE(
    "Ctrl+K opens the palette, what is typed finds labs, exercises, terms and commands, Enter takes the "
    "first") {
    Desk desk{{1440, 900}, toured()};
    desk.key(ui::Key::k, true);
    REQUIRE(desk.shows("palette"));
    desk.type("delayed scaling");
    CHECK(desk.words("palette.rows.query") == "delayed scaling");
    desk.key(ui::Key::enter);
    CHECK_FALSE(desk.shows("palette"));
    CHECK(desk.lab() == "delayed");

    desk.key(ui::Key::k, true);
    desk.type("L1.2");
    desk.key(ui::Key::enter);
    CHECK(desk.lab() == "bits");
    CHECK(desk.shell.lab()->exercises()[1].id == "L1.2");

    desk.key(ui::Key::k, true);
    desk.type("other theme");
    desk.key(ui::Key::enter);
    CHECK(desk.gui.context.theme == Theme::light);
    desk.shell.open(Sheet::none);
    for (const auto& [word, theme] : {std::pair{"projector", Theme::projector}, {"dark", Theme::dark}}) {
        desk.key(ui::Key::k, true);
        desk.type(word);
        desk.key(ui::Key::enter);
        CHECK(desk.gui.context.theme == theme);
    }
    desk.key(ui::Key::k, true);
    desk.type("copy");
    desk.key(ui::Key::enter);
    CHECK(is_scene_line(ImGui::GetClipboardText()));

    desk.key(ui::Key::k, true);
    desk.type("swamping");
    desk.key(ui::Key::enter);
    REQUIRE(desk.shows("glossary"));
    CHECK(desk.words("glossary.term") == "swamping");
}

TEST_CASE("in the palette arrows move, Backspace deletes, a click takes a row, Escape changes nothing") {
    Desk desk{{1440, 900}, toured()};
    desk.key(ui::Key::k, true);
    desk.key(ui::Key::down);
    desk.key(ui::Key::down);
    desk.key(ui::Key::enter);
    CHECK(desk.lab() == "ruler");  // Home, L1, L2
    desk.key(ui::Key::k, true);
    desk.type("errorx");
    CHECK_FALSE(desk.shows("palette.rows.0"));
    desk.key(ui::Key::backspace);
    REQUIRE(desk.shows("palette.rows.0"));
    CHECK(desk.words("palette.rows.0").find("error") != std::string::npos);
    desk.click("palette.rows.0");
    CHECK(desk.lab() == "error");
    desk.key(ui::Key::k, true);
    desk.type("home");
    desk.key(ui::Key::escape);
    CHECK_FALSE(any_over(desk));
    CHECK(desk.lab() == "error");
}

TEST_CASE("rows that others offer are found too") {
    Desk desk{{1440, 900}, toured()};
    bool opened = false;
    desk.shell.offer([&] {
        return std::vector<Find>{{{.kind = "Scene", .title = "The spike"}, [&] { opened = true; }}};
    });
    desk.key(ui::Key::k, true);
    desk.type("the spike");
    desk.key(ui::Key::enter);
    CHECK(opened);
}

TEST_CASE("each command is done by its key") {
    Desk desk{{1440, 900}, toured()};
    desk.key(ui::Key::digit_1, true);
    CHECK(desk.lab() == "bits");
    desk.key(ui::Key::f3);
    CHECK(desk.shows("panel.Learn"));
    desk.key(ui::Key::f4);
    desk.key(ui::Key::f2);
    CHECK(desk.shows("bits.specials"));
    desk.key(ui::Key::b, true);
    CHECK_FALSE(desk.shows("panel.reset"));
    desk.key(ui::Key::b, true);
    CHECK(desk.shows("panel.reset"));
    desk.key(ui::Key::g, true);
    CHECK(desk.shows("glossary"));
    desk.key(ui::Key::g, true);
    CHECK_FALSE(desk.shows("glossary"));
    desk.type("?");
    CHECK(desk.shows("keys"));
    desk.type("??");  // held
    CHECK(desk.shows("keys"));
    desk.key(ui::Key::escape);
    CHECK_FALSE(desk.shows("keys"));
    desk.key(ui::Key::f1);
    CHECK(desk.shows("help"));
    desk.key(ui::Key::f1);
    CHECK_FALSE(desk.shows("help"));
    desk.key(ui::Key::digit_0, true);
    CHECK(desk.lab().empty());
}

TEST_CASE("a key that a lab says it has is one that it takes") {
    test::Gui gui;
    for (const LabEntry& entry : lab_registry()) {
        const auto lab = entry.make();
        for (const ViewKey& key : make_view(*lab)->keys()) {
            CAPTURE(std::string(key.keys));
            for (ui::Key code = key.first; code <= key.last; code = code + 1) {
                const auto fresh = entry.make();
                CHECK(make_view(*fresh)->key(gui.context, code));
            }
        }
    }
}

TEST_CASE("nothing that opens keeps the focus: Escape closes it, and the ring is where it was") {
    Desk desk{{1440, 900}, toured()};
    desk.shell.open("delayed");
    desk.frame();
    while (desk.ring() != "history") desk.key(ui::Key::tab);
    for (const ui::Key opens : {ui::Key::k, ui::Key::g}) {
        desk.key(opens, true);
        CHECK(any_over(desk));
        CHECK(desk.ring() != "history");
        desk.key(ui::Key::tab);
        desk.key(ui::Key::tab);
        desk.key(ui::Key::escape);
        CHECK_FALSE(any_over(desk));
        desk.frame();
        CHECK(desk.ring() == "history");
    }
    desk.type("?");
    desk.key(ui::Key::escape);
    CHECK_FALSE(any_over(desk));
    desk.key(ui::Key::f1);
    CHECK(any_over(desk));
    desk.key(ui::Key::escape);
    CHECK_FALSE(any_over(desk));
}

TEST_CASE("what lies under a sheet takes neither click nor key") {
    Desk desk{{1440, 900}, toured()};
    desk.shell.open("bits");
    desk.frame();
    const auto before = desk.shell.lab()->state();
    const Point bit = desk.gui.center("bits.bit7");
    desk.type("?");
    desk.key(ui::Key::digit_3);
    CHECK(desk.shell.lab()->state() == before);
    desk.gui.move(bit);  // beside the sheet or not: a click there is not the bit's
    desk.frame();
    desk.gui.mouse(true);
    desk.frame();
    desk.gui.mouse(false);
    desk.frame();
    CHECK(desk.shell.lab()->state() == before);
}

TEST_CASE("F1 tells of the control with the ring, follows Tab, presses nothing, and leads to the glossary") {
    Desk desk{{1440, 900}, toured()};
    desk.shell.open("delayed");
    desk.frame();
    while (desk.ring() != "history") desk.key(ui::Key::tab);
    const auto before = desk.shell.lab()->state();
    desk.key(ui::Key::f1);
    REQUIRE(desk.shows("help.card"));
    CHECK(desk.words("help.card") == "History");
    desk.key(ui::Key::right);  // the slider's, otherwise
    desk.key(ui::Key::tab);
    while (desk.ring() != "margin") desk.key(ui::Key::tab);
    CHECK(desk.words("help.card") == "Margin");
    CHECK(desk.shell.lab()->state() == before);
    desk.key(ui::Key::enter);
    REQUIRE(desk.shows("glossary"));
    CHECK(desk.words("glossary.term") == "margin");
    desk.key(ui::Key::escape);
    CHECK_FALSE(any_over(desk));
}

TEST_CASE("a term that a lesson links opens the glossary at that term") {
    Desk desk{{1440, 900}, toured()};
    desk.shell.open("bits");
    desk.shell.show(Tab::learn);
    desk.frame();
    desk.frame();
    REQUIRE(desk.shows("term.0"));
    const std::string term = desk.words("term.0");
    desk.click("term.0");
    REQUIRE(desk.shows("glossary"));
    CHECK(desk.words("glossary.term") == term);
    desk.key(ui::Key::escape);
    CHECK_FALSE(any_over(desk));
}

TEST_CASE("in help a click explains and does not press") {
    Desk desk{{1440, 900}, toured()};
    desk.shell.open("bits");
    desk.frame();
    const auto before = desk.shell.lab()->state();
    desk.key(ui::Key::f1);
    desk.click("bits.bit3");
    CHECK(desk.words("help.card") == "Bit");
    desk.click("panel.reset");
    CHECK(desk.words("help.card") == "Reset all");
    CHECK(desk.shell.lab()->state() == before);
}

TEST_CASE("help has something to say on every control of home and of every tab of every lab") {
    Settings settings = toured();
    settings.last_lab = "bits";
    Desk desk{{1440, 900}, settings};
    const auto check_all = [&] {
        desk.frame();
        std::set<std::string> seen;
        desk.key(ui::Key::tab);
        while (seen.insert(desk.ring()).second) {
            const std::string control = desk.ring();
            desk.shell.explain(control);
            desk.frame();
            CHECK_MESSAGE(desk.shows("help.card"), control);
            desk.key(ui::Key::escape);
            desk.gui.context.focus.wanted = control;
            desk.frame();
            desk.key(ui::Key::tab);
        }
        CHECK(seen.size() > 10);
    };
    check_all();
    for (const LabEntry& entry : lab_registry()) {
        CAPTURE(std::string(entry.id));
        desk.shell.open(entry.id);
        for (const Tab tab : {Tab::explore, Tab::learn, Tab::exercises}) {
            desk.shell.show(tab);
            check_all();
        }
    }
}

TEST_CASE("the tour of a first start is done by keyboard alone, each step by doing it") {
    Desk desk;
    REQUIRE(desk.ring() == "home.continue");
    desk.key(ui::Key::enter);
    CHECK(desk.lab() == "bits");
    REQUIRE(desk.shows("tour"));
    const std::string first = desk.words("tour");
    for (int i = 0; i < 5; ++i) desk.frame();
    CHECK(desk.words("tour") == first);  // nothing moves by itself
    desk.key(ui::Key::digit_3);
    const std::string second = desk.words("tour");
    CHECK(second != first);
    CHECK(desk.ring() == "bits.format0");
    desk.key(ui::Key::right);
    const std::string third = desk.words("tour");
    CHECK(third != second);
    desk.key(ui::Key::f1);
    CHECK(desk.shows("help.card"));
    desk.key(ui::Key::escape);
    desk.frame();
    REQUIRE(desk.shows("tour"));
    CHECK(desk.words("tour") != third);
    CHECK_FALSE(desk.shell.settings().toured);
    desk.key(ui::Key::f3);
    desk.frame();
    CHECK_FALSE(desk.shows("tour"));
    CHECK(desk.shell.settings().toured);
    CHECK(desk.shows("toast"));
    CHECK(desk.shell.settings().tabs.at("bits") == "learn");  // where a lab begins
}

TEST_CASE("Escape ends the tour, and the palette starts it again") {
    Desk desk;
    desk.shell.start_tour();
    desk.frame();
    REQUIRE(desk.shows("tour"));
    desk.key(ui::Key::escape);
    CHECK_FALSE(desk.shows("tour"));
    CHECK(desk.shell.settings().toured);
    CHECK(desk.lab() == "bits");
    desk.key(ui::Key::k, true);
    desk.type("take the tour");
    desk.key(ui::Key::enter);
    desk.frame();
    CHECK(desk.shows("tour"));
    desk.click("tour.end");
    CHECK_FALSE(desk.shows("tour"));
}

TEST_CASE("after the first start home does not ask for the tour again") {
    Desk desk{{1440, 900}, toured()};
    CHECK_FALSE(desk.shows("home.continue"));
}

TEST_CASE("every sheet is drawn whole in the smallest window, at every scale") {
    for (const float scale : {0.75F, 1.0F, 2.0F, 3.0F}) {
        for (const ImVec2 size : {ImVec2{1440, 900}, ImVec2{1024, 640}}) {
            Desk desk{size, toured()};
            desk.gui.context.scale = scale;
            ui::load_fonts(desk.gui.context);
            for (const char* what : {"palette", "keys", "glossary:delayed-scaling", "manual:why/delayed",
                                     "tour", "help:bits.map"}) {
                CAPTURE(what);
                CAPTURE(scale);
                desk.shell.open_by_name(what);
                desk.frame();
                desk.frame();
                CHECK(test::draw_data_fault() == "");
                for (const char* probe : {"palette", "keys", "glossary", "manual", "help.card", "tour"}) {
                    if (!desk.shows(probe)) continue;
                    const Rect box = desk.gui.rect(probe);
                    CHECK(box.x0 >= 0);
                    CHECK(box.x1 <= size.x);
                    CHECK((box.y0 >= 0 || box.height() > size.y));
                }
                desk.key(ui::Key::escape);
                desk.key(ui::Key::escape);
            }
        }
    }
}

TEST_CASE("keys.json gives commands other keys, and one that is broken changes nothing and says so") {
    const auto with = [](const char* text, auto&& check) {
        const Scratch folder;
        std::filesystem::create_directories(folder.path);
        std::ofstream(folder.path / "keys.json") << text;
        test::Gui gui{{1440, 900}};
        Shell shell{gui.context, toured(), {}, folder.path};
        const auto key = [&](ui::Key pressed, bool ctrl) {
            const auto frame = [&] {
                ImGui::NewFrame();
                shell.frame(-1);
                ImGui::Render();
            };
            test::tap(pressed, frame, ctrl);
        };
        check(gui, shell, key);
    };
    with(R"({"palette": ["Ctrl+J", "F8"], "theme": []})", [](auto& gui, auto&, auto&& key) {
        key(ui::Key::j, true);
        CHECK(gui.context.probes.items.contains("palette"));
        key(ui::Key::f8, false);
        CHECK_FALSE(gui.context.probes.items.contains("palette"));
        key(ui::Key::k, true);
        CHECK_FALSE(gui.context.probes.items.contains("palette"));
        key(ui::Key::t, true);
        CHECK(gui.context.theme == Theme::dark);
    });
    for (const char* broken : {"{", R"({"no such": "F8"})", R"({"palette": "Hyper K"})",
                               R"({"palette": "Ctrl G"})", R"({"palette": 3})"}) {
        CAPTURE(broken);
        with(broken, [](auto& gui, Shell& shell, auto&& key) {
            ImGui::NewFrame();
            shell.frame(-1);
            ImGui::Render();
            REQUIRE(gui.context.probes.items.contains("toast"));
            CHECK(gui.context.probes.items.at("toast").words == "Keys as they were");
            key(ui::Key::k, true);
            CHECK(gui.context.probes.items.contains("palette"));
        });
    }
}

TEST_CASE("what is wrong with keys.json is said with the file and the command, in words of ours") {
    const Scratch folder;
    const std::string file = folder / "keys.json";
    for (const auto& [text, named] : {std::pair<const char*, const char*>{"{", ""},
                                      {R"(["F8"])", ""},
                                      {"3", ""},
                                      {R"({"no such": "F8"})", "no such"},
                                      {R"({"palette": "Hyper K"})", "Hyper K"},
                                      {R"({"palette": "Ctrl G"})", "palette"},
                                      {R"({"palette": null})", "palette"},
                                      {R"({"palette": {"key": 1}})", "palette"},
                                      {R"({"palette": 3})", "palette"}}) {
        CAPTURE(text);
        std::ofstream(file) << text;
        std::vector<ShellCommand> commands = {
            {.id = "palette", .group = "", .label = "", .chords = {parse_chord("Ctrl K")}},
            {.id = "glossary", .group = "", .label = "", .chords = {parse_chord("Ctrl G")}}};
        std::string said;
        try {
            remap(commands, file);
        } catch (const Error& error) {
            said = error.what();
        }
        CAPTURE(said);
        CHECK(said.find("keys.json") != std::string::npos);
        CHECK(said.find(named) != std::string::npos);
        CHECK(said.find("exception") == std::string::npos);
        CHECK(said.find("std::") == std::string::npos);
        CHECK(commands[0].keys() == "Ctrl K");
    }
}

TEST_CASE("a chord is written as it is read") {
    for (const char* text :
         {"Ctrl K", "Ctrl Shift R", "F1", "?", "Ctrl +", "Ctrl -", "Alt Left", "Space", "H"})
        CHECK(to_string(parse_chord(text)) == text);
    CHECK(parse_chord("Ctrl+Shift+R") == parse_chord("Ctrl Shift R"));
    CHECK(parse_chord("Ctrl++") == parse_chord("Ctrl +"));
    CHECK_THROWS_AS(parse_chord(""), Error);
    CHECK_THROWS_AS(parse_chord("Ctrl Foo"), Error);
}

TEST_CASE("the heads of the tables have a term of the glossary, which a click opens") {
    const Glossary glossary = load_glossary();
    for (const auto& [lab, heads] : {std::pair{"train", 6}, {"ruler", 4}, {"error", 5}, {"blocks", 4}}) {
        CAPTURE(lab);
        Desk desk{{1920, 1080}, toured()};
        desk.shell.open(lab);
        desk.frame();
        desk.frame();
        std::vector<std::string> found;
        for (const auto& [name, item] : desk.gui.context.probes.items)
            if (name.starts_with("head.") && name.size() > 5) found.push_back(name);
        CHECK(static_cast<int>(found.size()) >= heads);
        for (const std::string& head : found) {
            CAPTURE(head);
            const Term* term = glossary.find(head.substr(5));
            REQUIRE(term != nullptr);
            desk.frame();
            desk.click(head);
            REQUIRE(desk.shows("glossary"));
            CHECK(desk.words("glossary.term") == term->id);
            desk.key(ui::Key::escape);
            desk.frame();
        }
    }
}
