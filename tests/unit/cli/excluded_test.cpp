// NaN, Inf and values that float32 does not hold: one rule, said in every output of both verbs that judge casts.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::string doubles(const std::vector<double>& values) {
    std::string bytes(values.size() * sizeof(double), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

// 4096 values between 0.01 and 1; with three that are not finite, or with 0 in their places.
std::vector<float> values(bool with_holes) {
    std::vector<float> out;
    for (int i = 0; i < 4096; ++i)
        out.push_back(static_cast<float>(std::exp(-4.6 * ((i * 37) % 4096) / 4096)));
    out[5] = with_holes ? NAN : 0, out[700] = with_holes ? kInf : 0, out[4000] = with_holes ? -kInf : 0;
    return out;
}

std::string file_of(const Scratch& scratch, const char* name, const std::vector<float>& data) {
    spit(scratch / name, npy("<f4", "(64, 64)", bytes_of(data)));
    return scratch / name;
}

json row_of(const std::string& file, const std::string& recipes) {
    return parsed(fp8lab("inspect " + file + " --json --recipe " + recipes).out)["rows"][0];
}
json quantized(const std::string& file, const std::string& recipes) {
    return parsed(fp8lab("quantize " + file + " --json --recipe " + recipes).out);
}

}  // namespace

TEST_CASE("NaN and Inf: inspect and quantize give the numbers of the same tensor with 0 in their places") {
    const Scratch scratch;
    const std::string recipes = "current,mxfp8,nvfp4,rowwise,block128,bf16";
    const std::string holes = file_of(scratch, "holes.npy", values(true)),
                      zeros = file_of(scratch, "zeros.npy", values(false));
    const json inspected = row_of(holes, recipes), plain = row_of(zeros, recipes);
    const json one = quantized(holes, recipes), other = quantized(zeros, recipes);
    CHECK(inspected["recipes"].size() == 6);
    for (const json& recipe : one["recipes"]) {
        const auto id = recipe["recipe"].get<std::string>();
        CAPTURE(id);
        CHECK(inspected["recipes"][id]["sqnr_db"] == plain["recipes"][id]["sqnr_db"]);
        CHECK(recipe["sqnr_db"].is_number());
        CHECK(recipe["sqnr_db"].get<double>() ==
              doctest::Approx(inspected["recipes"][id]["sqnr_db"].get<double>()).epsilon(1e-9));
        CHECK(recipe["underflow_pct"] == inspected["recipes"][id]["underflow_pct"]);
        CHECK(recipe["overflow_pct"] == inspected["recipes"][id]["overflow_pct"]);
    }
    CHECK(one["amax"] == 1);
    CHECK(one["amax"] == other["amax"]);
    CHECK(inspected["amax"] == 1);
}

TEST_CASE("NaN and Inf are said in the table, CSV, JSON and on stderr") {
    const Scratch scratch;
    const std::string file = file_of(scratch, "holes.npy", values(true));
    const std::string said = "holes 1 NaN and 2 Inf",
                      sentence = "1 NaN and 2 Inf among 4,096 values count as 0";
    const auto told = "inspect: 1 tensor has values that count as 0: " + said + "\n";
    const Finished table = fp8lab("inspect " + file);
    CHECK(table.code == 0);
    CHECK(table.err == told);
    CHECK(table.out.find("NaN, Inf") != std::string::npos);
    CHECK(table.out.find(told.substr(9)) != std::string::npos);
    const Finished csv = fp8lab("inspect " + file + " --csv -");
    CHECK(csv.err == told);
    CHECK(csv.out.find(",nan,inf,sampled_every,beyond_float32,below_float32,scale_nan,") !=
          std::string::npos);
    CHECK(csv.out.find(sentence + ".\",1,2,1,0,0,,,,,\n") != std::string::npos);
    const Finished as_json = fp8lab("inspect " + file + " --json");
    CHECK(as_json.err == told);
    const json row = parsed(as_json.out)["rows"][0];
    CHECK((row["nan"] == 1 && row["inf"] == 2 && row["beyond_float32"] == 0));
    CHECK(row["reason"].get<std::string>().ends_with(sentence + "."));
    const Finished cast = fp8lab("quantize " + file + " --recipe bf16");
    CHECK(cast.err == "quantize: holes: " + sentence + "\n");
    CHECK(cast.out.find("; " + sentence + "\n") != std::string::npos);
    CHECK(parsed(fp8lab("quantize " + file + " --recipe bf16 --json").out)["nonfinite"] ==
          json{{"nan", 1}, {"inf", 2}, {"beyond_float32", 0}, {"below_float32", 0}});
    // Where there are none, nothing of it is said.
    const std::string whole = file_of(scratch, "whole.npy", values(false));
    CHECK(fp8lab("inspect " + whole).err.empty());
    CHECK(fp8lab("inspect " + whole).out.find("NaN") == std::string::npos);
    CHECK(fp8lab("quantize " + whole + " --recipe bf16").err.empty());
}

