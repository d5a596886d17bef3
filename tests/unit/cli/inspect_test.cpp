// fp8lab inspect: the table, CSV and JSON of whole models.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

const std::string kSample = FP8LAB_SOURCE "/assets/models/transformer-600.safetensors";
const std::string kBefore = FP8LAB_SOURCE "/assets/models/transformer-0.safetensors";

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> out(1);
    bool quotes = false;
    for (const char c : line) {
        if (c == '"')
            quotes = !quotes;
        else if (c == ',' && !quotes)
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

using Rows = std::map<std::string, std::map<std::string, std::string>>;
Rows rows_of(const std::string& csv) {
    std::istringstream lines(csv);
    std::vector<std::string> head;
    Rows out;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        const auto cells = split(line);
        if (head.empty()) {
            head = cells;
            continue;
        }
        REQUIRE(cells.size() == head.size());
        for (std::size_t i = 0; i < head.size(); ++i) out[cells[0]][head[i]] = cells[i];
    }
    return out;
}

}  // namespace

// tests/unit/cli/inspect_numpy.py computes these from the file with numpy in float64 casts of its own.
TEST_CASE("inspect gives numpy's numbers for five tensors of the sample") {
    const Rows rows = rows_of(fp8lab("inspect " + kSample + " --csv -").out);
    CHECK(rows.size() == 150);
    const json numpy = parsed(slurp(FP8LAB_SOURCE "/tests/unit/cli/inspect_numpy.json"));
    CHECK(numpy.size() == 5);
    for (const auto& [name, expected] : numpy.items()) {
        CAPTURE(name);
        REQUIRE(rows.contains(name));
        for (const auto& [column, value] : expected.items()) {
            CAPTURE(column);
            CHECK(std::stod(rows.at(name).at(column)) == doctest::Approx(value.get<double>()).epsilon(1e-5));
        }
    }
}

TEST_CASE("inspect and quantize agree") {
    const std::string name = "act.blocks.1.down";
    const json all = parsed(fp8lab("inspect " + kSample + " --recipe current,mxfp8,nvfp4 --json").out);
    const json one =
        parsed(fp8lab("quantize " + kSample + ":" + name + " --recipe current,mxfp8,nvfp4 --json").out);
    for (const json& row : all["rows"]) {
        if (row["name"] != name) continue;
        for (const json& recipe : one["recipes"]) {
            const json& here = row["recipes"][recipe["recipe"].get<std::string>()];
            CHECK(here["sqnr_db"].get<double>() ==
                  doctest::Approx(recipe["sqnr_db"].get<double>()).epsilon(1e-9));
            CHECK(here["underflow_pct"] == recipe["underflow_pct"]);
            CHECK(here["bits"] == recipe["bits_per_element"]);
        }
    }
    CHECK(all["provenance"] == "cpu-emulated");
    CHECK(all["losing"]["current"] == 7);
}

TEST_CASE("inspect compares with an earlier state, folds and filters") {
    const Rows rows = rows_of(fp8lab("inspect " + kSample + " --compare " + kBefore + " --csv -").out);
    CHECK(rows.at("adam.v.head.weight").at("change") == "new");
    CHECK(rows.at("adam.v.head.weight").at("before_amax").empty());
    CHECK(rows.at("head.weight").at("change") == "same");
    CHECK_FALSE(rows.at("head.weight").at("before_amax").empty());
    const std::string folded = fp8lab("inspect " + kSample + " --fold").out;
    CHECK(folded.find("dact.blocks.*.qkv ") != std::string::npos);
    CHECK(folded.find("of 150 tensors lose more than 1 %: ") != std::string::npos);
    const std::string filtered = fp8lab("inspect " + kSample + " --filter ADAM.V.").out;
    CHECK(filtered.find("adam.v.head.weight") != std::string::npos);
    CHECK(filtered.find("adam.m.") == std::string::npos);
}

TEST_CASE("inspect refuses what it cannot read, with one line, and writes nothing") {
    const Scratch scratch;
    spit(scratch / "m.pt", "PK");
    spit(scratch / "cut.safetensors", slurp(kSample).substr(0, 1000));
    struct Case {
        std::string call, says;
        int code;
    };
    for (const Case& c :
         {Case{scratch / "m.pt", "holds code; save it as .safetensors", 4},
          Case{scratch / "cut.safetensors", "byte 1000: truncated", 4},
          Case{scratch / "none.safetensors", "No such file", 4},
          Case{kSample + " --recipe delayed", "needs the amaxes of earlier steps; inspect casts one tensor",
               2},
          Case{kSample + " --recipe fp9", "unknown recipe", 2}, Case{kSample + " --csv " + kSample, "", 2}}) {
        CAPTURE(c.call);
        const Finished got =
            fp8lab("inspect " + c.call + (c.code == 4 ? " --csv " + (scratch / "out.csv") : ""));
        CHECK(got.code == c.code);
        CHECK(got.err.find(c.says) != std::string::npos);
        CHECK(std::ranges::count(got.err, '\n') == 1);
        CHECK(got.out.empty());
    }
    CHECK_FALSE(std::filesystem::exists(scratch / "out.csv"));
}
