// fp8lab check: what a teacher runs over a folder of evidence. evidence/ holds a pass of L1.1 as the window
// left it, and one forged without a flaw of form: a flip less, hashes and values to match.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"
#include "tests/scratch.h"

using nlohmann::json;

namespace {

const std::string kEvidence = FP8LAB_SOURCE "/tests/unit/cli/evidence";

}  // namespace

TEST_CASE("check accepts what was done") {
    const Finished run = fp8lab("check " + quoted(kEvidence) + "/L1.1.json");
    CHECK(run.code == 0);
    CHECK(run.out.starts_with("passed  L1.1"));
    CHECK(run.err.empty());
    const json result = parsed(fp8lab("check --json " + quoted(kEvidence) + "/L1.1.json").out);
    REQUIRE(result["results"].size() == 1);
    CHECK(result["results"][0]["how"] == "repeated");
    CHECK(result["results"][0]["predicted"] == true);
    CHECK(result["results"][0]["conditions"].size() == 2);
    CHECK(result.contains("version"));
}

TEST_CASE("check refuses a consistent forgery with fresh checksums, and says what is wrong with it") {
    const Finished run = fp8lab("check --csv - " + quoted(kEvidence));
    CHECK(run.code == 1);
    CHECK(run.err == "fp8lab: check: 1 of 2 did not pass\n");
    CHECK(run.out.starts_with("path,exercise,passed,how,predicted,hints,seed,at,problems,"));
    CHECK(run.out.find(",L1.1,1,repeated,1,1,") != std::string::npos);
    CHECK(run.out.find(",L1.1,0,repeated,1,1,") != std::string::npos);
    CHECK(run.out.find("value is 384, not 448") != std::string::npos);
    CHECK(run.out.find("not met: the largest finite number of E4M3") != std::string::npos);
}

TEST_CASE("check names a file that was changed, is no evidence, or is not there") {
    const Scratch home;
    std::string text = slurp(kEvidence + "/L1.1.json");
    text.replace(text.find("448"), 3, "449");
    const std::string file = home / "a.json";
    spit(file, text);
    const Finished changed = fp8lab("check " + file);
    CHECK(changed.code == 1);
    CHECK(changed.out.find("was changed: its checksum does not fit") != std::string::npos);
    spit(file, "{}");
    CHECK(fp8lab("check " + file).code == 4);
    CHECK(fp8lab("check " + home.path.string()).code == 4);
    CHECK(fp8lab("check " + file).err == "fp8lab: " + file + ": is no evidence of an exercise\n");
    CHECK(fp8lab("check " + (home / "absent.json")).code == 4);
    CHECK(fp8lab("check").code == 2);
}

TEST_CASE("list exercises gives every exercise, lab by lab") {
    const json list = parsed(fp8lab("list exercises --json").out)["exercises"];
    CHECK(list.size() >= 12);
    CHECK(list[0]["name"] == "L1.1");
}

TEST_CASE("check runs a scene to its headline, and refuses one whose number is another") {
    const std::string scene = FP8LAB_SOURCE "/assets/scenes/L05-b-ramp-real.f8scene";
    CHECK(fp8lab("check " + quoted(scene)).out.starts_with("passed  scene"));
    const json result = parsed(fp8lab("check --json " + quoted(scene)).out)["results"][0];
    CHECK(result["predicted"].is_null());  // a scene is no attempt and has no row in the totals
    CHECK(result["hints"].is_null());
    CHECK(fp8lab("check --totals - " + quoted(scene)).out ==
          "student,path,files,exercises,passed,failed,unreadable,predicted,hints,alike\n");
    const Scratch scratch;
    std::ifstream file(scene);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto at = text.find("\"value\": 11");
    REQUIRE(at != std::string::npos);
    text.replace(at, 11, "\"value\": 12");
    const auto wrong = scratch.path / "wrong.f8scene";
    std::ofstream(wrong) << text;
    const Finished run = fp8lab("check " + wrong.string() + " " + quoted(scene));
    CHECK(run.code == 1);
    CHECK(run.out.find("a.saturated_steps is 11, the scene says 12") != std::string::npos);
    CHECK(run.err == "fp8lab: check: 1 of 2 did not pass\n");
    std::ofstream(wrong) << "{";
    CHECK(fp8lab("check " + wrong.string()).code == 4);
}
