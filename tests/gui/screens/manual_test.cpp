// The manual over the window: how it opens, where its links lead, and nothing of it cut at any size.
#include "labs/course/manual.h"

#include <doctest/doctest.h>

#include "tests/gui/screens/shell_desk.h"
#include "tests/gui/screens/whole_desk.h"

using namespace fp8lab;

namespace {

struct Desk : test::ShellDesk {
    using ShellDesk::ShellDesk;
    void type(std::string_view text) {
        ui::feed_text(text);
        frame();
        frame();
    }
    std::string words(std::string_view probe) const {
        const auto found = gui.context.probes.items.find(probe);
        return found == gui.context.probes.items.end() ? "" : found->second.words;
    }
    std::string page() const { return words("manual.page"); }
    // Clicks the first link of the page that leads there.
    void follow(const std::string& link) {
        for (int i = 0;; ++i) {
            const std::string name = "term." + std::to_string(i);
            REQUIRE(shows(name));
            if (words(name) == link) return click(name);
        }
    }
};

Settings toured() {
    Settings settings = test::explored();
    settings.toured = true;
    return settings;
}

}  // namespace

TEST_CASE("F7 opens the manual anywhere, F3 and the button on home, and Escape closes it") {
    Desk desk{{1440, 900}, toured()};
    desk.key(ui::Key::f3);
    CHECK(desk.page() == "tutorial/hour");
    desk.key(ui::Key::escape);
    CHECK(desk.page().empty());
    desk.click("shell.manual");
    CHECK(desk.page() == "tutorial/hour");
    desk.key(ui::Key::f7);
    CHECK(desk.page().empty());
    desk.shell.open("bits");
    desk.frame();
    desk.key(ui::Key::f7);
    CHECK(desk.page() == "tutorial/hour");
    desk.key(ui::Key::escape);
    desk.key(ui::Key::f3);
    CHECK(desk.page().empty());  // in a lab its lesson
    CHECK(desk.shows("panel.Learn"));
}

TEST_CASE("the manual is searched by its words, and opens again at its page") {
    Desk desk{{1440, 900}, toured()};
    desk.key(ui::Key::f7);
    desk.key(ui::Key::down);
    desk.frame();
    CHECK(desk.page() == "tutorial/afternoon");
    desk.type("plan memory");
    CHECK(desk.page() == "how-to/memory");
    desk.key(ui::Key::escape);
    desk.key(ui::Key::f7);
    desk.frame();
    CHECK(desk.page() == "how-to/memory");
    desk.key(ui::Key::escape);
    desk.key(ui::Key::k, true);
    desk.type("read the run doctor");
    desk.key(ui::Key::enter);
    desk.frame();
    CHECK(desk.page() == "how-to/doctor");
}

TEST_CASE("links of the manual lead to a term, a page and a lab, and a press of commands copies them") {
    Desk desk{{1440, 1800}, toured()};
    desk.shell.open_by_name("manual:why/fp16");
    desk.frame();
    desk.frame();
    desk.follow("why/current");
    CHECK(desk.page() == "why/current");
    desk.click("commands.0");
    const std::string copied = ImGui::GetClipboardText();
    CHECK(copied.starts_with("fp8lab train --backend cpu --model transformer"));
    CHECK(copied.find("```") == std::string::npos);
    desk.follow("scale");
    CHECK(desk.words("glossary.term") == "scale");
    desk.shell.open_by_name("manual:why/current");
    desk.frame();
    desk.frame();
    desk.follow("lab:transformer");
    CHECK(desk.page().empty());
    REQUIRE(desk.shell.lab() != nullptr);
    CHECK(desk.shell.lab()->info().id == "transformer");
}

TEST_CASE("pages that others add to the manual are in it") {
    Desk desk{{1440, 900}, toured()};
    desk.shell.add_to_manual([] {
        return ManualPart{"verbs", "Verbs", "", {{"verbs/dance", "dance", "# dance\n\nNot a verb.\n"}}};
    });
    desk.key(ui::Key::f7);
    desk.type("dance");
    CHECK(desk.page() == "verbs/dance");
}

TEST_CASE("no page of the manual is cut at any size") {
    for (const test::Screen screen : test::tested_screens()) {
        CAPTURE(screen.size.x);
        CAPTURE(screen.scale);
        test::WholeDesk desk(screen);
        desk.draw();
        for (const ManualPart& part : manual()) {
            for (const ManualPage& page : part.pages) {
                CAPTURE(page.id);
                desk.shell.open_by_name("manual:" + page.id);
                desk.draw(2);
                REQUIRE(desk.gui.context.probes.items.contains("manual.page"));
                CHECK(test::Faults(desk.gui.context, "sheet.manual", "manual").all() == "");
            }
        }
    }
}
