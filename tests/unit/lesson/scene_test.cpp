// Scenes and decks as files: what is read, kept, refused, and where it points.
#include "core/lesson/scene.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/base/error.h"
#include "core/files/files.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

const std::string kWhole = R"({
  "fp8lab_scene": 1,
  "lab": "delayed",
  "title": "The spike",
  "from the future": {"keep": [1, 2.5, null]},
  "state": {
    "scenario": "spike",
    "seed": 5
  },
  "locked": ["seed"],
  "predict": {"question": "How many?", "choices": ["2", "4"], "answer": 1},
  "numbers": [{"metric": "steps", "label": "steps"}],
  "headline": {"metric": "a.saturated_steps", "value": 11, "tolerance": 0}
}
)";

std::string why_not(const std::string& text) {
    try {
        parse_scene(text, "a.f8scene");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(error.where() == "a.f8scene");
        return error.why();
    }
    return "";
}

std::string with(std::string from, std::string to) {
    std::string text = kWhole;
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a scene is read whole, and what is not known of it is named and kept") {
    const Scene scene = parse_scene(kWhole, "a.f8scene");
    CHECK(scene.lab == "delayed");
    CHECK(scene.state["seed"] == 5);
    CHECK(scene.locked == std::vector<std::string>{"seed"});
    REQUIRE(scene.predict);
    CHECK(scene.predict->choices.size() == 2);
    CHECK(scene.predict->answer == 1);
    REQUIRE(scene.headline);
    CHECK(scene.headline->value == 11);
    REQUIRE(scene.notices.size() == 1);
    CHECK(scene.notices[0] ==
          "'from the future' (line 5, column 22) is not known here; it is kept, and does nothing.");
    const std::string text = scene_text(scene);
    CHECK(text.find(R"("from the future")") < text.find(R"("state")"));  // in its place
    CHECK(scene_text(parse_scene(text, "b")) == text);
}

TEST_CASE("a scene of a newer schema opens and says so") {
    const Scene scene = parse_scene(with(R"("fp8lab_scene": 1)", R"("fp8lab_scene": 7)"), "a.f8scene");
    REQUIRE(scene.notices.size() == 2);
    CHECK(scene.notices[0] == "a.f8scene is written for a newer version (schema 7, this one knows 1).");
    CHECK(scene.title == "The spike");
}

TEST_CASE("a refused scene is one sentence with line and column") {
    CHECK(why_not("{\n  \"fp8lab_scene\": 1,\n  oops\n}").starts_with("line 3, column 3"));
    CHECK(why_not("[1]") == "line 1, column 1: has no 'fp8lab_scene': not such a file");
    CHECK(why_not(with(R"("title": "The spike")", R"("title": 3)")) ==
          "line 4, column 12: expected a string, got number");
    CHECK(why_not(with(R"("title": "The spike",)", "")) == "line 1, column 1: 'title' is missing");
    CHECK(why_not(with(R"(["seed"])", R"(["seed", 4])")) ==
          "line 10, column 22: expected a string, got number");
    CHECK(why_not(with(R"(["2", "4"])", R"(["2"])")) == "line 11, column 51: has 1 entries; valid: 2 to 4");
    CHECK(why_not(with(R"("answer": 1)", R"("answer": 2)")) ==
          "line 11, column 73: expected an integer from 0 to 1, got 2");
    CHECK(why_not(with(R"("tolerance": 0)", R"("tolerance": 2)")).ends_with("is a share from 0 to 1"));
    CHECK(why_not(with(R"("lab": "delayed",)", R"("lab": "delayed", "lab": "bits",)")) ==
          "line 3, column 21: 'lab' stands here twice");
    CHECK(why_not(std::string(100, '[') + std::string(100, ']')).ends_with("nested deeper than 64"));
    CHECK(why_not("{\"a\": \"\xff\"}").find("UTF-8") != std::string::npos);
    CHECK(why_not(std::string((8u << 20) + 1, ' ')).find("such a file has at most 8.39 MB") !=
          std::string::npos);
    CHECK(why_not(with(R"("seed": 5)", R"("seed": 1e999)")) != "");
}

