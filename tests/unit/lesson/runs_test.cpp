// Numbers of ten trainings: what is computed of them, how texts name them, and that the document says the same.
#include "core/lesson/runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/files/files.h"

using namespace fp8lab;

namespace {

constexpr const char* kHead = "# made\nrun,recipe,quantity,1,2,3,4,5,6,7,8,9,10,11\n";
const std::string kHalves = "L8,delayed,gap_pct,.5,1,1.5,2,2.5,3,3.5,4,4.5,5,99\n";

Runs runs_of(const std::string& rows) { return {kHead + rows, "runs.csv"}; }

// The cells of a Markdown table's row; empty: no row.
std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> out;
    static const std::regex kCell(R"(\| ([^|]*) (?=\|))");
    for (std::sregex_iterator at(line.begin(), line.end(), kCell), end; at != end; ++at) {
        std::string cell = (*at)[1];
        std::erase(cell, '`');
        out.push_back(cell);
    }
    return out;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

std::string document() { return read_text(std::string(FP8LAB_SOURCE) + "/assets/docs/runs.md"); }

}  // namespace

TEST_CASE("runs: mean, standard deviation and prediction interval of the first ten seeds") {
    // numpy: mean 2.75, std(ddof=1) 1.5138252, scipy.stats.t.ppf(0.975, 9) 2.2622; times sqrt(1.1): 3.5917.
    const Spread s = spread_of(runs_of(kHalves).rows().begin()->second);
    CHECK(s.mean == doctest::Approx(2.75));
    CHECK(s.sd == doctest::Approx(1.5138252));
    CHECK(s.from == doctest::Approx(-0.8417).epsilon(0.001));
    CHECK(s.to == doctest::Approx(6.3417).epsilon(0.001));
    CHECK((s.low == 0.5 && s.high == 5));  // not the eleventh
}

TEST_CASE("runs: a text names a number, the last decimal is at most a third of the standard deviation") {
    const Runs runs = runs_of(kHalves +
                              "L8,fp32,gap_pct,.01,.02,.03,.04,.05,.06,.07,.08,.09,-.1\n"
                              "L8,wide,gap_pct,1000,2000,3000,4000,5000,6000,7000,8000,9000,10000\n"
                              "L8,same,gap_pct,7,7,7,7,7,7,7,7,7,7\n");
    const auto fill = [&](const std::string& text) { return runs.fill(text, "text"); };
    CHECK(fill("no number, {} and {step} stay") == "no number, {} and {step} stay");
    CHECK(fill("ends {runs L8 delayed gap_pct mean} % above, {runs L8 delayed gap_pct interval}.") ==
          "ends 2.8 % above, −0.8 to 6.3.");
    CHECK(fill("{runs L8\ndelayed gap_pct sd}") == "1.5");  // a line of a lesson may end between two words
    CHECK(fill("{runs L8 delayed gap_pct range}") == "0.5 to 5.0");
    CHECK(fill("{runs L8 fp32 gap_pct low}, {runs L8 fp32 gap_pct high}") == "−0.10, 0.09");
    CHECK(fill("{runs L8 wide gap_pct mean}, {runs L8 wide gap_pct high}") == "5500, 10\u2009000");
    CHECK(fill("{runs L8 same gap_pct from}") == "7");
}

TEST_CASE("runs: a name that is not there and a table that cannot be read say what is wrong") {
    const Runs runs = runs_of(kHalves);
    const auto why = [&](const std::string& text) -> std::string {
        try {
            runs.fill(text, "L8");
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    CHECK(why("{runs L8 delayed gap_pct median}").find("valid: mean sd low high range") != std::string::npos);
    CHECK(why("{runs L8 fp32 gap_pct mean}").find("L8: {runs L8 fp32 gap_pct mean}: ") == 0);
    CHECK(why("{runs L8 delayed}").find("expected a run, a recipe, a quantity") != std::string::npos);
    CHECK(why("{runs L8 delayed gap_pct mean").find("not closed") != std::string::npos);
    const auto refused = [](const std::string& rows, const char* with) {
        CHECK_THROWS_WITH_AS(runs_of(rows), doctest::Contains(with), Error);
    };
    refused("", "holds no run");
    refused("L8,delayed,gap_pct,1,2,3\n", "runs.csv: line 3: ");
    refused("L8,delayed,gap_pct,1,2,3,4,5,6,7,8,9,,\n", "has 9 of 10 values");
    refused("L8,delayed,gap_pct,1,2,3,4,5,6,7,8,9,nan\n", "'nan' is no number");
    refused(kHalves + kHalves, "L8 delayed gap_pct is there twice");
}

TEST_CASE("runs.md has the mean, range, deviation and interval of every row of runs.csv, and no other row") {
    std::set<Runs::Key> told;
    const std::string text = document(), table = text.substr(0, text.find("\n## Seeds "));
    for (const std::string& line : lines_of(table)) {
        const auto cells = cells_of(line);
        if (cells.size() != 8 || cells[0] == "run") continue;
        CAPTURE(line);
        const std::string row = "{runs " + cells[0] + " " + cells[1] + " " + cells[2] + " ";
        for (const auto& [cell, word] :
             {std::pair{3, "mean"}, {4, "low"}, {5, "high"}, {6, "sd"}, {7, "interval"}})
            CHECK(cells[static_cast<std::size_t>(cell)] == with_runs(row + word + "}"));
        CHECK(told.insert({cells[0], cells[1], cells[2]}).second);
    }
    CHECK(told.size() == shipped_runs().rows().size());
}

TEST_CASE("runs.md tells which values of the seeds that no interval was made of lie outside") {
    const auto number = [](std::string text) {
        for (const auto& [from, to] : {std::pair{"\u2212", "-"}, {"\u2009", ""}})
            for (std::size_t at; (at = text.find(from)) != text.npos;)
                text.replace(at, std::string_view(from).size(), to);
        return std::stod(text);
    };
    std::size_t inside = 0, all = 0;
    std::vector<std::string> outside;
    for (const auto& [key, values] : shipped_runs().rows()) {
        const auto& [run, recipe, quantity] = key;
        const std::string row = "{runs " + run + " " + recipe + " " + quantity + " ";
        // As the text says it, rounded.
        const double from = number(with_runs(row + "from}")), to = number(with_runs(row + "to}"));
        const std::string begin = "| " + run + " | `" + recipe + "` | " + quantity + " | ";
        CHECK(document().find(begin + with_runs(row + "interval}") + " | ") != std::string::npos);
        for (std::size_t i = kSeedsOfRuns; i < values.size(); ++i, ++all) {
            if (values[i] >= from && values[i] <= to)
                ++inside;
            else
                outside.push_back(begin);
        }
    }
    REQUIRE(all > 0);
    const std::string text = document();
    CHECK(text.find(std::to_string(inside) + " of " + std::to_string(all) + " values lie in the intervals") !=
          std::string::npos);
    CHECK(10 * inside >= 9 * all);
    std::size_t bold = 0;
    for (const std::string& line : lines_of(text))
        for (std::size_t at = line.find("| **"); line.starts_with("| L") && at != line.npos;
             at = line.find("| **", at + 1), ++bold)
            CHECK(
                std::ranges::any_of(outside, [&](const std::string& row) { return line.starts_with(row); }));
    CHECK(bold == outside.size());
}
