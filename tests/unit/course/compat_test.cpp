// What earlier versions wrote still opens: profiles and lectures. tests/compat has a folder for each such
// version; verdicts and checkpoints are tested with the command line.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/files/folders.h"
#include "core/lesson/journal.h"
#include "core/lesson/progress.h"
#include "core/lesson/scene.h"
#include "labs/course/lecture.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

const std::filesystem::path kVersion010 = FP8LAB_SOURCE "/tests/compat/ba6ae7b";

}  // namespace

TEST_CASE("a profile of version 0.1.0 is read whole") {
    const Scratch home;
    std::filesystem::copy(kVersion010 / "profile", home.path / "profile",
                          std::filesystem::copy_options::recursive);
    const Progress progress{ProfileFolders(home.path / "profile")};
    CHECK(progress.problem().empty());
    for (const char* id : {"L1.1", "L2.3", "L3.1", "L4.4", "L5.3", "L6.1", "L7.2"})
        CHECK_MESSAGE(progress.passed(id) != nullptr, id);
    REQUIRE(progress.prediction("L5.1") != nullptr);
    CHECK(progress.prediction("L5.1")->values == std::vector<double>{4});
    const auto left = Journal::left_behind(home.path / "profile/journal.jsonl");
    REQUIRE(left);
    CHECK(left->values.at("lab.bits").at("code") == 58);
}

TEST_CASE("a lecture of version 0.1.0 is held") {
    const Scratch home;
    const Deck deck = read_deck(kVersion010 / "scenes/my-lecture.f8deck");
    REQUIRE(deck.scenes.size() == 3);
    CHECK(deck.notices.size() == 1);  // a member of its author's own
    CHECK(deck.scenes[0].notes == "Say it slowly.");
    CHECK(deck.scenes[1].notes == "Ask first.");
    Lecture lecture(deck, home.path);
    lecture.go(1);
    CHECK(lecture.sentence() == "The largest is 448");
}
