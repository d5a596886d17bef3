// Each claim card's experiment, done: the verdict's numbers are the lab's.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/lesson/claim.h"
#include "tests/transformer_runs.h"

using namespace fp8lab;

namespace {

State state_after(const Claim& claim) {
    const bool whole = std::ranges::find(claim.experiment, "run", &Event::name) != claim.experiment.end();
    if (whole && find_lab(claim.lab).id == "transformer") {  // half a minute each: recorded
        std::string missing;
        const Trail trail = test::TransformerRuns().trail(Exercise{}, claim.experiment, missing);
        REQUIRE_MESSAGE(missing.empty(), "not recorded: " << missing);
        return trail.now();
    }
    const auto lab = find_lab(claim.lab).make();
    for (const Event& event : claim.experiment) carry_out(*lab, {&event, 1});
    return observe(*lab);
}

}  // namespace

TEST_CASE("every claim card: the experiment gives the numbers of its verdict") {
    const auto claims = load_claims();
    CHECK(claims.size() >= 6);
    for (const Claim& claim : claims) {
        CAPTURE(claim.source);
        CAPTURE(claim.line);
        const State state = state_after(claim);
        CHECK_FALSE(claim.findings.empty());
        for (const Finding& finding : claim.findings) {
            CAPTURE(finding.metric);
            const double found = state.number(finding.metric);
            if (finding.tolerance == 0)
                CHECK(found == finding.value);
            else
                CHECK(found == doctest::Approx(finding.value).epsilon(finding.tolerance));
        }
        CHECK(claim.verdict_text().find("{}") == std::string::npos);
    }
}

TEST_CASE("a claim that cannot be read says which") {
    CHECK_THROWS_WITH_AS(parse_claims("[{}]", "claims.json"), doctest::Contains("after 0 claims: "), Error);
    const std::string good =
        R"({"lab": "bits", "source": "s", "line": 1, "ruling": "wrong", "claim": "c", "experiment": [], )";
    CHECK(
        parse_claims("[" + good + R"("findings": [{"metric": "max", "value": 448}], "verdict": "{}!"}])", "x")
            .front()
            .verdict_text() == "448!");
    CHECK_THROWS_AS(parse_claims("[" + good + R"("findings": [], "verdict": "{}"}])", "x"), Error);
}
