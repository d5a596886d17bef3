// fp8lab train and bench step, as a script sees them.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

const std::string kSmall = "train --backend cpu --layers 8,16,1 --batch 32 --steps 12 ";

std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
    std::vector<std::vector<std::string>> rows;
    std::istringstream in(csv);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("#")) continue;
        std::vector<std::string> cells(1);
        for (const char c : line) {
            if (c == ',')
                cells.emplace_back();
            else
                cells.back() += c;
        }
        rows.push_back(std::move(cells));
    }
    return rows;
}

// One failure is one line "fp8lab: WHERE: WHY", and nothing on stdout.
void check_refused(const std::string& arguments, int code, const std::string& part) {
    CAPTURE(arguments);
    const Finished run = fp8lab(arguments);
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK(run.err.starts_with("fp8lab: "));
    CHECK(run.err.find('\n') == run.err.size() - 1);
    CHECK(run.err.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("train writes the documented CSV: one row an arm and step, empty where it does not apply") {
    const Finished run = fp8lab(kSmall + "--recipe fp32,delayed:history=1,mxfp8 --csv -");
    CHECK(run.code == 0);
    const auto rows = rows_of(run.out);
    REQUIRE(rows.size() == 1 + 3 * 12);
    CHECK(rows[0][0] == "step");
    CHECK(rows[0][4] == "step_ms");
    CHECK(rows[0][5] == "amax_x1");
    CHECK(rows[0][16] == "overflow_pct_dy1");
    CHECK(rows[0][29] == "lost_l1_pct_x1");  // two layers of x, w, dy; four columns each, and two after them
    CHECK(rows[0][41] == "sqnr_db_x1");
    CHECK(rows[0][47] == "moved_pct_w1");
    CHECK(rows[0][50] == "product_error_pct_w2");
    CHECK(rows[0].size() == 5 + 2 * 3 * 4 + 2 * 3 * 2 + 2 * 3 + 2 * 2);
    CHECK(rows[1][41].empty());
    CHECK(std::stof(rows[2][41]) > 20);
    CHECK(rows[2][47] == "100");  // step 0; the next that is measured is 50
    CHECK(rows[5][47].empty());
    for (const auto& row : rows) CHECK(row.size() == rows[0].size());
    CHECK(rows[1][1] == "fp32");
    CHECK(rows[1][3].empty());  // accuracy: a regression
    CHECK(rows[1][5].empty());  // fp32 casts nothing
    CHECK(rows[2][1] == "delayed:history=1");
    CHECK(rows[2][6] == "1");
    CHECK(std::stof(rows[5][6]) == 448.0F / std::stof(rows[2][5]));  // reads back to the same float
    CHECK(rows[3][6].empty());                                       // one scale per block
    CHECK_FALSE(rows[3][5].empty());
    CHECK(run.out.starts_with("# fp8lab "));
}

TEST_CASE("micro-batches add their columns behind those of all runs, and a resumed run says them again") {
    const Finished plain = fp8lab(kSmall + "--recipe fp32,delayed:history=1,delayed:loss_scale=8 --csv -");
    const Finished cut = fp8lab(kSmall +
                                "--recipe fp32,delayed:history=1,delayed:loss_scale=8 --accumulate 4 "
                                "--accumulate-in bf16 --amax-of last --csv -");
    REQUIRE(cut.code == 0);
    CHECK(cut.out.find(" --accumulate 4 --accumulate-in bf16 --amax-of last\n") != std::string::npos);
    auto header = rows_of(plain.out).front();
    const auto rows = rows_of(cut.out);
    std::vector<std::string> added = {"accumulate_error_pct", "saturated_casts_x1", "saturated_casts_w1",
                                      "saturated_casts_dy1",  "saturated_casts_x2", "saturated_casts_w2",
                                      "saturated_casts_dy2"};
    header.insert(header.end() - 2, added.begin(), added.end());  // before loss_scale,skipped
    CHECK(rows.front() == header);
    const std::size_t first = header.size() - 2 - added.size();
    for (std::size_t i = 1; i < rows.size(); ++i) {
        REQUIRE(rows[i].size() == header.size());
        const double error = std::stod(rows[i][first]);
        CHECK(error > 0.01);  // BF16 has 8 bits of precision
        CHECK(error < 1);
        CHECK(rows[i][first + 1].empty() == (rows[i][1] == "fp32"));
    }
}

TEST_CASE("ranks add two columns behind all others, and the summary has what each rank reads") {
    const std::string arms =
        "--recipe delayed,bf16:m=bf16 --ranks 4 --shard zero1 --gather e4m3 --wscale own ";
    const Finished run = fp8lab(kSmall + arms + "--csv -");
    REQUIRE(run.code == 0);
    CHECK(run.out.find(" --ranks 4 --shard zero1 --gather e4m3 --wscale own\n") != std::string::npos);
    const auto rows = rows_of(run.out);
    REQUIRE(rows.front().size() > 4);
    CHECK(std::vector(rows.front().end() - 4, rows.front().end()) ==
          std::vector<std::string>{"v_zero_pct", "large_updates_ppm", "rank_spread", "sum_error"});
    for (std::size_t i = 1; i < rows.size(); ++i) {
        REQUIRE(rows[i].size() == rows.front().size());
        // The first scales are 1 in every rank.
        CHECK((std::stod(*(rows[i].end() - 2)) > 1) == (rows[i][1] == "delayed" && rows[i][0] != "0"));
        CHECK(std::stod(rows[i].back()) > 0.01);  // BF16 has 8 bits of precision
        CHECK(std::stod(rows[i].back()) < 1);
    }
    const json ranks = parsed(fp8lab(kSmall + arms + "--json -").out)["arms"][0]["ranks"];
    REQUIRE(ranks.size() == 4);
    for (const json& rank : ranks) {
        CHECK(rank["bytes_crc32"] == ranks[0]["bytes_crc32"]);
        CHECK(rank["finite"] == true);
        CHECK(rank["scale"].size() == 2);
    }
    CHECK(ranks[1]["values_crc32"] != ranks[0]["values_crc32"]);
    const json stopped =
        parsed(fp8lab(kSmall + "--recipe bf16 --ranks 4 --bad 2:nan:1 --json -").out)["arms"][0];
    CHECK(stopped["first_nonfinite"] == json{{"step", 1}, {"tensor", "x1"}, {"rank", 2}});
    CHECK(stopped["ranks"][0]["finite"] == false);
}

TEST_CASE("what train refuses of ranks is one line and exit code 2") {
    check_refused(kSmall + "--ranks 5", 2, "--ranks: 5 ranks do not divide a batch of 32");
    check_refused(kSmall + "--ranks 0", 2, "--ranks");
    check_refused(kSmall + "--ranks many", 2, "--ranks");
    check_refused(kSmall + "--ranks 4 --sum fp8", 2, "--sum: unknown sum 'fp8'");
    check_refused(kSmall + "--ranks 4 --shard zero1 --wscale own", 2, "--wscale: own has no effect");
    check_refused(kSmall + "--ranks 4 --bad 4:nan:1", 2, "--bad: rank 4 is not in 0..3");
    check_refused(kSmall + "--sum bf16", 2, "--sum: bf16 has no effect with one rank");
}

TEST_CASE("moments in fewer bits add their columns behind all others, empty for arms without") {
    const std::string arms = "--recipe fp32,delayed:loss_scale=8,bf16:m=bf16:v=fp16,bf16:m=e4m3 --csv -";
    const auto rows = rows_of(fp8lab(kSmall + arms).out);
    REQUIRE(rows.size() > 4);
    const auto& header = rows.front();
    REQUIRE(header.size() > 4);
    const std::size_t first = header.size() - 4;
    CHECK(std::vector(header.end() - 4, header.end()) ==
          std::vector<std::string>{"loss_scale", "skipped", "v_zero_pct", "large_updates_ppm"});
    for (std::size_t i = 1; i < rows.size(); ++i) {
        REQUIRE(rows[i].size() == header.size());
        const bool narrow = rows[i][1].starts_with("bf16");
        CHECK(rows[i][first].empty() == (rows[i][1] != "delayed:loss_scale=8"));
        CHECK(rows[i][first + 2].empty() != narrow);
        CHECK(rows[i][first + 3].empty() != narrow);
        if (rows[i][1] == "bf16:m=e4m3") CHECK(rows[i][first + 2] == "0");
    }
    const json arm = parsed(fp8lab(kSmall + "--recipe bf16,bf16:v=fp16 --json -").out)["arms"];
    CHECK_FALSE(arm[0].contains("v_zero_pct"));
    double sum = 0, steps = 0;
    const auto fp16 = rows_of(fp8lab(kSmall + "--recipe bf16:v=fp16 --csv -").out);
    for (std::size_t i = 1; i < fp16.size(); ++i, ++steps) sum += std::stod(fp16[i][fp16[i].size() - 2]);
    CHECK(sum > 0);
    CHECK(arm[1]["v_zero_pct"].get<double>() == doctest::Approx(sum / steps));
    CHECK(arm[1].contains("large_updates_ppm"));
    CHECK(rows_of(fp8lab(kSmall + "--recipe bf16:m=fp32,bf16:master=bf16 --csv -").out).front().back() ==
          "product_error_pct_w2");
}

TEST_CASE("two runs of one command agree in every column but step_ms") {
    const std::string command = kSmall + "--recipe nvfp4,delayed:master=none:round_update=stochastic --csv -";
    auto first = rows_of(fp8lab(command).out), second = rows_of(fp8lab(command).out);
    REQUIRE(first.size() == second.size());
    for (std::size_t r = 1; r < first.size(); ++r) first[r][4] = second[r][4] = "";
    CHECK(first == second);
}

TEST_CASE("a diverged arm ends in nan and null, --fail-on-nan makes it an exit code") {
    const std::string diverging = kSmall + "--recipe delayed:overflow=nonsaturate,bf16 --lr 1 ";
    const Finished run = fp8lab(diverging + "--json -");
    CHECK(run.code == 0);
    const json out = parsed(run.out);
    CHECK(out["provenance"] == "cpu-emulated");
    for (const char* member : {"device", "version", "seed"}) CHECK(out.contains(member));
    CHECK(out["arms"][0]["tail_loss"].is_null());
    CHECK(out["arms"][0]["first_nonfinite"]["step"].is_number());
    CHECK(out["arms"][0]["first_nonfinite"]["tensor"].is_string());
    const auto rows = rows_of(fp8lab(diverging + "--csv -").out);
    std::map<std::string, std::string> last_loss;
    for (const auto& row : rows) last_loss[row[1]] = row[2];
    CHECK(last_loss["delayed:overflow=nonsaturate"] == "nan");
    const Finished failing = fp8lab(diverging + "--fail-on-nan --json -");
    CHECK(failing.code == 1);
    CHECK(failing.err.find("became non-finite at step") != std::string::npos);
    CHECK(parsed(failing.out)["arms"].size() == 2);  // what was measured is there
}

TEST_CASE("a run goes on from a checkpoint in another recipe") {
    const Scratch scratch;
    CHECK(fp8lab(kSmall + "--recipe bf16 --save " + (scratch / "a")).code == 0);
    const std::string longer = "train --backend cpu --layers 8,16,1 --batch 32 --steps 20 ";
    const auto rows = rows_of(fp8lab(longer + "--recipe delayed --csv - --resume " + (scratch / "a")).out);
    REQUIRE(rows.size() == 1 + 8);
    CHECK(rows[1][0] == "12");
    check_refused(kSmall + "--accumulate 5", 2, "--accumulate: 5 micro-batches do not divide a batch of 32");
    check_refused(kSmall + "--recipe bf16:v=e3m2", 2,
                  "recipe bf16: 'e3m2' is not a value of v; valid: fp32|bf16|fp16|e4m3|e5m2");
    check_refused(kSmall + "--recipe bf16:m=e4m3:round_v=stochastic", 2, "round_v has no effect without v");
    check_refused(kSmall + "--recipe bf16:moment_block=tensor", 2,
                  "moment_block has no effect without m or v in 8 bits");
    check_refused(kSmall + "--optimizer sgd --recipe bf16:m=e4m3", 2,
                  "m and v have no effect with optimizer sgd");
    check_refused(kSmall + "--accumulate-in e4m3", 2, "--accumulate-in: e4m3 has no effect");
    check_refused(kSmall + "--recipe delayed --resume " + (scratch / "a"), 2, "has done 12 steps");
    check_refused("train --layers 8,20,1 --recipe bf16 --resume " + (scratch / "a"), 4,
                  "tensor 'w1' does not have the shape");
    spit(scratch / "b.safetensors", slurp(scratch / "a/1-bf16.safetensors").substr(0, 200));
    check_refused(longer + "--resume " + (scratch / "b.safetensors"), 4, "byte 200");
}

TEST_CASE("of tokens that are no characters the summary has losses and what they are compared with") {
    const std::string call =
        "train --model transformer --backend cpu --task zipf:257 --d 8 --heads 2 --ffn 8 --context 16 "
        "--batch 2 "
        "--steps 4 --recipe bf16 ";
    const Finished run = fp8lab(call + "--json -");
    REQUIRE(run.code == 0);
    const json summary = parsed(run.out);
    CHECK(summary["command_line"].get<std::string>().find("--task zipf:257") != std::string::npos);
    CHECK(summary["language"]["vocabulary"] == 257);
    CHECK(summary["language"]["entropy"] == doctest::Approx(4.8455).epsilon(1e-5));
    CHECK(summary["language"]["entropy_rate"] == doctest::Approx(4.1277).epsilon(1e-5));
    const json& arm = summary["arms"][0];
    const auto rows = rows_of(fp8lab(call + "--csv -").out);
    REQUIRE(rows.size() == 5);
    CHECK(arm["first_loss"].get<double>() == std::stod(rows[1][2]));
    CHECK(arm["held_out"]["loss"].get<double>() > 4.1277);
    CHECK(!arm["held_out"].contains("prompt"));
    const Finished table = fp8lab(call);
    CHECK(table.out.find("held-out loss 5.") != std::string::npos);
    CHECK(table.out.find('|') == std::string::npos);
    CHECK(table.out.find("entropy of the tokens 4.846, entropy rate 4.128\n") != std::string::npos);
    const json teacher = parsed(fp8lab(kSmall + "--json -").out);
    CHECK(!teacher.contains("language"));
}

TEST_CASE("what train refuses, it refuses in one line before anything runs") {
    check_refused(kSmall + "--accumulate 5", 2, "--accumulate: 5 micro-batches do not divide a batch of 32");
    check_refused(kSmall + "--recipe bf16:v=e3m2", 2,
                  "recipe bf16: 'e3m2' is not a value of v; valid: fp32|bf16|fp16|e4m3|e5m2");
    check_refused(kSmall + "--recipe bf16:m=e4m3:round_v=stochastic", 2, "round_v has no effect without v");
    check_refused(kSmall + "--recipe bf16:moment_block=tensor", 2,
                  "moment_block has no effect without m or v in 8 bits");
    check_refused(kSmall + "--optimizer sgd --recipe bf16:m=e4m3", 2,
                  "m and v have no effect with optimizer sgd");
    check_refused(kSmall + "--accumulate-in e4m3", 2, "--accumulate-in: e4m3 has no effect");
    check_refused("train --recipe bf17", 2, "valid: fp32 bf16");
    check_refused("train --task techer", 2, "valid: teacher noise spiral");
    check_refused("train --task spiral --layers 3,4,2", 2, "2 inputs");
    check_refused("train --task npy:/nowhere/x.npy,/nowhere/y.npy", 4, "/nowhere/x.npy");
    check_refused("train --optimizer adam", 2, "valid: adamw sgd");
    check_refused("train --algo mean", 2, "most_recent");
    check_refused("train --backend gpu", 2, "valid: auto cpu cuda");
    check_refused("train --steps 0", 2, "1..");
    check_refused("train --csv /nowhere/out.csv", 1, "/nowhere");
    check_refused("train --csv - --json -", 2, "stdout");
}

TEST_CASE("bench step compares every recipe with the FP32 step of the same run") {
    const Finished run =
        fp8lab("bench step --backend cpu --layers 32,64,16 --batch 8 --repeat 3 --recipe delayed --json");
    CHECK(run.code == 0);
    const json out = parsed(run.out);
    CHECK(out["flop"] == 4.0 * 8 * 32 * 64 + 6.0 * 8 * 64 * 16);
    CHECK(out["ceiling"]["gflops"] > 0);
    REQUIRE(out["arms"].size() == 2);
    CHECK(out["arms"][0]["recipe"] == "fp32");
    CHECK(out["arms"][0]["ratio_to_fp32"] == 1.0);
    CHECK(out["arms"][1]["repeats"] == 3);
    check_refused("bench step --layers 3,x", 2, "--layers");
}

TEST_CASE("bench step --accumulate without a GPU is one clear error") {
    check_refused("bench step --backend cpu --accumulate 4 --batch 32", 3,
                  "bench step --accumulate: measures a GPU");
    check_refused("bench gemm --accumulate 4", 2, "gemm takes no --accumulate");
}

TEST_CASE("bench step --sweep without a GPU is one clear error") {
    check_refused("bench step --backend cpu --sweep", 3, "bench step --sweep: ");
    check_refused("bench cast --sweep", 2, "takes no --sweep");
}