TEST_CASE("a tensor in a scene has as many values as its shape") {
    const auto tensors = [](const std::string& rest) {
        return with(R"("locked")", R"("tensors": [{"field": "file", )" + rest + R"(}], "locked")");
    };
    const Scene scene = parse_scene(tensors(R"("shape": [2, 2], "values": [1, 2.5, -3, 0])"), "a");
    REQUIRE(scene.tensors.size() == 1);
    CHECK(scene.tensors[0].values == std::vector<float>{1, 2.5F, -3, 0});
    CHECK(why_not(tensors(R"("shape": [2, 3], "values": [1, 2])")).ends_with("has 2 values, its shape 6"));
    CHECK(why_not(tensors(R"("shape": [2, 0], "values": [1, 2])")).find("expected an integer from 1") !=
          std::string::npos);
    CHECK(parse_scene(tensors(R"("path": "w.npy")"), "a").tensors[0].path == "w.npy");
}

TEST_CASE("a scene travels as one line of text") {
    const Scene scene = parse_scene(kWhole, "a.f8scene");
    const std::string line = scene_line(scene);
    CHECK(line.starts_with("f8scene:"));
    CHECK(line.find('\n') == std::string::npos);
    CHECK(scene_text(scene_from_line(line)) == scene_text(scene));
    std::string broken;  // as mail programs do
    for (std::size_t i = 0; i < line.size(); i += 60) broken += line.substr(i, 60) + "\r\n  ";
    CHECK(scene_text(scene_from_line("  " + broken)) == scene_text(scene));
    CHECK(!is_scene_line("f8scen"));
    CHECK_THROWS_WITH_AS(scene_from_line(line.substr(0, 101)), doctest::Contains("is cut off"), Error);
    CHECK_THROWS_WITH_AS(scene_from_line("f8scene:ab$d"), doctest::Contains("character 3 is not base64"),
                         Error);
    CHECK_THROWS_AS(scene_from_line("f8scene:"), Error);
}

TEST_CASE("a deck is its scenes, with notes of its own where it has some") {
    const Scratch scratch;
    write_file(scratch.path / "one.f8scene", std::string_view(kWhole));
    const std::string deck = R"({"fp8lab_deck": 1, "title": "T", "scenes": [
        {"scene": "one"}, {"scene": "one.f8scene", "notes": "slowly"}]})";
    const Deck read = parse_deck(deck, "d.f8deck", scratch.path);
    REQUIRE(read.scenes.size() == 2);
    CHECK(read.scenes[0].notes.empty());
    CHECK(read.scenes[1].notes == "slowly");
    CHECK_THROWS_WITH_AS(parse_deck(R"({"fp8lab_deck": 1, "title": "T", "scenes": [{"scene": "two"}]})",
                                    "d.f8deck", scratch.path),
                         doctest::Contains("does not exist"), Error);
    // Its own scenes first, then the shipped ones.
    const Deck mixed = parse_deck(R"({"fp8lab_deck": 1, "title": "T", "scenes": [
        {"scene": "L05-b-ramp-real"}, {"scene": "one"}, {"scene": "L01-b-max.f8scene"}]})",
                                  "d.f8deck", scratch.path);
    REQUIRE(mixed.scenes.size() == 3);
    CHECK(mixed.scenes[0].lab == "delayed");
    CHECK(mixed.scenes[2].lab == "bits");
    CHECK(mixed.scenes[2].folder == shipped_scenes().front().parent_path());
    write_file(scratch.path / "L01-b-max.f8scene", std::string_view(kWhole));
    const Deck own = parse_deck(R"({"fp8lab_deck": 1, "title": "T", "scenes": [{"scene": "L01-b-max"}]})",
                                "d.f8deck", scratch.path);
    CHECK(own.scenes[0].title == "The spike");
    std::filesystem::remove(scratch.path / "L01-b-max.f8scene");
    CHECK_THROWS_WITH_AS(
        parse_deck(R"({"fp8lab_deck": 1, "title": "T", "scenes": [{"scene": "../lecture-fp8"}]})", "d.f8deck",
                   scratch.path),
        doctest::Contains("neither in"), Error);
    const std::string long_name(300, 'a');  // no file can be called that
    CHECK_THROWS_WITH_AS(
        parse_deck(R"({"fp8lab_deck": 1, "title": "T", "scenes": [{"scene": ")" + long_name + "\"}]}",
                   "d.f8deck", scratch.path),
        doctest::Contains("does not exist"), Error);
    CHECK_THROWS_WITH_AS(
        parse_deck(R"({"fp8lab_deck": 1, "title": "T", "scenes": []})", "d.f8deck", scratch.path),
        doctest::Contains("line 1, column 44: has 0 entries"), Error);
    CHECK(read_deck(scratch.path).scenes.size() == 1);                    // a folder
    CHECK(read_deck(scratch.path / "one.f8scene").title == "The spike");  // a scene alone
}

