// What earlier versions wrote still opens, and `check` says the same of it. tests/compat has a folder for
// each such version.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

namespace {

using nlohmann::json;

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
        "", "env OLD=" + quoted(kOld) + R"( sh -c 'cd "$OLD" && exec "$FP8LAB" "$@"' sh)");
    CHECK(run.code == 1);
    const auto now = table_of(run.out);
    REQUIRE(now.size() == before.size());
    for (std::size_t i = 0; i < before.size(); ++i)
        for (const auto& [column, value] : before[i]) {
            CAPTURE(before[i].at("path"));
            CAPTURE(column);
            // Of evidence that could not be read nobody knows what was predicted, and a scene is nobody's
            // attempt. 0.1.0 said "predicted, without a hint" of both.
            const std::string& exercise = before[i].at("exercise");
            const bool known =
                (!exercise.empty() && exercise != "scene") || (column != "predicted" && column != "hints");
            // 0.1.0 left out which exercise changed evidence claims to be of.
            if (column == "exercise" && value.empty()) continue;
            CHECK(now[i].at(column) == (known ? value : ""));
        }
}

TEST_CASE("a profile of version 0.1.0 is handed in whole") {
    const Finished report = fp8lab("report --profile " + quoted(kOld) + "/profile --bundle -");
    CHECK(report.code == 0);
    const json bundle = parsed(report.out);
    CHECK(bundle.at("evidence").size() == 7);
    CHECK(bundle.at("predictions").at("L5.1").at("values") == json{4.0});
}

TEST_CASE("a checkpoint of version 0.1.0 goes on") {
    const Finished run =
        fp8lab("train --resume " + quoted(kOld) +
               "/checkpoint --task noise --layers 3,4,2 --batch 4 --steps 8 --recipe bf16,delayed "
               "--history 4 --json -");
    REQUIRE(run.code == 0);
    const json arms = parsed(run.out).at("arms");
    REQUIRE(arms.size() == 2);
    CHECK(arms[0].at("tail_loss").get<double>() == doctest::Approx(1.191344495).epsilon(1e-4));
    CHECK(arms[1].at("tail_loss").get<double>() == doctest::Approx(1.216019190).epsilon(1e-4));
    for (const json& arm : arms) CHECK(arm.at("steps") == 2);
}
