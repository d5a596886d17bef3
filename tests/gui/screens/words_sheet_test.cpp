// The figures in words, and the themes, by keys and palette.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/figure/csv.h"
#include "core/figure/words.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;

namespace {

std::string& clipboard() {
    static std::string text;
    return text;
}

struct Desk : test::ShellDesk {
    using ShellDesk::ShellDesk;
    Desk() : ShellDesk({1440, 900}) {
        ImGui::GetIO().SetClipboardTextFn = [](void*, const char* text) { clipboard() = text; };
        clipboard().clear();
    }
    void type(std::string_view text) {
        ui::feed_text(text);
        frame();
        frame();
    }
    void find(std::string_view what) {
        key(ui::Key::k, true);
        type(what);
        key(ui::Key::enter);
    }
    // Until the lab has computed what its fields ask for; a result may lead to a further request.
    void wait() {
        const Lab& lab = *shell.lab();
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);
        for (int at_rest = 0; at_rest < 2; at_rest = lab.busy() && !lab.live() ? 0 : at_rest + 1) {
            REQUIRE(std::chrono::steady_clock::now() < give_up);
            frame();
        }
    }
    std::vector<std::string> first_words() {
        std::vector<std::string> words;
        for (const Figure& figure : shell.lab()->figures()) words.push_back(to_words(figure).front());
        return words;
    }
};

}  // namespace

TEST_CASE("F6 shows every figure of the lab in words, its buttons copy them") {
    Desk desk;
    desk.key(ui::Key::f6);
    CHECK_FALSE(desk.shows("words"));  // home has no figures
    for (const LabEntry& entry : lab_registry()) {
        CAPTURE(std::string(entry.id));
        desk.shell.open(entry.id);
        desk.frame();
        desk.key(ui::Key::f6);
        REQUIRE(desk.shows("words"));
        const auto figures = desk.shell.lab()->figures();
        REQUIRE_FALSE(figures.empty());
        for (const Figure& figure : figures) {
            CHECK_FALSE(to_words(figure).empty());
            CHECK(desk.shows("words.copy." + figure.id));
            CHECK(desk.shows("words.table." + figure.id));
        }
        desk.wait();
        desk.click("words.all");
        for (const std::string& words : desk.first_words())
            CHECK(clipboard().find(words) != std::string::npos);
        desk.key(ui::Key::f6);
        CHECK_FALSE(desk.shows("words"));
    }
}

TEST_CASE("an open sheet of words shows what a lab computes meanwhile, and a training as it was") {
    Desk desk;
    desk.shell.open("delayed");
    desk.wait();
    desk.key(ui::Key::f6);
    const std::vector<std::string> before = desk.first_words();
    set_field(desk.shell.lab()->fields(), "history=1");
    desk.wait();
    const std::vector<std::string> after = desk.first_words();
    REQUIRE(after != before);
    desk.click("words.all");
    for (const std::string& words : after) CHECK(clipboard().find(words) != std::string::npos);

    desk.shell.open("train");
    desk.key(ui::Key::f6);
    const std::vector<std::string> untrained = desk.first_words();
    desk.shell.lab()->act("step");
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (desk.first_words() == untrained && std::chrono::steady_clock::now() < give_up) desk.frame();
    REQUIRE(desk.first_words() != untrained);
    desk.click("words.all");
    for (const std::string& words : untrained) CHECK(clipboard().find(words) != std::string::npos);
}

TEST_CASE("by keyboard alone: Tab walks to the copy buttons and brings them into view, Enter presses") {
    Desk desk;
    desk.shell.open("delayed");
    desk.frame();
    desk.key(ui::Key::f6);
    const auto figures = desk.shell.lab()->figures();
    const std::string last = "words.table." + figures.back().id;
    for (int i = 0; i < 40 && desk.gui.context.focus.name != last; ++i) {
        desk.key(ui::Key::tab);
        desk.frame();
    }
    REQUIRE(desk.gui.context.focus.name == last);
    const auto& item = desk.gui.context.probes.items.find(last)->second;
    CHECK(item.rect.y0 >= item.clip.y0);
    CHECK(item.rect.y1 <= item.clip.y1);
    desk.key(ui::Key::enter);
    CHECK(clipboard() == to_csv(figures.back()));
    desk.key(ui::Key::escape);
    CHECK_FALSE(desk.shows("words"));
}

TEST_CASE("each theme is chosen by its name and kept, Ctrl+T goes on between light and dark") {
    Desk desk;
    for (const auto& [words, theme] : {std::pair{"theme projector", Theme::projector},
                                       {"high contrast", Theme::contrast},
                                       {"theme light", Theme::light},
                                       {"theme dark", Theme::dark},
                                       {"theme contrast", Theme::contrast}}) {
        desk.find(words);
        CHECK(desk.gui.context.theme == theme);
        CHECK(desk.shell.settings().theme == theme);
    }
    desk.key(ui::Key::t, true);
    CHECK(desk.gui.context.theme == Theme::light);
    desk.key(ui::Key::t, true);
    CHECK(desk.gui.context.theme == Theme::dark);
}

TEST_CASE("the scale is live in quarters from 0.75 to 3") {
    Desk desk;
    for (int i = 0; i < 12; ++i) desk.key(ui::Key::equal, true);
    CHECK(desk.gui.context.scale == 3.0F);
    for (int i = 0; i < 12; ++i) desk.key(ui::Key::minus, true);
    CHECK(desk.gui.context.scale == 0.75F);
    CHECK(desk.shell.settings().scale == 0.75F);
}
