// Each claim card's experiment, done: the verdict's numbers are the lab's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/lesson/claim.h"
#include "labs/course/claim_run.h"
#include "tests/json.h"
#include "tests/transformer_runs.h"

using namespace fp8lab;

namespace {

std::vector<FoundNumber> found_again(const Claim& claim) {
    const bool whole = std::ranges::find(claim.experiment, "run", &Event::name) != claim.experiment.end();
    if (!whole || find_lab(claim.lab).id != "transformer") return repeat_claim(claim);
    std::string missing;  // half a minute each: recorded
    const Trail trail = test::TransformerRuns().trail(Exercise{}, claim.experiment, missing);
    REQUIRE_MESSAGE(missing.empty(), "not recorded: " << missing);
    return numbers_of(claim, trail.now());
}

}  // namespace

TEST_CASE("every claim card: the experiment gives the numbers of its verdict") {
    const auto claims = load_claims();
    // All that the file holds, read by another reader, and none of the numbered labs without one.
    CHECK(claims.size() == parsed(read_text(FP8LAB_SOURCE "/assets/claims.json")).size());
    for (const LabEntry& entry : lab_registry()) {
        CAPTURE(std::string(entry.id));
        const auto is_of = [&](const Claim& claim) { return find_lab(claim.lab).id == entry.id; };
        if (entry.number > 0) CHECK(std::ranges::count_if(claims, is_of) > 0);
    }
    for (const Claim& claim : claims) {
        CAPTURE(claim.id);
        CHECK_FALSE(claim.findings.empty());
        for (const FoundNumber& number : found_again(claim)) {
            const Finding& finding = number.card;
            CAPTURE(finding.metric);
            CAPTURE(number.now);
            if (finding.tolerance == 0)
                CHECK(number.now == finding.value);
            else
                CHECK(number.now == doctest::Approx(finding.value).epsilon(finding.tolerance));
            CHECK(number.agrees());
        }
        CHECK(claim.verdict_text().find("{}") == std::string::npos);
    }
}

TEST_CASE("a claim that cannot be read says which") {
    CHECK_THROWS_WITH_AS(parse_claims("[{}]", "claims.json"), doctest::Contains("after 0 claims: "), Error);
    const std::string good =
        R"({"id": "a-1", "lab": "bits", "source": "s", "line": 1, "ruling": "wrong", "claim": "c", "experiment": [], )";
    CHECK(
        parse_claims("[" + good + R"("findings": [{"metric": "max", "value": 448}], "verdict": "{}!"}])", "x")
            .front()
            .verdict_text() == "448!");
    CHECK_THROWS_AS(parse_claims("[" + good + R"("findings": [], "verdict": "{}"}])", "x"), Error);
    const std::string whole = good + R"("findings": [], "verdict": "!"})";
    CHECK_THROWS_WITH_AS(parse_claims("[" + whole + "," + whole + "]", "x"),
                         "x: after 1 claims: 'a-1' is there twice", Error);
    for (const char* id : {"", "A-1", "a 1", "a_1"}) {
        CAPTURE(id);
        std::string other = whole;
        other.replace(other.find("a-1"), 3, id);
        CHECK_THROWS_WITH_AS(parse_claims("[" + other + "]", "x"), doctest::Contains("' is not an id"),
                             Error);
    }
}

TEST_CASE("the id of a claim card begins with its lab, and is not longer than a line has room for") {
    for (const Claim& claim : load_claims()) {
        CAPTURE(claim.id);
        CHECK(claim.id.starts_with(claim.lab + "-"));
        CHECK(claim.id.size() <= 48);
    }
}

TEST_CASE("a card whose ruling is open says what would decide it") {
    int open = 0;
    for (const Claim& claim : load_claims())
        if (claim.ruling == Ruling::open) {
            CAPTURE(claim.id);
            CHECK(claim.verdict.find("decide") != std::string::npos);
            ++open;
        }
    CHECK(open >= 3);
}

TEST_CASE("a number of a card agrees within the card's tolerance, and a missing one never does") {
    const auto agrees = [](double card, double tolerance, double now) {
        return FoundNumber{.card = {.metric = "m", .value = card, .tolerance = tolerance}, .now = now}
            .agrees();
    };
    CHECK(agrees(448, 0, 448));
    CHECK_FALSE(agrees(448, 0, 447));
    CHECK(agrees(31.5, 0.01, 31.8));
    CHECK_FALSE(agrees(31.5, 0.01, 32));
    CHECK_FALSE(agrees(31.5, 0.01, std::nan("")));
    CHECK_FALSE(agrees(0, 0.1, 0.001));
}
