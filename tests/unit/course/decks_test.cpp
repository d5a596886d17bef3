// The decks that come with the application, and how a lecture keeps its times.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/files/files.h"
#include "labs/course/deck_pages.h"
#include "labs/course/lecture.h"
#include "labs/course/scene_run.h"
#include "labs/set_fields.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

// The shipped decks that have times, by name.
std::map<std::string, Deck> timed_decks() {
    std::map<std::string, Deck> out;
    for (const auto& path : shipped_decks())
        if (Deck deck = read_deck(path); deck.minutes > 0) out.emplace(path.stem().string(), std::move(deck));
    return out;
}

bool is_sentence(const std::string& words) {
    return words.size() > 20 && words.size() <= 160 && (words.ends_with('.') || words.ends_with('?'));
}

Deck two_scenes() {
    Deck deck;
    deck.title = "Two";
    deck.minutes = 9;
    deck.scenes = {read_scene(find_scene("L01-b-max")), read_scene(find_scene("L09-d-amdahl"))};
    deck.scenes[0].cue.minutes = 5;
    deck.scenes[1].cue.minutes = 4;
    return deck;
}

}  // namespace

TEST_CASE(
    "lectures of 90 and of 20 minutes: every scene has a sentence to say, a question, and something to do") {
    const auto decks = timed_decks();
    REQUIRE(decks.contains("low-precision-90"));
    REQUIRE(decks.contains("is-fp8-for-us"));
    CHECK(decks.at("low-precision-90").minutes == 90);
    CHECK(decks.at("low-precision-90").title == "Low precision in 90 minutes");
    CHECK(decks.at("is-fp8-for-us").minutes == 20);
    for (const auto& [name, deck] : decks) {
        CAPTURE(name);
        CHECK(deck.notices.empty());
        CHECK(!deck.prepare.empty());
        CHECK(deck.begins_at(deck.scenes.size()) == deck.minutes);
        std::set<std::string> files;
        for (const Scene& scene : deck.scenes) {
            CAPTURE(scene.title);
            CHECK(files.insert(scene.where).second);  // no scene twice
            CHECK(is_sentence(scene.cue.say));
            CHECK(is_sentence(scene.cue.act));
            CHECK((scene.predict || scene.cue.ask.ends_with('?')));
            CHECK((scene.cue.minutes >= 2 && scene.cue.minutes <= 5));
        }
    }
}

TEST_CASE("the lecture of 90 minutes has a scene of every lab") {
    std::set<std::string_view> shown;
    const Deck deck = read_deck(find_scene("low-precision-90"));
    for (const Scene& scene : deck.scenes) shown.insert(lab_of(scene).id);
    for (const LabEntry& lab : lab_registry()) CHECK_MESSAGE(shown.contains(lab.id), lab.id);
}

TEST_CASE("what is to be done names keys that the scene has") {
    for (const auto& [name, deck] : timed_decks())
        for (const Scene& scene : deck.scenes) {
            CAPTURE(name);
            CAPTURE(scene.title);
            const std::string& act = scene.cue.act;
            const bool knob = act.find("Up ") != act.npos || act.find("Down ") != act.npos;
            CHECK((!knob || !scene.knob.empty()));
            const bool compares = act.starts_with("B ") || act.find(" B ") != act.npos;
            CHECK((!compares || !scene.compare.is_null()));
        }
}

TEST_CASE("a page of a deck says when each scene begins, what to say and do, and the right answer") {
    Deck deck = two_scenes();
    deck.prepare = {"Run `fp8lab doctor`."};
    deck.scenes[0].cue = {.minutes = 5, .say = "It ends at 448.", .ask = "And E5M2?", .act = "Press B."};
    const ManualPage page = lecture_page(deck, "two");
    CHECK(page.id == "lectures/two");
    CHECK(page.title == "Two");
    for (const char* words :
         {"# Two\n", "9 minutes, 2 scenes", "`fp8lab --present two`", "- Run `fp8lab doctor`.",
          "## 1\\. The end of E4M3\n", "minutes 0 to 5", "- **Say.** It ends at 448.", "- **Ask.** And E5M2?",
          "- **Do.** Press B.", "- **Vote.** ", "C: 448 (right)", "minutes 5 to 9", "- **Notes.** Ask first"})
        CHECK_MESSAGE(page.text.find(words) != std::string::npos, words);
    CHECK(page.text.find("{runs") == std::string::npos);
    const ManualPart part = lectures_part();
    CHECK(part.pages.size() == timed_decks().size());
    for (const ManualPage& each : part.pages) CHECK(each.text.find("{runs") == std::string::npos);
}

TEST_CASE("a lecture is on time, early or late by whole minutes of its plan") {
    const Deck deck = two_scenes();
    CHECK(plan_text(deck, 0) == "0 to 5 of 9 min");
    CHECK(plan_text(deck, 1) == "5 to 9 of 9 min");
    CHECK(pace_text(deck, 0, 0) == "on time");
    CHECK(pace_text(deck, 0, 359) == "on time");
    CHECK(pace_text(deck, 0, 361) == "1 min late");
    CHECK(pace_text(deck, 0, 600) == "5 min late");
    CHECK(pace_text(deck, 1, 0) == "5 min early");
    CHECK(pace_text(deck, 1, 239) == "1 min early");
    CHECK(pace_text(deck, 1, 241) == "on time");
    CHECK(plan_text(read_deck(find_scene("lecture-fp8")), 0).empty());
}

TEST_CASE("Up and Down move a knob that is a choice to the next one, and stay at its ends") {
    const Scratch scratch;
    Lecture lecture(two_scenes(), scratch.path);
    lecture.go(1);
    lecture.reveal();
    REQUIRE(lecture.scene().knob == "recipe");
    const auto now = [&] { return field_text(*find_field(lecture.lab().fields(), "recipe")); };
    const std::vector<Choice> choices = find_field(lecture.lab().fields(), "recipe")->choices;
    REQUIRE(choices.size() >= 3);
    const std::string first = now();
    CHECK(first == choices.front().id);
    lecture.nudge(-1);
    CHECK(now() == first);
    lecture.nudge(1);
    CHECK(now() == choices[1].id);
    CHECK_FALSE(lecture.as_told());
    lecture.nudge(-1);
    CHECK(lecture.as_told());
    for (std::size_t i = 0; i < choices.size() + 2; ++i) lecture.nudge(1);
    CHECK(now() == choices.back().id);
}