TEST_CASE("a deck with times: each scene has its minutes, and they are the deck's") {
    const Scratch scratch;
    write_file(scratch.path / "one.f8scene", std::string_view(kWhole));
    const auto parsed = [&](const std::string& members, const std::string& scenes) {
        return parse_deck(
            "{\"fp8lab_deck\": 1, \"title\": \"T\"" + members + ", \"scenes\": [" + scenes + "]}", "d.f8deck",
            scratch.path);
    };
    const std::string two = R"({"scene": "one", "minutes": 2, "say": "S.", "ask": "A?", "do": "D."})",
                      five = R"({"scene": "one", "minutes": 5})", none = R"({"scene": "one", "say": "S."})";
    const Deck deck = parsed(R"(, "minutes": 7, "prepare": ["Run `fp8lab doctor`."])", two + "," + five);
    CHECK(deck.minutes == 7);
    CHECK(deck.prepare == std::vector<std::string>{"Run `fp8lab doctor`."});
    CHECK(deck.begins_at(0) == 0);
    CHECK(deck.begins_at(1) == 2);
    CHECK(deck.begins_at(2) == 7);
    const Cue& cue = deck.scenes[0].cue;
    CHECK(cue.minutes == 2);
    CHECK(cue.say == "S.");
    CHECK(cue.ask == "A?");
    CHECK(cue.act == "D.");
    CHECK(deck.scenes[1].cue.say.empty());
    const Deck untimed = parsed("", none);
    CHECK(untimed.minutes == 0);
    CHECK(untimed.scenes[0].cue.say == "S.");
    const auto refused = [&](const std::string& members, const std::string& scenes, const char* why) {
        CHECK_THROWS_WITH_AS(parsed(members, scenes), doctest::Contains(why), Error);
    };
    refused(R"(, "minutes": 8)", two + "," + five, "line 1, column 45: is 8, and the scenes take 7");
    refused(R"(, "minutes": 2)", two + "," + none, "has no 'minutes', and the deck has");
    refused("", two, "has 'minutes', and the deck has none");
    refused(R"(, "minutes": 0)", none, "column 45: expected an integer from 1 to 1440, got 0");
    refused(R"(, "minutes": "7")", two + "," + five, "expected an integer from 1 to 1440, got \"7\"");
    refused(R"(, "prepare": "doctor")", none, "line 1");
    refused("", R"({"scene": "one", "say": 3})", "line 1");
}

TEST_CASE("a scene that is a pipe, a device or too large is refused without waiting") {
    const Scratch scratch;
    const auto pipe = scratch.path / "pipe.f8scene", zero = scratch.path / "zero.f8scene",
               large = scratch.path / "large.f8scene", deck = scratch.path / "pipe.f8deck";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    REQUIRE(::mkfifo(deck.c_str(), 0600) == 0);
    std::filesystem::create_symlink("/dev/zero", zero);
    write_file(large, kWhole);
    std::filesystem::resize_file(large, kLargestScene + 1);
    CHECK_THROWS_WITH_AS(read_scene(pipe), doctest::Contains("is a pipe, not a file"), Error);
    CHECK_THROWS_WITH_AS(read_scene(zero), doctest::Contains("is a device, not a file"), Error);
    CHECK_THROWS_WITH_AS(read_scene(large), doctest::Contains("such a file has at most"), Error);
    CHECK_THROWS_WITH_AS(read_deck(deck), doctest::Contains("is a pipe, not a file"), Error);
    CHECK_THROWS_WITH_AS(read_deck(zero), doctest::Contains("is a device, not a file"), Error);
}
