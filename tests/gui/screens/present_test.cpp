// A lecture by keys, without a display: what the room sees after each.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "app/shell/present/notes.h"
#include "labs/ui/fonts.h"
#include "tests/all.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;

namespace {

struct Hall : test::ShellDesk {
    explicit Hall(const std::string& deck, ImVec2 size = {1920, 1080}) : ShellDesk(size) {
        set_field(shell_lab("delayed").fields(), "history=64");
        shell.present(read_deck(find_scene(deck)));
        settle();
    }
    Lab& shell_lab(std::string_view id) {
        shell.open(id);
        return *shell.lab();
    }
    void settle() {  // fonts of the new size, as the window's loop loads them
        for (int i = 0; i < 3; ++i) {
            if (shell.fonts_outdated()) {
                ui::load_fonts(gui.context);
                ImGui::GetIO().Fonts->SetTexID(nullptr);
            }
            gui.context.probes.items.clear();
            frame();
        }
    }
    void press(ui::Key pressed) {
        key(pressed);
        settle();
    }
    std::string words(const std::string& probe) {
        const auto& items = gui.context.probes.items;
        const auto it = items.find(probe);
        return it == items.end() ? "(not there)" : it->second.words;
    }
};

}  // namespace

TEST_CASE("delayed scaling in three keys: see, compare, next") {
    Hall hall("delayed-scaling");
    CHECK(hall.gui.context.theme == Theme::projector);
    CHECK(hall.gui.context.scale == 2);
    CHECK(hall.shows("present.vote.D"));
    CHECK_FALSE(hall.shows("present.figure"));  // nothing to be seen before the vote
    hall.press(ui::Key::right);
    CHECK_FALSE(hall.shows("present.figure"));  // there was no vote
    CHECK(hall.words("present.vote_hint") == "no vote yet");
    hall.press(ui::Key::right);
    CHECK(hall.words("present.sentence") == "The scale comes from earlier steps: 11 of 16 steps saturate");
    CHECK(hall.words("present.number.0") == "11");
    CHECK(hall.words("present.state") == "A");
    CHECK(hall.shows("present.figure"));
    hall.press(ui::Key::b);
    CHECK(hall.words("present.number.0") == "0");
    CHECK(hall.words("present.state") == "B");
    CHECK(hall.words("present.sentence").find("11 of 16") ==
          std::string::npos);  // no longer true, no longer said
    hall.press(ui::Key::right);
    CHECK(hall.words("present.sentence") ==
          "With the amax taken before the cast nothing saturates: 0 of 16 steps");
}

TEST_CASE("the room votes by digits and letters, the last vote can be taken back, the tally stays") {
    Hall hall("delayed-scaling");
    for (const ui::Key k : {ui::Key::digit_1, ui::Key::digit_3, ui::Key::c, ui::Key::d, ui::Key::c})
        hall.press(k);
    CHECK(hall.words("present.votes.A") == "1");
    CHECK(hall.words("present.votes.C") == "3");
    hall.press(ui::Key::backspace);
    CHECK(hall.words("present.votes.C") == "2");
    CHECK(hall.words("present.votes.D") == "1");
    CHECK_FALSE(hall.shows("present.room"));
    hall.press(ui::Key::enter);
    CHECK(hall.shows("present.room"));
    CHECK(hall.shell.presentation().lecture()->voters() == 4);
    hall.press(ui::Key::digit_1);  // too late
    CHECK(hall.shell.presentation().lecture()->voters() == 4);
    hall.press(ui::Key::right);
    hall.press(ui::Key::left);
    CHECK(hall.shell.presentation().lecture()->voters() == 4);
    CHECK_FALSE(hall.shell.presentation().lecture()->asking());
}

TEST_CASE("up and down move the scene's knob, frozen, the picture stays whatever is pressed") {
    Hall hall("L05-b-ramp-real");
    hall.press(ui::Key::enter);
    hall.press(ui::Key::up);
    CHECK(hall.words("present.number.0") == "0");  // a margin of 1
    hall.press(ui::Key::down);
    CHECK(hall.words("present.number.0") == "11");
    hall.press(ui::Key::f);
    CHECK(hall.words("present.state") == "frozen");
    hall.press(ui::Key::up);
    hall.press(ui::Key::b);
    CHECK(hall.words("present.number.0") == "11");
    hall.press(ui::Key::f);
    CHECK(hall.words("present.state") == "A");
    CHECK(hall.words("present.number.0") == "11");  // what was pressed meanwhile did nothing
}

