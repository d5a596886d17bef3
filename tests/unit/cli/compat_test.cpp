// What earlier versions wrote still opens, and `check` says the same of it. tests/compat has a folder for
// each such version.
#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

namespace {

using nlohmann::json;

struct Corpus {
    std::string folder;
    std::size_t rows;      // of verdicts.csv
    std::size_t evidence;  // in its profile
    std::string predicted;
    std::vector<double> prediction;
    std::vector<double> tail_losses;  // of its checkpoint, trained on to step 8
    // Its `check` said "predicted, without a hint" of evidence that could not be read and of scenes,
    // of which nobody knows; and left out which exercise changed evidence claims to be of.
    bool early = false;
};

std::vector<Corpus> corpora() {
    const std::string all = FP8LAB_SOURCE "/tests/compat/";
    return {{.folder = all + "ba6ae7b",
             .rows = 29,
             .evidence = 7,
             .predicted = "L5.1",
             .prediction = {4},
             .tail_losses = {1.191344495, 1.216019190},
             .early = true},
            {.folder = all + "e919383",
             .rows = 189,
             .evidence = 13,
             .predicted = "L10.6",
             .prediction = {2},
             .tail_losses = {1.191344495, 1.216019190}}};
}

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

// The same words, and numbers as near as those of another CPU's matrix products in FP32 are.
bool alike(const std::string& a, const std::string& b) {
    constexpr double kNear = 1e-4;
    const char *x = a.c_str(), *y = b.c_str();
    while (*x && *y) {
        char *end_x = nullptr, *end_y = nullptr;
        const bool digit = std::isdigit(static_cast<unsigned char>(*x)) != 0;
        const double v = digit ? std::strtod(x, &end_x) : 0, w = digit ? std::strtod(y, &end_y) : 0;
        if (digit && end_y != y && std::abs(v - w) <= kNear * std::max(std::abs(v), std::abs(w))) {
            x = end_x, y = end_y;
            continue;
        }
        if (*x++ != *y++) return false;
    }
    return *x == *y;
}

}  // namespace

TEST_CASE("evidence, submissions and scenes of earlier versions get the verdicts that they gave") {
    for (const Corpus& corpus : corpora()) {
        CAPTURE(corpus.folder);
        const auto before = table_of(slurp(corpus.folder + "/verdicts.csv"));
        REQUIRE(before.size() == corpus.rows);
        const Finished run = fp8lab("check --csv - evidence grace.f8lab changed.f8lab profile/exercises", "",
                                    "env OLD=" + quoted(corpus.folder) +
                                        R"( sh -c 'cd "$OLD" && exec "$FP8LAB" "$@" scenes/*.f8scene' sh)");
        CHECK(run.code == 1);
        const auto now = table_of(run.out);
        REQUIRE(now.size() == before.size());
        for (std::size_t i = 0; i < before.size(); ++i)
            for (const auto& [column, value] : before[i]) {
                CAPTURE(before[i].at("path"));
                CAPTURE(column);
                const std::string& exercise = before[i].at("exercise");
                const bool known = !corpus.early || (!exercise.empty() && exercise != "scene") ||
                                   (column != "predicted" && column != "hints");
                if (corpus.early && column == "exercise" && value.empty()) continue;
                CHECK_MESSAGE(alike(now[i].at(column), known ? value : ""), now[i].at(column), " was ",
                              value);
            }
    }
}

TEST_CASE("a profile of an earlier version is handed in whole") {
    for (const Corpus& corpus : corpora()) {
        const Finished report = fp8lab("report --profile " + quoted(corpus.folder) + "/profile --bundle -");
        CHECK(report.code == 0);
        const json bundle = parsed(report.out);
        CHECK(bundle.at("evidence").size() == corpus.evidence);
        CHECK(bundle.at("predictions").at(corpus.predicted).at("values") == json(corpus.prediction));
    }
}

TEST_CASE("a checkpoint of an earlier version goes on") {
    for (const Corpus& corpus : corpora()) {
        const Finished run =
            fp8lab("train --resume " + quoted(corpus.folder) +
                   "/checkpoint --task noise --layers 3,4,2 --batch 4 --steps 8 --recipe bf16,delayed "
                   "--history 4 --json -");
        REQUIRE(run.code == 0);
        const json arms = parsed(run.out).at("arms");
        REQUIRE(arms.size() == corpus.tail_losses.size());
        for (std::size_t i = 0; i < arms.size(); ++i) {
            CHECK(arms[i].at("tail_loss").get<double>() ==
                  doctest::Approx(corpus.tail_losses[i]).epsilon(1e-4));
            CHECK(arms[i].at("steps") == 2);
        }
    }
}

TEST_CASE("a checkpoint of a transformer of an earlier version goes on") {
    const std::string checkpoint = corpora().back().folder + "/transformer";
    const Finished run = fp8lab(
        "train --backend cpu --model transformer --blocks 1 --d 16 --heads 1 --ffn 16 --context 8 --batch 2 "
        "--steps 5 --recipe mxfp8 --json - --resume " +
        quoted(checkpoint));
    REQUIRE(run.code == 0);
    const json arms = parsed(run.out).at("arms");
    REQUIRE(arms.size() == 1);
    CHECK(arms[0].at("tail_loss").get<double>() == doctest::Approx(4.009525890).epsilon(1e-4));
    CHECK(arms[0].at("steps") == 2);
}
