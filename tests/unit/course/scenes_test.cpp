// Every scene that comes with the application, and what it says.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/files/files.h"
#include "labs/course/lecture.h"
#include "labs/course/scene_run.h"
#include "labs/list.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

bool has_metric(const Lab& lab, const std::string& name) {
    return std::ranges::any_of(lab.metrics(), [&](const Metric& m) { return m.name == name; });
}

// What a presenter would see of the scene.
void check_scene(const std::filesystem::path& path, const Scratch& scratch) {
    CAPTURE(path.filename().string());
    const Scene scene = read_scene(path);
    CHECK(scene_text(scene) == read_text(path));
    CHECK(scene.notices.empty());
    REQUIRE(scene.headline);
    CHECK(!scene.notes.empty());
    const auto lab = run_scene(scene, scratch.path);
    CHECK(headline_problem(scene, *lab) == "");
    for (const Scene::Number& number : scene.numbers) {
        CAPTURE(number.metric);
        CHECK(has_metric(*lab, number.metric));
        CHECK(!number.label.empty());
    }
    const std::string sentence = sentence_text(scene, *lab);
    CHECK(!sentence.empty());
    CHECK_MESSAGE(sentence.find_first_of("{}") == std::string::npos, sentence);
    CHECK_MESSAGE(sentence.find(" - ") == std::string::npos, sentence);
    const auto figures = lab->figures();
    CHECK(std::ranges::any_of(figures, [&](const Figure& f) { return f.id == scene.figure; }));
    if (!scene.compare.is_null()) {
        const nlohmann::json before = lab->state();
        lab->restore(nlohmann::json(scene.compare));
        CHECK(lab->state() != before);
    }
}

void check_lab(std::string_view id) {
    const Scratch scratch;
    int scenes = 0;
    for (const auto& path : shipped_scenes())
        if (find_lab(read_scene(path).lab).id == id) {
            check_scene(path, scratch);
            ++scenes;
        }
    CHECK(scenes >= 4);
}

}  // namespace

