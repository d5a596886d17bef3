// Submissions at the command line: report makes them, check grades them.
#include <doctest/doctest.h>

#include <algorithm>

#include "process.h"

namespace {

// A profile with one pass, and what `report` makes of it.
struct HandedIn {
    HandedIn() {
        std::filesystem::create_directories(profile + "/exercises");
        spit(profile + "/exercises/L1.1.json", slurp(FP8LAB_SOURCE "/tests/unit/cli/evidence/L1.1.json"));
        const Finished run =
            fp8lab("report --profile " + profile + " --student Ada -o " + page + " --bundle " + bundle);
        CHECK(run.code == 0);
        CHECK(run.err.empty());
        CHECK(run.out.empty());
    }
    Scratch home;
    std::string profile = home / "profile", page = home / "r.html", bundle = home / "a.f8lab";
};

}  // namespace

TEST_CASE("report writes a page and a submission that check accepts") {
    const HandedIn ada;
    CHECK(slurp(ada.page).starts_with("<!DOCTYPE html>"));
    CHECK(slurp(ada.page).find("<h1 dir=\"auto\">Ada</h1>") != std::string::npos);
    const Finished run = fp8lab("check " + ada.bundle);
    CHECK(run.code == 0);
    CHECK(run.out == "passed  L1.1   Ada, " + ada.bundle + ", repeated\n");
    CHECK(fp8lab("report --profile " + ada.profile).err ==
          "fp8lab: report: nothing to write: name a file with -o or --bundle\n");
    CHECK(fp8lab("report --profile " + ada.profile).code == 2);
    CHECK(fp8lab("report -o " + ada.page).code == 4);  // a profile with nothing in it
    CHECK(fp8lab("report --profile " + ada.profile + " -o " + (ada.home / "no/where.html")).code == 1);
}

TEST_CASE("one submission that cannot be read is exit 4 with its place; among others it is a line") {
    const HandedIn ada;
    const std::string bad = ada.home / "b.f8lab";
    spit(bad, "{\n \"fp8lab_bundle\": oops");
    const Finished alone = fp8lab("check " + bad);
    CHECK(alone.code == 4);
    CHECK(alone.out.empty());
    CHECK(alone.err.starts_with("fp8lab: " + bad + ": "));
    CHECK(alone.err.find("line 2") != std::string::npos);
    for (const std::string& paths : {ada.bundle + " " + bad, ada.home.path.string() + "/*.f8lab"}) {
        const Finished both = fp8lab("check " + paths);
        CHECK(both.code == 1);
        CHECK(both.out.find("failed         " + bad) != std::string::npos);
        CHECK(both.out.find("passed  L1.1   Ada, ") != std::string::npos);
        CHECK(both.err == "fp8lab: check: 1 of 2 did not pass\n");
    }
}

TEST_CASE("a folder's submissions and loose evidence are graded together, one row each") {
    const HandedIn ada;
    const Finished run = fp8lab("check --csv - " + ada.home.path.string());
    CHECK(run.code == 0);
    CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 3);
    CHECK(run.out.find(",Ada,bits,") != std::string::npos);
    CHECK(run.out.find(",,bits,") != std::string::npos);
    CHECK(run.out.find("," + ada.bundle + "\n") != std::string::npos);  // the very same evidence
}

TEST_CASE("a changed submission fails as a whole") {
    const HandedIn ada;
    std::string text = slurp(ada.bundle);
    text.replace(text.find("\"Ada\""), 5, "\"Eve\"");
    spit(ada.bundle, text);
    const Finished run = fp8lab("check " + ada.bundle);
    CHECK(run.code == 1);
    CHECK(run.out.find("failed  L1.1   Eve, ") != std::string::npos);
    CHECK(run.out.find("the submission was changed: its checksum does not fit") != std::string::npos);
}
