// What earlier versions wrote still opens, and `check` says the same of it. tests/compat has a folder for
// each such version.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/folders.h"
#include "core/lesson/journal.h"
#include "core/lesson/progress.h"
#include "core/lesson/scene.h"
#include "labs/lecture.h"
#include "process.h"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::string kOld = FP8LAB_SOURCE "/tests/compat/ba6ae7b";

// The lines of a table that `check` wrote, by the names of its columns.
std::vector<std::map<std::string, std::string>> table_of(const std::string& text) {
    std::vector<std::vector<std::string>> lines(1, {""});
    bool quoted = false;
    for (const char c : text) {
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            lines.back().emplace_back();
        else if (c == '\n')
            lines.push_back({""});
        else
            lines.back().back() += c;
    }
    lines.pop_back();
    std::vector<std::map<std::string, std::string>> out;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        REQUIRE(lines[i].size() == lines[0].size());
        for (std::size_t k = 0; k < lines[i].size(); ++k) {
            if (k == 0) out.emplace_back();
            out.back()[lines[0][k]] = lines[i][k];
        }
    }
    return out;
}

}  // namespace

TEST_CASE("evidence, submissions and scenes of version 0.1.0 get the verdicts that it gave") {
    const auto before = table_of(slurp(kOld + "/verdicts.csv"));
    REQUIRE(before.size() == 29);
    const Finished run = fp8lab(
        "check --csv - evidence grace.f8lab changed.f8lab profile/exercises "
        "scenes/my-spike.f8scene scenes/my-training.f8scene scenes/own-tensor.f8scene",
        "", "sh -c 'cd " + kOld + " && exec \"$0\" \"$@\"' " FP8LAB_BINARY);
    CHECK(run.code == 1);
    const auto now = table_of(run.out);
    REQUIRE(now.size() == before.size());
    for (std::size_t i = 0; i < before.size(); ++i)
        for (const auto& [column, value] : before[i]) {
            CAPTURE(before[i].at("path"));
            CAPTURE(column);
            // Of evidence that could not be read nobody knows what was predicted.
            const bool known =
                !before[i].at("exercise").empty() || (column != "predicted" && column != "hints");
            CHECK(now[i].at(column) == (known ? value : ""));
        }
}

TEST_CASE("a profile of version 0.1.0 is read whole") {
    const Scratch home;
    fs::copy(kOld + "/profile", home.path / "profile", fs::copy_options::recursive);
    const fp8lab::Progress progress{fp8lab::ProfileFolders(home.path / "profile")};
    CHECK(progress.problem().empty());
    for (const char* id : {"L1.1", "L2.3", "L3.1", "L4.4", "L5.3", "L6.1", "L7.2"})
        CHECK_MESSAGE(progress.passed(id) != nullptr, id);
    REQUIRE(progress.prediction("L5.1") != nullptr);
    CHECK(progress.prediction("L5.1")->values == std::vector<double>{4});
    const auto left = fp8lab::Journal::left_behind(home.path / "profile/journal.jsonl");
    REQUIRE(left);
    CHECK(left->values.at("lab.bits").at("code") == 58);
    const Finished report = fp8lab("report --profile " + (home / "profile") + " --bundle -");
    CHECK(report.code == 0);
    CHECK(json::parse(report.out).at("evidence").size() == 7);
}

TEST_CASE("a lecture of version 0.1.0 is held") {
    const Scratch home;
    const fp8lab::Deck deck = fp8lab::read_deck(kOld + "/scenes/my-lecture.f8deck");
    REQUIRE(deck.scenes.size() == 3);
    CHECK(deck.notices.size() == 1);  // a member of its author's own
    CHECK(deck.scenes[0].notes == "Say it slowly.");
    CHECK(deck.scenes[1].notes == "Ask first.");
    fp8lab::Lecture lecture(deck, home.path);
    lecture.go(1);
    CHECK(lecture.sentence() == "The largest is 448");
}

TEST_CASE("a checkpoint of version 0.1.0 goes on") {
    const Finished run =
        fp8lab("train --resume " + kOld +
               "/checkpoint --task noise --layers 3,4,2 --batch 4 --steps 8 --recipe bf16,delayed "
               "--history 4 --json -");
    REQUIRE(run.code == 0);
    const json arms = json::parse(run.out).at("arms");
    REQUIRE(arms.size() == 2);
    CHECK(arms[0].at("tail_loss").get<double>() == doctest::Approx(1.191344495).epsilon(1e-4));
    CHECK(arms[1].at("tail_loss").get<double>() == doctest::Approx(1.216019190).epsilon(1e-4));
    for (const json& arm : arms) CHECK(arm.at("steps") == 2);
}