TEST_CASE("a lab that cannot compute what was chosen says so in a lecture, and the lecture goes on") {
    Hall hall("delayed-scaling");
    hall.press(ui::Key::enter);
    Lab& lab = hall.shell.presentation().lecture()->lab();
    set_field(lab.fields(), "scenario=rows");  // of a file that was not named
    std::string said;
    for (int i = 0; i < 2000 && said.find("no file is named") == std::string::npos; ++i) {
        hall.frame();
        if (hall.shows("present.sentence")) said = hall.words("present.sentence");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(said.starts_with("This lab stopped. "));
    CHECK(said.find("no file is named") != std::string::npos);
    set_field(lab.fields(), "scenario=ramp");
    hall.press(ui::Key::escape);
    CHECK_FALSE(hall.shell.presentation().active());
}

TEST_CASE("after a lecture the desk is as it was left") {
    Hall hall("delayed-scaling");
    const float scale = 1;
    hall.press(ui::Key::enter);
    hall.press(ui::Key::up);
    hall.press(ui::Key::t);
    CHECK(hall.gui.context.theme == Theme::dark);
    hall.press(ui::Key::escape);
    CHECK_FALSE(hall.shell.presentation().active());
    CHECK(hall.gui.context.scale == scale);
    CHECK(hall.gui.context.theme == Theme::dark);
    CHECK(hall.shell.lab()->info().id == "delayed");
    CHECK(hall.shell.lab()->state()["history"] == 64);
    CHECK(hall.shell.lab()->state()["margin"] == 0);
    CHECK(hall.shows("panel.reset"));
}

TEST_CASE("a training of a lecture runs while it is seen, and pauses with Space") {
    Hall hall("L08-b-lies");
    Lecture& lecture = *hall.shell.presentation().lecture();
    hall.press(ui::Key::space);
    for (int i = 0; i < 20; ++i) hall.frame();
    lecture.lab().advance(10);
    hall.settle();
    CHECK(hall.words("present.number.0") != "-");
}

TEST_CASE("P poisons a batch in L8, and does nothing in another lab that trains") {
    for (const bool knows : {true, false}) {
        test::ShellDesk desk({1920, 1080});
        desk.shell.open(knows ? "train" : "transformer");
        Lab& lab = *desk.shell.lab();
        REQUIRE(lab.live());
        std::vector<std::string> actions;
        desk.frame();
        desk.key(ui::Key::f5);
        REQUIRE(desk.shell.presentation().active());
        lab.set_listener([&](std::string_view action) { actions.emplace_back(action); });
        desk.key(ui::Key::p);
        desk.frame();
        CHECK(actions == (knows ? std::vector<std::string>{"poison"} : std::vector<std::string>{}));
        lab.set_listener({});
    }
}

TEST_CASE("Esc leaves a lecture, F5 on home goes on with it: the same scene, the same votes") {
    Hall hall("delayed-scaling");
    hall.press(ui::Key::digit_2);
    hall.press(ui::Key::right);
    hall.press(ui::Key::right);
    const std::size_t at = hall.shell.presentation().lecture()->at();
    CHECK(at > 0);
    hall.press(ui::Key::escape);
    REQUIRE_FALSE(hall.shell.presentation().active());
    hall.key(ui::Key::digit_0, true);
    hall.press(ui::Key::f5);
    REQUIRE(hall.shell.presentation().active());
    CHECK(hall.shell.presentation().lecture()->at() == at);
    hall.press(ui::Key::home);
    CHECK(hall.shell.presentation().lecture()->voters() == 1);
}

TEST_CASE("F5 on home, where no lecture was, says what can be presented") {
    test::ShellDesk desk;
    desk.key(ui::Key::f5);
    CHECK_FALSE(desk.shell.presentation().active());
    desk.frame();
    CHECK(desk.shows("toast"));
}

TEST_CASE("? lists the keys of a lecture, and the next key closes the list and does nothing else") {
    Hall hall("delayed-scaling");
    CHECK(hall.words("present.keys") == "(not there)");
    ui::feed_text("?");
    hall.settle();
    CHECK(hall.words("present.keys") != "(not there)");
    CHECK(test::draw_data_fault() == "");
    hall.press(ui::Key::escape);
    CHECK(hall.shell.presentation().active());
    CHECK(hall.words("present.keys") == "(not there)");
}

TEST_CASE("F5 presents the lab on the desk as it stands, and what is moved there stays") {
    test::ShellDesk desk({1920, 1080});
    desk.shell.open("window");
    set_field(desk.shell.lab()->fields(), "margin=2");
    desk.frame();
    desk.key(ui::Key::f5);
    REQUIRE(desk.shell.presentation().active());
    CHECK(&desk.shell.presentation().lecture()->lab() == desk.shell.lab());
    desk.key(ui::Key::f5);
    CHECK_FALSE(desk.shell.presentation().active());
    CHECK(desk.shell.lab()->state()["margin"] == 2);
}

TEST_CASE("the presenter's notes: this scene, the next one, the votes, a clock") {
    Hall hall("delayed-scaling");
    hall.press(ui::Key::digit_3);
    hall.gui.raw_frame([&](ui::Context& c) {
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
        ImGui::Begin("notes", nullptr, ImGuiWindowFlags_NoDecoration);
        draw_notes(c, hall.shell.presentation(), {0, 0, 900, 640});
        ImGui::End();
    });
    CHECK(hall.words("notes.clock") == "0:00");
    hall.press(ui::Key::n);
    CHECK(hall.shell.presentation().wants_notes());
    hall.press(ui::Key::n);
    CHECK_FALSE(hall.shell.presentation().wants_notes());
}

TEST_CASE("a deck with times is walked by keys, and shows when each scene is planned") {
    Hall hall("is-fp8-for-us");
    Lecture& lecture = *hall.shell.presentation().lecture();
    const std::size_t scenes = lecture.deck().scenes.size();
    for (std::size_t i = 0; i < scenes; ++i) {
        CAPTURE(i);
        CHECK(lecture.at() == i);
        CHECK(hall.words("present.plan") == plan_text(lecture.deck(), i));
        const std::string& lab = lecture.scene().lab;  // whose numbers they are, where there is no GPU
        const bool recorded = lab == "speed" || lab == "memory";
        CHECK(hall.words("present.badge") == (recorded ? "RECORDED, H200" : "CPU EMULATED"));
        if (lecture.asking()) hall.press(ui::Key::enter);
        CHECK(hall.shows("present.figure"));
        hall.press(ui::Key::right);
    }
    CHECK(lecture.at() == scenes - 1);
    hall.shell.present(read_deck(find_scene("delayed-scaling")));
    hall.settle();
    CHECK_FALSE(hall.shows("present.plan"));
}

TEST_CASE("the notes of every scene of a deck with times fit above their foot") {
    for (const char* name : {"low-precision-90", "is-fp8-for-us"}) {
        Deck deck = read_deck(find_scene(name));
        for (Scene& scene : deck.scenes) scene.steps = 0;
        Hall hall("delayed-scaling");
        hall.shell.present(std::move(deck));
        hall.settle();
        Lecture& lecture = *hall.shell.presentation().lecture();
        for (std::size_t i = 0; i < lecture.deck().scenes.size(); ++i) {
            lecture.go(i);
            for (int seen = 0; seen < 2; ++seen, lecture.reveal()) {
                hall.gui.raw_frame([&](ui::Context& c) {
                    ImGui::SetNextWindowPos({0, 0});
                    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
                    ImGui::Begin("notes", nullptr, ImGuiWindowFlags_NoDecoration);
                    const float unit = c.scale;
                    draw_notes(c, hall.shell.presentation(), {0, 0, 900 * unit, 640 * unit});
                    ImGui::End();
                });
                CAPTURE(name);
                CAPTURE(lecture.scene().title);
                const auto& items = hall.gui.context.probes.items;
                CHECK(items.find("notes.text")->second.rect.y1 <= items.find("notes.foot")->second.rect.y0);
                CHECK(hall.words("notes.pace").find(i == 0 ? "on time" : "min early") != std::string::npos);
            }
        }
    }
}

TEST_CASE("every shipped scene can be shown at 1024x640 and at 3840x2160 with nothing off the screen") {
    for (const ImVec2 size : {ImVec2{1024, 640}, ImVec2{3840, 2160}}) {
        if (size.x > 1024 && !tests_all()) continue;
        Deck deck;
        deck.title = "all";
        for (const auto& path : shipped_scenes()) {
            Scene scene = read_scene(path);
            scene.steps = 0;
            deck.scenes.push_back(scene);
        }
        test::ShellDesk desk(size);
        desk.shell.present(deck);
        Lecture& lecture = *desk.shell.presentation().lecture();
        for (std::size_t i = 0; i < deck.scenes.size(); ++i) {
            lecture.go(i);
            lecture.reveal();
            for (int k = 0; k < 2; ++k) {
                if (desk.shell.fonts_outdated()) {
                    ui::load_fonts(desk.gui.context);
                    ImGui::GetIO().Fonts->SetTexID(nullptr);
                }
                desk.gui.context.probes.items.clear();
                desk.frame();
            }
            CAPTURE(deck.scenes[i].title);
            const auto& items = desk.gui.context.probes.items;
            REQUIRE(items.contains("present.figure"));
            const Rect figure = items.find("present.figure")->second.rect;
            const float unit = desk.gui.context.scale;
            CHECK(figure.height() > 120 * unit);
            CHECK(figure.width() > 300 * unit);
            for (const auto& [name, item] : items) {
                CAPTURE(name);
                CHECK(item.rect.x0 >= 0);
                CHECK(item.rect.y0 >= 0);
                CHECK(item.rect.x1 <= size.x + 1);
                CHECK(item.rect.y1 <= size.y + 1);
            }
        }
    }
}

TEST_CASE("Right ends a vote, without a vote it asks first, and a vote takes the question back") {
    Hall hall("delayed-scaling");
    Lecture& lecture = *hall.shell.presentation().lecture();
    for (const ui::Key key : {ui::Key::right, ui::Key::page_down}) {
        lecture.go(0);
        REQUIRE(lecture.asking());
        hall.press(key);
        CHECK(lecture.asking());
        CHECK(hall.words("present.vote_hint") == "no vote yet");
        hall.press(ui::Key::digit_2);
        CHECK(hall.words("present.vote_hint").empty());
        CHECK(lecture.voters() == 1);
        hall.press(ui::Key::backspace);
        hall.press(key);
        CHECK(lecture.asking());  // asked again
        hall.press(ui::Key::backspace);
    }
    hall.press(ui::Key::digit_2);
    hall.press(ui::Key::right);
    CHECK_FALSE(lecture.asking());
    CHECK(lecture.at() == 0);
    CHECK(hall.shows("present.room"));
}

TEST_CASE("a vote that comes when the figure is shown does not reach the lab") {
    test::ShellDesk desk({1920, 1080});
    Scene scene;
    scene.lab = "bits";
    scene.title = "A vote";
    scene.predict =
        Scene::Vote{.question = "Which?", .choices = {"one", "two", "three", "four"}, .answer = 0};
    Deck deck;
    deck.title = "Votes";
    deck.scenes = {scene};
    desk.shell.present(std::move(deck));
    const auto frames = [&] {
        for (int i = 0; i < 3; ++i) {
            if (desk.shell.fonts_outdated()) {
                ui::load_fonts(desk.gui.context);
                ImGui::GetIO().Fonts->SetTexID(nullptr);
            }
            desk.frame();
        }
    };
    frames();
    Lecture& lecture = *desk.shell.presentation().lecture();
    desk.key(ui::Key::digit_1);
    desk.key(ui::Key::enter);
    frames();
    REQUIRE_FALSE(lecture.asking());
    const auto state = lecture.lab().state();
    for (const ui::Key key :
         {ui::Key::digit_1, ui::Key::digit_2, ui::Key::digit_3, ui::Key::digit_4, ui::Key::a, ui::Key::b,
          ui::Key::c, ui::Key::d, ui::Key::backspace, ui::Key::enter})
        desk.key(key);
    CHECK(lecture.lab().state() == state);
    CHECK(lecture.voters() == 1);
    desk.key(ui::Key::digit_5);  // no vote: a key of the lab, as in every scene
    CHECK(lecture.lab().state() != state);
}

TEST_CASE("a lab that refuses its settings is presented with what it says, and no key ends the window") {
    test::ShellDesk desk({1920, 1080});
    desk.shell.open("lower");
    set_field(desk.shell.lab()->fields(), "file=no such file");
    set_field(desk.shell.lab()->fields(), "network=own");
    desk.shell.present();
    for (const ui::Key key : {ui::Key::up, ui::Key::down, ui::Key::b, ui::Key::right, ui::Key::end})
        CHECK_NOTHROW(desk.key(key));
    CHECK(desk.shell.presentation().active());
}
