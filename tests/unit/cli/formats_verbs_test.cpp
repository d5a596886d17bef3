// The verbs formats, codes, cast, decode and validate as a user meets them: the built binary, its two
// streams, its files and its exit codes.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "process.h"
#include "tests/json.h"

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("cast writes one byte a code and counts what is not finite") {
    const Scratch folder;
    spit(folder / "x", bytes_of({1, 460, 500, kNan, kInf, -0.0F, 1e-9F}));
    const Finished saturating = fp8lab("cast --to e4m3 -i " + folder / "x" + " -o " + folder / "codes");
    CHECK(saturating.code == 0);
    CHECK(saturating.out.empty());
    CHECK(saturating.err == "cast: 1 NaN and 1 Inf among 7 values\n");
    CHECK(slurp(folder / "codes") == std::string("\x38\x7E\x7E\x7F\x7E\x80\x00", 7));
    const Finished other = fp8lab("cast --to E4M3 --overflow nonsaturate -i - -o -", slurp(folder / "x"));
    CHECK(other.out == std::string("\x38\x7E\x7F\x7F\x7F\x80\x00", 7));
}

TEST_CASE("cast takes .npy, by file or through stdin, and refuses float64") {
    const Scratch folder;
    spit(folder / "x.npy", npy("<f4", "(2,)", bytes_of({1.5F, -2})));
    CHECK(fp8lab("cast --to bf16 -i " + folder / "x.npy" + " -o -").out ==
          std::string("\xC0\x3F\x00\xC0", 4));
    CHECK(fp8lab("cast --to bf16 -i - -o -", slurp(folder / "x.npy")).out ==
          std::string("\xC0\x3F\x00\xC0", 4));
    spit(folder / "d.npy", npy("<f8", "(1,)", std::string(8, '\0')));
    const Finished refused = fp8lab("cast --to e4m3 -i " + folder / "d.npy" + " -o " + folder / "out");
    CHECK(refused.code == 4);
    CHECK(refused.err.find("'<f8'") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_CASE("decode gives back the values, scale not undone") {
    const Scratch folder;
    spit(folder / "x", bytes_of({1, 3, 0.5F, -7}));
    CHECK(fp8lab("cast --to e2m1 --scale 2 -i " + folder / "x" + " -o " + folder / "codes").code == 0);
    CHECK(fp8lab("decode --from e2m1 -i " + folder / "codes" + " -o -").out == bytes_of({2, 6, 1, -6}));
}

TEST_CASE("a stochastic cast repeats with its seed and changes with another") {
    const Scratch folder;
    spit(folder / "x", bytes_of(std::vector<float>(1000, 17.3F)));
    const std::string cast = "cast --to e4m3 --round stochastic -o - -i " + folder / "x" + " --seed ";
    const Finished first = fp8lab(cast + "5");
    CHECK(first.out.size() == 1000);
    CHECK(fp8lab("--threads 1 " + cast + "5").out == first.out);
    CHECK(fp8lab(cast + "6").out != first.out);
}

TEST_CASE("every mistake is one line with its place and the right exit code") {
    const Scratch folder;
    spit(folder / "x", bytes_of({1}));
    spit(folder / "odd", "12345");
    spit(folder / "code", "\x10");
    const std::string io = " -i " + folder / "x" + " -o -";
    const struct {
        std::string arguments;
        int code;
        const char* says;
    } cases[] = {
        {"cast --to e4m4" + io, 2, "fp8lab: --to: unknown format 'e4m4'; valid: fp32"},
        {"cast --to e4m3 --round down" + io, 2, "fp8lab: --round: unknown rounding 'down'; valid: nearest"},
        {"cast --to e8m0 --round nearest" + io, 2, "valid: up toward-zero"},
        {"cast --to e4m3 --overflow wrap" + io, 2, "valid: saturate nonsaturate"},
        {"cast --to e4m3 --scale 0" + io, 2, "fp8lab: --scale: "},
        {"cast --to e4m3 -i " + folder / "odd" + " -o -", 4, "byte 4"},
        {"cast --to e4m3 -i " + folder / "absent" + " -o -", 4, "absent"},
        {"decode --from e2m1 -i " + folder / "code" + " -o -", 4, "byte 0: 0x10 is no e2m1 code"},
        {"decode --from bf16 -i " + folder / "code" + " -o -", 4, "byte 0"},
        {"formats e4m4", 2, "fp8lab: formats: unknown format"},
        {"codes tf32", 2, "fp8lab: codes: tf32"},
        {"bench nothing", 2, "fp8lab: bench: unknown kind 'nothing'; valid: cast"},
        {"validate --backend abacus", 2, "valid: auto cpu cuda"},
    };
    for (const auto& c : cases) {
        CAPTURE(c.arguments);
        const Finished run = fp8lab(c.arguments);
        CHECK(run.code == c.code);
        CHECK(run.out.empty());
        CAPTURE(run.err);
        CHECK(run.err.find(c.says) != std::string::npos);
        CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    }
}

TEST_CASE("formats and codes tell the facts of a format") {
    const auto json = parsed(fp8lab("formats e4m3 e5m2 --json").out);
    for (const char* member : {"provenance", "device", "version", "seed"}) CHECK(json.contains(member));
    REQUIRE(json["formats"].size() == 2);
    CHECK(json["formats"][0]["max"] == 448);
    CHECK(json["formats"][0]["overflow_threshold"] == 464);
    CHECK(json["formats"][0]["threshold_overflows"] == false);
    CHECK(json["formats"][1]["codes"]["nan"] == 6);
    const std::string csv = fp8lab("codes e4m3 --csv").out;
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 257);
    CHECK(csv.find("\n0x01,0,0000,001,subnormal,0.001953125\n") != std::string::npos);
    CHECK(csv.find("\n0xFE,1,1111,110,normal,-448\n") != std::string::npos);
}

TEST_CASE("validate passes on this machine and says what it checked") {
    const Finished run = fp8lab("validate --backend cpu --json");
    CHECK(run.code == 0);
    const auto json = parsed(run.out);
    CHECK(json["passed"] == true);
    const auto all = parsed(fp8lab("list formats --json").out);
    // Seven columns of NVIDIA's golden edges; of every format the round trip, and vector against scalar.
    CHECK(json["checks"].size() == 7 + 2 * all["formats"].size());
    CHECK(json["checks"][0]["found"] == "0 differences in 2214 cases");
}
