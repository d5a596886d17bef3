// Every scene that comes with the application, and what it says.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "labs/scene_run.h"
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

void check_lab(std::string_view number) {
    const Scratch scratch;
    int scenes = 0;
    for (const auto& path : shipped_scenes())
        if (path.filename().string().starts_with(number)) {
            check_scene(path, scratch);
            ++scenes;
        }
    CHECK(scenes >= 4);
}

}  // namespace

TEST_CASE("scenes of L1: each runs to its headline") { check_lab("L01"); }
TEST_CASE("scenes of L2: each runs to its headline") { check_lab("L02"); }
TEST_CASE("scenes of L3: each runs to its headline") { check_lab("L03"); }
TEST_CASE("scenes of L4: each runs to its headline") { check_lab("L04"); }
TEST_CASE("scenes of L5: each runs to its headline") { check_lab("L05"); }
TEST_CASE("scenes of L6: each runs to its headline") { check_lab("L06"); }
TEST_CASE("scenes of L7: each runs to its headline") { check_lab("L07"); }
TEST_CASE("scenes of L8: each runs to its headline") { check_lab("L08"); }

TEST_CASE("at least 30 scenes, each of the lab its name says; the decks find theirs") {
    CHECK(shipped_scenes().size() >= 30);
    std::set<std::string> titles;
    for (const auto& path : shipped_scenes()) {
        const Scene scene = read_scene(path);
        const int number = find_lab(scene.lab).make()->info().number;
        CHECK(path.filename().string().substr(0, 3) == (number < 10 ? "L0" : "L") + std::to_string(number));
        CHECK_MESSAGE(titles.insert(scene.title).second, scene.title);
    }
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
