// Lessons, terms and claim cards on the command line: what the window shows, for those who do not see it.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

json asset_json(const std::string& name) {
    return parsed(slurp(std::string(FP8LAB_SOURCE) + "/assets/" + name));
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// Assets whose card bits-e4m3-max-240 says 449.
void with_wrong_card(const Scratch& scratch) {
    std::filesystem::create_directory(scratch / "assets");
    for (const auto& entry : std::filesystem::directory_iterator(std::string(FP8LAB_SOURCE) + "/assets"))
        if (entry.path().filename() != "claims.json")
            std::filesystem::create_symlink(entry.path(), scratch.path / "assets" / entry.path().filename());
    json claims = asset_json("claims.json");
    claims.at(0).at("findings").at(0).at("value") = 449;
    spit(scratch / "assets/claims.json", claims.dump());
}

}  // namespace

TEST_CASE("list terms: a line for each term, and a term in full with why, source and what is related") {
    const json terms = asset_json("glossary.json").at("terms");
    const auto lines = lines_of(fp8lab("list terms").out);
    REQUIRE(lines.size() == terms.size());
    for (std::size_t i = 0; i < lines.size(); ++i)
        CHECK(lines[i].starts_with(terms[i].at("id").get<std::string>()));
    const Finished full = fp8lab("list terms amax e8m0");
    CHECK(full.code == 0);
    for (const json& term : terms) {
        const bool named = term.at("id") == "amax" || term.at("id") == "e8m0";
        CHECK((full.out.find(term.at("text").get<std::string>()) != std::string::npos) == named);
        if (named && term.contains("why"))
            CHECK(full.out.find(term.at("why").get<std::string>()) != std::string::npos);
    }
    CHECK(full.out.find("Related: scale, amax-history, outlier\n") != std::string::npos);
    const json all = parsed(fp8lab("list terms --json").out).at("terms");
    REQUIRE(all.size() == terms.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        for (const char* member : {"text", "related", "explains"})
            CHECK(all[i].at(member) == terms[i].at(member));
}

TEST_CASE("list lessons: one for each lab, and a lesson as text without links") {
    const auto lines = lines_of(fp8lab("list lessons").out);
    CHECK(lines.size() == lines_of(fp8lab("list labs").out).size());
    for (const std::string& line : lines) {
        const std::string id = line.substr(0, line.find(' '));
        CAPTURE(id);
        const std::string text = fp8lab("list lessons " + id).out,
                          markdown = slurp(std::string(FP8LAB_SOURCE) + "/assets/text/" + id + ".md");
        CHECK(text.starts_with("# "));
        CHECK(text.find("](") == std::string::npos);
        CHECK(std::ranges::count(text, '\n') == std::ranges::count(markdown, '\n'));
        CHECK(text.size() > markdown.size() * 3 / 4);
    }
    CHECK(fp8lab("list lessons L5").out == fp8lab("list lessons delayed").out);
    CHECK(fp8lab("list lessons L5").out.find("To know the amax of a tensor before the cast,") !=
          std::string::npos);
}

TEST_CASE("list claims: a line for each card with its id, and a card in full") {
    const json claims = asset_json("claims.json");
    const auto lines = lines_of(fp8lab("list claims").out);
    REQUIRE(lines.size() == claims.size());
    std::set<std::string> ids;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto id = claims[i].at("id").get<std::string>();
        CHECK(lines[i].starts_with(id + " "));
        CHECK(lines[i].find(claims[i].at("ruling").get<std::string>() + ": ") != std::string::npos);
        CHECK(ids.insert(id).second);
    }
    const std::string full = fp8lab("list claims bits-e4m3-max-240").out;
    for (const char* part : {"line 119\n", "Ruling: wrong\n", "E4M3 ends at 448.",
                             "Experiment: L1, format=e4m3\n", "fp8lab run --claim bits-e4m3-max-240\n"})
        CHECK(full.find(part) != std::string::npos);
    const json all = parsed(fp8lab("list claims --json").out).at("claims");
    REQUIRE(all.size() == claims.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(all[i].at("name") == claims[i].at("id"));
        CHECK(all[i].at("claim") == claims[i].at("claim"));
        CHECK(all[i].contains("line") == claims[i].contains("line"));
        CHECK(all[i].at("findings").size() == claims[i].at("findings").size());
    }
}

TEST_CASE("run --claim repeats a card's experiment and shows both numbers") {
    const Finished text = fp8lab("run --claim delayed-prevents-overflow");
    CHECK(text.code == 0);
    CHECK(text.err.empty());
    for (const char* part : {"\"Prevent overflow", "Ruling: wrong\n", "a.saturated_steps: card 11, now 11\n"})
        CHECK(text.out.find(part) != std::string::npos);
    const json out = parsed(fp8lab("run --claim window-pytorch-wraps --json").out);
    CHECK(out.at("id") == "window-pytorch-wraps");
    CHECK_FALSE(out.contains("line"));
    CHECK(out.at("findings").at(0).at("now") == 1);
    CHECK(out.at("findings").at(0).at("agrees") == true);
    CHECK(out.contains("provenance"));
}

TEST_CASE("run --claim ends with 1 and one sentence where a number of the card is not found again") {
    const Scratch scratch;
    with_wrong_card(scratch);
    const std::string starter = "FP8LAB_ASSETS=" + quoted(scratch / "assets") + " " + quoted(FP8LAB_BINARY);
    const Finished wrong = fp8lab("run --claim bits-e4m3-max-240", "", starter);
    CHECK(wrong.code == 1);
    CHECK(wrong.err == "fp8lab: bits-e4m3-max-240: 1 of 2 numbers of the card are not found again\n");
    CHECK(wrong.out.find("max: card 449, now 448  DIFFERS\n") != std::string::npos);
    CHECK(wrong.out.find("nan_codes: card 2, now 2\n") != std::string::npos);
    CHECK(fp8lab("run --claim bits-e3m2-range-60", "", starter).code == 0);
}
