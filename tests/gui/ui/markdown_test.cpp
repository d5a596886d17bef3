// Lesson text: what is a link, and what a press of one gives.
#include "labs/ui/markdown.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "core/files/files.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"
#include "tests/gui/gui.h"

using namespace fp8lab;
using test::Gui;

namespace {

// Draws a text and keeps the link that was pressed.
struct Page {
    std::string text, pressed = {};
    Gui::Draw draw = [this](ui::Context& c) {
        if (const std::string term = ui::markdown(c, text); !term.empty()) pressed = term;
    };
};

const ui::Probes::Item& link(const Gui& gui, const char* name) {
    const auto found = gui.context.probes.items.find(name);
    REQUIRE(found != gui.context.probes.items.end());
    return found->second;
}

}  // namespace

TEST_CASE("a click on a link gives its term, a click beside it nothing") {
    Gui gui;
    Page page{"The [largest value](amax) of a tensor sets its [`scale`](scale).\n\n- A [binade](binade)."};
    gui.frame(page.draw);
    CHECK(link(gui, "term.0").words == "amax");
    CHECK(link(gui, "term.1").words == "scale");
    CHECK(link(gui, "term.2").words == "binade");
    CHECK_FALSE(gui.context.probes.items.contains("term.3"));
    gui.click({link(gui, "term.0").rect.x0 - 8, gui.center("term.0").y}, page.draw);
    CHECK(page.pressed.empty());
    gui.click("term.0", page.draw);
    CHECK(page.pressed == "amax");
    gui.click("term.2", page.draw);
    CHECK(page.pressed == "binade");
}

TEST_CASE("the keyboard reaches a link") {
    Gui gui;
    Page page{"Either [gap](ulp) or [binade](binade)."};
    gui.frame(page.draw);
    gui.press_key(ui::Key::tab, page.draw);
    gui.press_key(ui::Key::tab, page.draw);
    gui.press_key(ui::Key::enter, page.draw);
    CHECK(page.pressed == "binade");
}

TEST_CASE("a link is not broken between its words, and stays in the column") {
    for (const std::string before : {"", "a b ", "words that fill ", "words that fill a line of it "}) {
        CAPTURE(before);
        Gui gui;
        Page page{before + "[stochastic\nrounding](stochastic-rounding), then more words"};
        gui.frame(page.draw);
        const ui::Probes::Item& item = link(gui, "term.0");
        CHECK(item.rect.height() < 30);
        CHECK(item.rect.width() > 60);
        CHECK(item.rect.x1 <= 24 + 312);
        CHECK_FALSE(gui.context.probes.items.contains("term.1"));
    }
}

TEST_CASE("no line breaks between a number and its %") {
    CHECK(ui::word_end("44 % of it") == 4);
    CHECK(ui::word_end("44 % of it", 5) == 7);
    CHECK(ui::word_end("of 44 %.") == 2);
    CHECK(ui::word_end("44 %.") == 5);
    CHECK(ui::word_end(" %") == 0);
    CHECK(ui::word_end("") == 0);
    CHECK(ui::word_end("a\n% b") == 1);
    Gui gui;
    gui.frame([](ui::Context& c) {
        const std::string_view text = "between 19 and 26 % off";
        for (float width = 60; width < 200; width += 1)
            for (const std::string_view line : ui::wrap_lines(c, text, kSans13, width)) {
                CAPTURE(width);
                CHECK_FALSE(line.starts_with("%"));
            }
    });
}

TEST_CASE("in every lesson punctuation stands at the word before it, a link or not") {
    for (const auto& entry : std::filesystem::directory_iterator(asset("text"))) {
        if (entry.path().extension() != ".md") continue;
        const std::string text = read_text(entry.path());
        for (const float scale : {1.0F, 1.25F, 2.0F}) {
            CAPTURE(entry.path().filename().string());
            CAPTURE(scale);
            Gui gui({360 * scale, 800 * scale}, Theme::light, scale);
            gui.frame([&](ui::Context& c) { ui::markdown(c, text); });
            const auto& words = gui.context.probes.texts;
            int found = 0;
            for (std::size_t i = 1; i < words.size(); ++i) {
                if (words[i].words.find_first_not_of(",.;:)?") != std::string::npos) continue;
                ++found;
                CAPTURE(words[i - 1].words + words[i].words);
                CHECK(std::fabs(words[i].rect.x0 - words[i - 1].rect.x1) <= 1.5F);
                CHECK(words[i].rect.x1 <= (24 + 312) * scale + 0.5F);
            }
            CHECK(found > 0);
        }
    }
}
