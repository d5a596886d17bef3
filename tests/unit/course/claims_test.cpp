// Each claim card's experiment, done: the verdict's numbers are the lab's.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/lesson/claim.h"
#include "labs/course/exercise_run.h"

using namespace fp8lab;

TEST_CASE("every claim card: the experiment gives the numbers of its verdict") {
    const auto claims = load_claims();
    CHECK(claims.size() >= 6);
    for (const Claim& claim : claims) {
        CAPTURE(claim.source);
        CAPTURE(claim.line);
        const auto lab = find_lab(claim.lab).make();
        for (const Event& event : claim.experiment) carry_out(*lab, {&event, 1});
        const State state = observe(*lab);
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
