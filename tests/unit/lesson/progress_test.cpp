#include "core/lesson/progress.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/json/checksum.h"
#include "tests/json.h"
#include "tests/scratch.h"

using namespace fp8lab;
namespace fs = std::filesystem;

namespace {

Evidence pass(const std::string& exercise, const std::string& words = "") {
    Evidence evidence;
    evidence.lab = "bits";
    evidence.exercise = exercise;
    evidence.explanation = words;
    return evidence;
}

// Something in the middle of the file is another thing.
void damage(const fs::path& file) {
    std::string text = read_text(file);
    text[text.size() / 2] ^= 1;
    std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("a damaged pass is replaced by the one before, with one sentence, and all others stay") {
    const Scratch home;
    {
        Progress progress(home.path);
        progress.keep(pass("L1.1", "first"));
        progress.keep(pass("L1.1", "second"));
        progress.keep(pass("L1.2"));
    }
    damage(home.path / "exercises/L1.1.json");
    const std::string broken = read_text(home.path / "exercises/L1.1.json");
    ProfileFolders reader{home.path};
    reader.access = Access::read_only;
    CHECK(Progress(reader).passed("L1.1")->explanation == "first");
    CHECK(read_text(home.path / "exercises/L1.1.json") == broken);  // a reader changes nothing
    const Progress progress(home.path);
    CHECK(progress.problem() ==
          "L1.1.json is damaged, so the one before is used; it is kept as L1.1.json.damaged");
    CHECK(progress.passed("L1.1")->explanation == "first");
    CHECK(progress.passed("L1.2") != nullptr);
    CHECK(read_text(home.path / "exercises/L1.1.json.damaged") == broken);
    CHECK(Progress(home.path).problem() == "");
    CHECK(Progress(home.path).passed("L1.1")->explanation == "first");
}

TEST_CASE("evidence that nests without end, or counts hints as no one does, is refused") {
    const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
    CHECK_THROWS_WITH_AS(parse_evidence(R"({"fp8lab_evidence": 1, "x": )" + deep + "}", "e"),
                         "e: nested deeper than 64", Error);
    for (const char* hints : {"1e300", "-1", "0.5", "18446744073709551615"}) {
        auto json = parse_with_checksum(evidence_text(pass("L1.1")), "");
        json["hints"] = parsed(hints);
        CHECK_THROWS_WITH_AS(parse_evidence(with_checksum(std::move(json), 1), "e"),
                             "e: 'hints' is not an integer from 0 to 1000", Error);
    }
}

TEST_CASE("damaged twice over, or without one before: said, set aside, and nothing else is lost") {
    const Scratch home;
    {
        Progress progress(home.path);
        progress.keep(pass("L1.1"));
        progress.keep("L1.1", {.skipped = false, .values = {3}, .at = "14:32"});
        progress.keep("L1.2", {.skipped = false, .values = {4}, .at = "14:33"});
        progress.keep(pass("L1.2"));
    }
    damage(home.path / "exercises/L1.1.json");
    damage(home.path / "exercises/predictions.json");
    damage(home.path / "exercises/predictions.json.bak");
    Progress progress(home.path);
    CHECK(progress.problem() == "L1.1.json is damaged; it is kept as L1.1.json.damaged; and 1 more in " +
                                    (home.path / "exercises").string());
    CHECK(progress.passed("L1.1") == nullptr);
    CHECK(progress.passed("L1.2") != nullptr);
    CHECK(progress.prediction("L1.2") == nullptr);
    CHECK(fs::exists(home.path / "exercises/predictions.json.damaged"));
    progress.keep(pass("L1.1"));
    damage(home.path / "exercises/L1.1.json");
    CHECK(Progress(home.path).problem().find("L1.1.json.damaged-2") != std::string::npos);
}

TEST_CASE("a file that is gone comes back from the one before") {
    const Scratch home;
    Progress progress(home.path);
    progress.keep(pass("L1.1", "first"));
    progress.keep(pass("L1.1", "second"));
    fs::remove(home.path / "exercises/L1.1.json");
    CHECK(Progress(home.path).problem() == "L1.1.json is missing, so the one before is used");
    CHECK(Progress(home.path).passed("L1.1")->explanation == "first");
    CHECK(Progress(home.path).problem() == "");
}

TEST_CASE("predictions of version 0.1, without a checksum, are read") {
    const Scratch home;
    fs::create_directories(home.path / "exercises");
    std::ofstream(home.path / "exercises/predictions.json")
        << R"({"L1.1": {"skipped": false, "values": [2.0], "at": "14:32"}})";
    const Progress progress(home.path);
    CHECK(progress.problem() == "");
    REQUIRE(progress.prediction("L1.1") != nullptr);
    CHECK(progress.prediction("L1.1")->values == std::vector{2.0});
}

TEST_CASE("what cannot be saved counts, is named, and is written once it can be") {
    const Scratch home;
    std::ofstream(home.path / "exercises") << "a file where the folder should be";
    Progress progress(home.path);
    CHECK_THROWS_AS(progress.keep(pass("L1.1")), Error);
    CHECK(progress.passed("L1.1") != nullptr);
    CHECK(progress.unsaved().contains("L1.1.json"));
    CHECK_FALSE(progress.retry());
    fs::remove(home.path / "exercises");
    CHECK(progress.retry());
    CHECK(progress.unsaved().empty());
    CHECK(Progress(home.path).passed("L1.1") != nullptr);
}

TEST_CASE("a profile that is only read keeps nothing, and says why") {
    const Scratch home;
    ProfileFolders folders{home.path};
    folders.access = Access::read_only;
    folders.why_read_only = "another window has this profile open";
    Progress progress(folders);
    CHECK_THROWS_WITH_AS(progress.keep(pass("L1.1")), "profile: another window has this profile open", Error);
    CHECK(progress.passed("L1.1") != nullptr);
    CHECK(progress.unsaved().empty());
    CHECK(fs::is_empty(home.path));
}
