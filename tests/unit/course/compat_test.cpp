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

const std::filesystem::path kCompat = FP8LAB_SOURCE "/tests/compat";

struct Profile {
    const char* folder;
    std::vector<const char*> passed;
    const char* predicted;
    double prediction;
    int code;  // of L1, in the journal of a window that was killed
};

void check_profile(const Profile& profile) {
    CAPTURE(profile.folder);
    const Scratch home;
    std::filesystem::copy(kCompat / profile.folder / "profile", home.path / "profile",
                          std::filesystem::copy_options::recursive);
    const Progress progress{ProfileFolders(home.path / "profile")};
    CHECK(progress.problem().empty());
    for (const char* id : profile.passed) CHECK_MESSAGE(progress.passed(id) != nullptr, id);
    REQUIRE(progress.prediction(profile.predicted) != nullptr);
    CHECK(progress.prediction(profile.predicted)->values == std::vector<double>{profile.prediction});
    const auto left = Journal::left_behind(home.path / "profile/journal.jsonl");
    REQUIRE(left);
    CHECK(left->values.at("lab.bits").at("code") == profile.code);
}

}  // namespace

TEST_CASE("profiles of earlier versions are read whole") {
    check_profile({"ba6ae7b", {"L1.1", "L2.3", "L3.1", "L4.4", "L5.3", "L6.1", "L7.2"}, "L5.1", 4, 58});
    check_profile({"e919383",
                   {"L1.4", "L2.4", "L3.4", "L4.5", "L5.5", "L6.4", "L7.5", "L9.5", "L10.6", "L11.6", "L12.6",
                    "L14.5", "W.4"},
                   "L10.6",
                   2,
                   254});
}

TEST_CASE("lectures of earlier versions are held") {
    const Scratch home;
    const Deck deck = read_deck(kCompat / "ba6ae7b/scenes/my-lecture.f8deck");
    REQUIRE(deck.scenes.size() == 3);
    CHECK(deck.notices.size() == 1);  // a member of its author's own
    CHECK(deck.scenes[0].notes == "Say it slowly.");
    CHECK(deck.scenes[1].notes == "Ask first.");
    Lecture lecture(deck, home.path);
    lecture.go(1);
    CHECK(lecture.sentence() == "The largest is 448");

    const Deck labs = read_deck(kCompat / "e919383/scenes/lecture.f8deck");
    REQUIRE(labs.scenes.size() == 3);
    CHECK(labs.notices.empty());
    CHECK(labs.scenes[0].notes == "Say it slowly.");
    CHECK(labs.scenes[1].notes == "Ask first.");
    Lecture three(labs, home.path);
    for (std::size_t i = 0; i < 3; ++i) {
        three.go(i);
        CHECK_FALSE(three.sentence().empty());
    }
}