// A test of its own for each lab of the list, so that they run at once.
#define FP8LAB_SCENES(lab) \
    TEST_CASE("scenes of " #lab ": each runs to its headline") { check_lab(lab::entry().id); }
FP8LAB_LABS(FP8LAB_SCENES)
#undef FP8LAB_SCENES

TEST_CASE("at least 30 scenes, each of the lab its name says, the decks find theirs") {
    const auto files = [](const char* extension) {
        return std::ranges::count_if(
            std::filesystem::directory_iterator(FP8LAB_SOURCE "/assets/scenes"),
            [&](const auto& entry) { return entry.path().extension() == extension; });
    };
    CHECK(std::ssize(shipped_scenes()) == files(".f8scene"));
    CHECK(shipped_scenes().size() >= 30);
    std::set<std::string> titles;
    for (const auto& path : shipped_scenes()) {
        const Scene scene = read_scene(path);
        const int number = find_lab(scene.lab).make()->info().number;
        const std::string mark = number == 0 ? "W" : (number < 10 ? "L0" : "L") + std::to_string(number);
        CHECK(path.filename().string().starts_with(mark + "-"));
        CHECK_MESSAGE(titles.insert(scene.title).second, scene.title);
    }
    CHECK(std::ssize(shipped_decks()) == files(".f8deck"));
    CHECK(shipped_decks().size() >= 3);
    for (const auto& path : shipped_decks()) CHECK(read_deck(path).scenes.size() >= 3);
}

TEST_CASE("a scene that does not fit its lab changes nothing") {
    const Scratch scratch;
    const auto lab = find_lab("window").make();
    set_field(lab->fields(), "margin=3");
    const auto before = lab->state();
    const auto refused = [&](const std::string& rest) -> std::string {
        const std::string text =
            "{\n\"fp8lab_scene\": 1,\n\"lab\": \"window\",\n\"title\": \"T\",\n" + rest + "}";
        try {
            apply_scene(*lab, parse_scene(text, "s"), scratch.path);
        } catch (const Error& error) {
            CHECK(lab->state() == before);
            return error.why();
        }
        return "";
    };
    CHECK(refused("\"state\": {\"margin\": 3, \"format\": \"e9m9\"}\n")
              .starts_with("line 5, column 34: unknown value 'e9m9'"));
    CHECK(refused("\"state\": {\"margin\": \"a\"}\n")
              .starts_with("line 5, column 21: expected an integer, got string"));
    CHECK(refused("\"state\": {\"margni\": 3}\n")
              .starts_with("line 5, column 21: unknown field 'margni'; valid:"));
    CHECK(refused("\"locked\": [\"nothing\"]\n").starts_with("line 5, column 12: unknown field 'nothing'"));
    CHECK(refused("\"knob\": \"nothing\"\n").starts_with("line 5, column 9: unknown field"));
    CHECK(
        refused("\"compare\": {\"margin\": 1000}\n").starts_with("line 5, column 23: 1000 is out of range"));
    CHECK_THROWS_WITH_AS(apply_scene(*lab, read_scene(shipped_scenes().front()), scratch.path),
                         doctest::Contains("is a scene of bits"), Error);
}

TEST_CASE("a scene that names a metric or a figure that the lab does not have is refused with its place") {
    const Scratch scratch;
    const auto refused = [&](const std::string& lab, const std::string& rest) -> std::string {
        const std::string text =
            "{\n\"fp8lab_scene\": 1,\n\"lab\": \"" + lab + "\",\n\"title\": \"T\",\n" + rest + "}";
        const Scene scene = parse_scene(text, "s.f8scene");
        std::string why;
        try {
            run_scene(scene, scratch.path);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            CHECK(error.where() == "s.f8scene");
            why = error.why();
        }
        Deck deck;
        deck.scenes.push_back(scene);
        if (why.empty())
            Lecture(deck, scratch.path);
        else
            CHECK_THROWS_WITH_AS(Lecture(deck, scratch.path), ("s.f8scene: " + why).c_str(), Error);
        return why;
    };
    const std::string listed = " in the states of this scene; \"fp8lab run delayed\" lists them";
    CHECK(refused("delayed", "\"numbers\": [{\"metric\": \"a.saturated\", \"label\": \"x\"}]\n") ==
          "line 5, column 24: the lab has no metric 'a.saturated'" + listed);
    CHECK(refused("delayed", "\"sentence\": \"{a.saturated_step} of {steps}\"\n") ==
          "line 5, column 13: the lab has no metric 'a.saturated_step'" + listed);
    CHECK(refused("delayed", "\"numbers\": [{\"metric\": \"steps\", \"label\": \"of {stesp}\"}]\n") ==
          "line 5, column 42: the lab has no metric 'stesp'" + listed);
    CHECK(refused("delayed", "\"headline\": {\"metric\": \"step\", \"value\": 1}\n").empty());  // a field
    CHECK(refused("delayed", "\"headline\": {\"metric\": \"a.steps\", \"value\": 1}\n") ==
          "line 5, column 24: the lab has no metric 'a.steps'" + listed);
    CHECK(refused("delayed", "\"figure\": \"time\"\n") ==
          "line 5, column 11: the lab has no figure 'time' in the states of this scene; valid: timeline "
          "casts sqnr");
    CHECK(refused("dleayed", "\"figure\": \"timeline\"\n")
              .starts_with("line 3, column 8: unknown lab 'dleayed'"));
    // What comes with a training only is known before it; what the other state has may be named.
    CHECK(refused("train",
                  "\"numbers\": [{\"metric\": \"underflow_pct_dy1\", \"label\": \"x\"}], \"state\": "
                  "{\"task\": \"spiral\"}, \"figure\": \"boundary-b\"\n")
              .empty());
    CHECK(refused("train", "\"figure\": \"boundary-b\"\n")
              .starts_with("line 5, column 11: the lab has no figure"));
    CHECK(refused("train", "\"sentence\": \"{underflow_pct_dy9}\"\n").find("no metric") != std::string::npos);
    CHECK(refused("delayed",
                  "\"sentence\": \"{a.spike_overflow_pct}\", \"compare\": {\"scenario\": \"spike\"}\n")
              .empty());
    CHECK(refused("delayed", "\"sentence\": \"{a.spike_overflow_pct}\"\n").find("no metric") !=
          std::string::npos);
    // What the lab has only where the knob was moved may be named too.
    CHECK(refused("delayed", "\"sentence\": \"{a.spike_overflow_pct}\", \"knob\": \"scenario\"\n").empty());
    CHECK(refused("delayed", "\"sentence\": \"{a.spike_overflow_pct}\", \"knob\": \"margin\"\n")
              .find("no metric") != std::string::npos);
}

TEST_CASE("every metric and figure of a training is among the names that it says it can have") {
    for (const char* task : {"teacher", "spiral"}) {
        const auto lab = find_lab("train").make();
        set_field(lab->fields(), std::string("task=") + task);
        set_field(lab->fields(), "steps=20");
        set_field(lab->fields(), "arm_c=unscaled");
        lab->update();
        const auto names = lab->metric_names(), ids = lab->figure_ids();
        lab->advance(20);
        lab->update();
        CHECK(lab->metrics().size() > 20);
        for (const Metric& metric : lab->metrics())
            CHECK_MESSAGE(std::ranges::find(names, metric.name) != names.end(), metric.name);
        for (const Figure& figure : lab->figures())
            CHECK_MESSAGE(std::ranges::find(ids, figure.id) != ids.end(), figure.id);
    }
}

namespace {

// The numbers under the sentence, as the hall reads them.
std::map<std::string, std::string> numbers_of(Lecture& lecture) {
    std::map<std::string, std::string> out;
    for (const Scene::Number& number : lecture.scene().numbers)
        out[filled_text(number.label, lecture.lab())] = number_text(lecture.lab(), number.metric);
    return out;
}

double scale_in(const std::map<std::string, std::string>& numbers, const std::string& label) {
    const auto found = numbers.find(label);
    REQUIRE_MESSAGE(found != numbers.end(), label);
    return std::stod(found->second);
}

}  // namespace

TEST_CASE("a number on the projector is what its label says, whatever key was pressed") {
    const Scratch scratch;
    Lecture end_of_e4m3(read_deck(find_scene("L01-b-max")), scratch.path);
    end_of_e4m3.reveal();
    CHECK(numbers_of(end_of_e4m3).at("this code, 0x7E") == "448");
    end_of_e4m3.compare();
    CHECK(numbers_of(end_of_e4m3).at("this code, 0x7F") == "nan");
    CHECK(numbers_of(end_of_e4m3).at("largest") == "448");
    end_of_e4m3.compare();
    end_of_e4m3.nudge(1);
    end_of_e4m3.nudge(1);
    end_of_e4m3.nudge(1);
    CHECK(numbers_of(end_of_e4m3).at("this code, 0x81") == "-0.001953125");
    CHECK(numbers_of(end_of_e4m3).at("largest") == "448");

    for (const char* name :
         {"L04-a-gauss-margin", "L04-b-outlier-1000", "L04-c-lognormal", "L04-e-seed-array"}) {
        CAPTURE(name);
        Lecture lecture(read_deck(find_scene(name)), scratch.path);
        lecture.reveal();
        const double amax = std::stod(number_text(lecture.lab(), "amax"));
        CHECK(scale_in(numbers_of(lecture), "scale = 448 / amax") ==
              doctest::Approx(448 / amax).epsilon(0.01));
        lecture.compare();
        const bool int8 = lecture.scene().compare.at("format") == "int8";
        const int margin = lecture.scene().compare.value("margin", 0);
        const std::string rule =
            std::string(int8 ? "127" : "57344") + " / amax" + (margin > 0 ? " / 2^6" : "");
        CHECK(scale_in(numbers_of(lecture), "scale = " + rule) ==
              doctest::Approx((int8 ? 127 : 57344) / amax / (1 << margin)).epsilon(0.01));
    }
    Lecture tie(read_deck(find_scene("L04-d-nan-464")), scratch.path);
    tie.reveal();
    CHECK(numbers_of(tie).contains("464 becomes"));
    tie.nudge(1);
    CHECK_FALSE(numbers_of(tie).contains("464 becomes"));
    Lecture binades(read_deck(find_scene("L02-b-binades")), scratch.path);
    binades.compare();
    CHECK(numbers_of(binades).contains("numbers from 256 to 512, E4M3"));
}

TEST_CASE("in no state of a shipped scene is a number missing, or left without a word") {
    const Scratch scratch;
    for (const auto& path : shipped_scenes()) {
        CAPTURE(path.filename().string());
        const Scene scene = read_scene(path);
        if (lab_of(scene).make()->live()) continue;  // its numbers come with the training
        Lecture lecture(read_deck(path), scratch.path);
        lecture.reveal();
        for (const int nudge : {0, 3, -6}) {
            lecture.nudge(nudge);
            for (const bool other : {false, true}) {
                if (other) lecture.compare();
                for (const auto& [label, number] : numbers_of(lecture)) {
                    CHECK_MESSAGE(number != "does not apply", label);
                    CHECK_MESSAGE(label.find("does not apply") == std::string::npos, label);
                }
                if (other) lecture.compare();
            }
        }
    }
    const auto lab = find_lab("delayed").make();
    CHECK(number_text(*lab, "a.spike_overflow_pct") == "does not apply");
    CHECK(number_text(*find_lab("train").make(), "loss_a") == "-");
}

TEST_CASE("fields of a newer schema are left out and named") {
    const Scratch scratch;
    const auto lab = find_lab("window").make();
    const auto notices = apply_scene(
        *lab,
        parse_scene(
            R"({"fp8lab_scene": 2, "lab": "window", "title": "T", "state": {"margin": 2, "curl": 1}})", "s"),
        scratch.path);
    REQUIRE(notices.size() == 2);
    CHECK(notices[1] == "Field 'curl' (line 1, column 83) is not known here and was left out.");
    CHECK(number_text(*lab, "margin") == "2");
}

TEST_CASE("a lab as it stands becomes a scene that brings it back") {
    const Scratch scratch;
    const auto lab = find_lab("delayed").make();
    set_field(lab->fields(), "scenario=spike");
    set_field(lab->fields(), "history=64");
    const Scene scene = scene_of(*lab, "Mine", "say it slowly");
    CHECK(scene.state.size() == 2);
    const auto again = find_lab("delayed").make();
    set_field(again->fields(), "margin=3");
    apply_scene(*again, scene_from_line(scene_line(scene)), scratch.path);
    CHECK(again->state() == lab->state());
}

TEST_CASE("a tensor in the scene itself is what the lab shows") {
    const Scratch scratch;
    const Scene scene = parse_scene(
        R"({"fp8lab_scene": 1, "lab": "error", "title": "T",
            "tensors": [{"field": "file", "shape": [4], "values": [1, 2, 448, -448]}]})",
        "s");
    const auto lab = run_scene(scene, scratch.path / "kept");
    CHECK(number_text(*lab, "amax") == "448");
    run_scene(scene, scratch.path / "kept");  // the same file
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.path / "kept"), {}) == 1);
}