TEST_CASE("float64 that float32 does not hold is said, and such a tensor is not called one of zeros") {
    const Scratch scratch;
    const std::string bytes = doubles({1e300, 5e-324});
    spit(scratch / "x.npy", npy("<f8", "(2,)", bytes));
    const std::string header = R"({"x":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})";
    std::string size(8, '\0');
    size[0] = static_cast<char>(header.size());
    spit(scratch / "x.safetensors", size + header + bytes);
    const std::string what = "1 beyond float32 and 1 below float32";
    for (const char* name : {"x.npy", "x.safetensors"}) {
        CAPTURE(name);
        const std::string file = scratch / name;
        const Finished table = fp8lab("inspect " + file);
        CHECK(table.code == 0);
        CHECK(table.err == "inspect: 1 tensor has values that count as 0: x " + what + "\n");
        CHECK(table.out.find("of 1 tensors meet 25 dB and 1 %: mxfp4 0,") != std::string::npos);
        const json row = row_of(file, "current");
        CHECK(
            (row["nan"] == 0 && row["inf"] == 0 && row["beyond_float32"] == 1 && row["below_float32"] == 1));
        CHECK(row["recommended"] == "none");
        const auto reason = row["reason"].get<std::string>();
        CHECK(reason.find("All values are 0") == std::string::npos);
        CHECK(reason.starts_with(what + " among 2 values count as 0."));
        const Finished cast = fp8lab("quantize " + file + " --recipe current");
        CHECK(cast.err == "quantize: x: " + what + " among 2 values count as 0\n");
    }
    // Inf in float64 is Inf, and what rounds to the largest float32 is held.
    spit(scratch / "inf.npy", npy("<f8", "(3,)", doubles({HUGE_VAL, 3.4028235e38, 1e-45})));
    CHECK(parsed(fp8lab("quantize " + (scratch / "inf.npy") + " --recipe bf16 --json").out)["nonfinite"] ==
          json{{"nan", 0}, {"inf", 1}, {"beyond_float32", 0}, {"below_float32", 0}});
}

TEST_CASE("a lab gives the numbers of one's own tensor with 0 in the places of NaN and Inf") {
    const Scratch scratch;
    std::filesystem::create_directory(scratch.path / "a");
    std::filesystem::create_directory(scratch.path / "b");
    const std::string holes = file_of(scratch, "a/x.npy", values(true)),
                      zeros = file_of(scratch, "b/x.npy", values(false));
    for (const char* lab : {"ruler", "error", "window", "blocks"}) {
        CAPTURE(lab);
        const auto metrics = [&](const std::string& file) {
            const Finished run = fp8lab("run " + std::string(lab) + " --set file=" + file);
            CHECK(run.code == 0);
            json out = parsed(run.out)["metrics"];
            out.erase("nonfinite");
            return out;
        };
        const json with_holes = metrics(holes);
        CHECK_FALSE(with_holes.empty());
        CHECK(with_holes == metrics(zeros));
    }
    CHECK(parsed(fp8lab("run error --set file=" + holes).out)["metrics"]["nonfinite"] == 3);
}

TEST_CASE("a name from a file does not drive the terminal, on stdout either") {
    const Scratch scratch;
    const std::string header = R"({"a\u001b[31m\u0000b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    std::string size(8, '\0');
    size[0] = static_cast<char>(header.size());
    spit(scratch / "x.safetensors", size + header + bytes_of({1}));
    for (const char* call : {"quantize FILE --recipe bf16", "inspect FILE", "inspect FILE --csv -",
                             "run blocks --words --set file=FILE", "run error --words --set file=FILE"}) {
        std::string arguments = call;
        CAPTURE(arguments);
        arguments.replace(arguments.find("FILE"), 4, scratch / "x.safetensors");
        const Finished run = fp8lab(arguments);
        CHECK(run.code == 0);
        CHECK_FALSE(run.out.empty());
        for (const char c : {'\033', '\0'}) CHECK(run.out.find(c) == std::string::npos);
    }
    CHECK(fp8lab("quantize " + (scratch / "x.safetensors") + " --recipe bf16")
              .out.starts_with("a\\x1b[31m\\x00b: 1 x 1"));
}
