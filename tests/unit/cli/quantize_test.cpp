// fp8lab quantize on files as other programs write them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

constexpr const char* kMembers[] = {"sqnr_db",      "rel_l2",         "mse",
                                    "max_rel",      "cosine",         "underflow_pct",
                                    "overflow_pct", "max_code_pct",   "bits_per_element",
                                    "lost_l1_pct",  "lost_energy_pct"};

std::string safetensors(const std::string& header, const std::string& data) {
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

}  // namespace

TEST_CASE("quantize gives every metric of every recipe, by hand") {
    const Scratch scratch;
    const std::string path = scratch / "x.npy";
    spit(path, npy("<f4", "(2, 2)", bytes_of({448, 17, -0.001F, 0})));
    const Finished got = fp8lab("quantize " + path + " --recipe unscaled,current,mxfp8,fp32 --json");
    CHECK(got.code == 0);
    CHECK(got.err.empty());
    const json out = parsed(got.out);
    CHECK(out["tensor"] == "x");
    CHECK(out["rows"] == 2);
    CHECK(out["cols"] == 2);
    CHECK(out["amax"] == 448);
    CHECK(out["nonfinite"]["nan"] == 0);
    for (const char* member : {"provenance", "device", "version", "seed"}) CHECK(out.contains(member));
    REQUIRE(out["recipes"].size() == 4);
    const json& unscaled = out["recipes"][0];  // 448, 16, -2^-9, 0
    CHECK(unscaled["recipe"] == "unscaled");
    for (const char* member : kMembers) CHECK(unscaled[member].is_number());
    const double tiny = 0x1p-9 - static_cast<double>(0.001F), noise = 1 + tiny * tiny;
    const double signal = 448.0 * 448 + 289 + std::pow(static_cast<double>(0.001F), 2);
    CHECK(unscaled["mse"].get<double>() == doctest::Approx(noise / 4));
    CHECK(unscaled["rel_l2"].get<double>() == doctest::Approx(std::sqrt(noise / signal)));
    CHECK(unscaled["sqnr_db"].get<double>() == doctest::Approx(10 * std::log10(signal / noise)));
    CHECK(unscaled["max_rel"].get<double>() == doctest::Approx(tiny / 0.001));
    CHECK(unscaled["max_code_pct"] == 25);
    CHECK(unscaled["underflow_pct"] == 0);
    CHECK(unscaled["bits_per_element"] == 8);
    CHECK(unscaled["dynamic_range_log2"].get<double>() == doctest::Approx(std::log2(448 / 0.001)));
    CHECK(out["recipes"][2]["bits_per_element"] == 12);  // two rows, each with an E8M0 byte for two elements
    const json& fp32 = out["recipes"][3];
    CHECK(fp32["sqnr_db"].is_null());  // nothing was lost: infinite
    CHECK(fp32["mse"] == 0);
}

TEST_CASE("quantize takes the targets of NVFP4: 4, 3, 2, 1 and their halves are exact where 4 becomes 4") {
    const Scratch scratch;
    const std::string path = scratch / "x.npy";
    spit(path,
         npy("<f4", "(1, 16)", bytes_of({4, 3, 2, 1, 0.5F, 1.5F, 0, 0, -4, -3, -2, -1, -0.5F, -1.5F, 0, 0})));
    const Finished got = fp8lab(
        "quantize " + path + " --recipe nvfp4,nvfp4:target=4,nvfp4:target=4or6,nvfp4-te,nvfp4:w2d=1 --json");
    CHECK(got.code == 0);
    const json recipes = parsed(got.out)["recipes"];
    // 448 / 6 x 4 = unit 2/3: 3 is 4.5 units, which becomes 4; 2 and 1 are 3 and 1.5; 1.5 is 2.25, which becomes 2;
    // 0.5 is 0.75, a tie, which becomes 1.
    const double errors[] = {3 - 8.0 / 3, 1.5 - 4.0 / 3, 0.5 - 2.0 / 3};
    double squares = 0;
    for (const double e : errors) squares += 2 * e * e;
    CHECK(recipes[0]["mse"].get<double>() == doctest::Approx(squares / 16).epsilon(1e-5));
    CHECK(recipes[1]["mse"] == 0);
    CHECK(recipes[2]["mse"] == 0);
    CHECK(recipes[3]["mse"] == recipes[0]["mse"]);  // options of w, dy and wgrad change nothing here
    CHECK(recipes[4]["mse"] == recipes[0]["mse"]);
    for (const json& recipe : recipes) CHECK(recipe["bits_per_element"] == 4 + (8 + 32) / 16.0);
}

TEST_CASE("quantize says what share of the tensor underflow removed, in its last columns") {
    const Scratch scratch;
    const std::string path = scratch / "x.npy";
    spit(path, npy("<f4", "(4,)", bytes_of({3, -1, 0x1p-11F, -0x1p-12F})));
    const std::string command = "quantize " + path + " --recipe unscaled,fp32";
    const json recipes = parsed(fp8lab(command + " --json").out)["recipes"];
    CHECK(recipes[0]["underflow_pct"] == 50);
    CHECK(recipes[0]["lost_l1_pct"].get<double>() == doctest::Approx(100 * 0x3p-12 / (4 + 0x3p-12)));
    CHECK(recipes[0]["lost_energy_pct"].get<double>() == doctest::Approx(100 * 0x5p-24 / (10 + 0x5p-24)));
    CHECK(recipes[1]["lost_l1_pct"] == 0);
    const std::string table = fp8lab(command).out;
    CHECK(table.find("bits_per_element") < table.find("lost_l1_pct"));
}

TEST_CASE("quantize counts and names what is not finite, and says it in a table too") {
    const Scratch scratch;
    const std::string path = scratch / "x.npy";
    constexpr float kInf = std::numeric_limits<float>::infinity();
    spit(path, npy("<f4", "(5,)", bytes_of({1, kInf, -kInf, std::nanf(""), 2})));
    const Finished got = fp8lab("quantize " + path + " --recipe unscaled");
    CHECK(got.code == 0);
    CHECK(got.err == "quantize: x: 1 NaN and 2 Inf among 5 values count as 0\n");
    for (const char* member : kMembers) CHECK(got.out.find(member) != std::string::npos);
    const json out = parsed(fp8lab("quantize " + path + " --recipe unscaled --json").out);
    CHECK(out["nonfinite"]["nan"] == 1);
    CHECK(out["nonfinite"]["inf"] == 2);
    CHECK(out["amax"] == 2);               // as of 1, 0, 0, 0, 2
    CHECK(out["recipes"][0]["mse"] == 0);  // of 1 and 2
}

TEST_CASE("quantize takes a tensor of a safetensors file, and lists them where none is named") {
    const Scratch scratch;
    const std::string path = scratch / "w.safetensors";
    const std::string header = R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},)"
                               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
    spit(path, safetensors(header, std::string("\x7E\x38", 2) + bytes_of({3})));
    const json out = parsed(fp8lab("quantize " + path + ":a --recipe unscaled --unscaled-codes --json").out);
    CHECK(out["tensor"] == "a");
    CHECK(out["amax"] == 448);
    CHECK(out["recipes"][0]["sqnr_db"].is_null());  // E4M3 values are E4M3 values
    const auto refused = [&](const std::string& arguments, int code, const std::string& why) {
        const Finished got = fp8lab("quantize " + arguments);
        CHECK(got.code == code);
        CHECK(got.out.empty());
        CHECK(got.err == "fp8lab: " + why + "\n");
    };
    refused(path + " --recipe current", 2, path + ": has 2 tensors; name one, as FILE:TENSOR: a b");
    refused(path + ":c --recipe current", 2, path + ": unknown tensor 'c'; valid: a b");
    refused("nowhere.npy --recipe current", 4, "nowhere.npy: No such file or directory");
    spit(path, slurp(path).substr(0, 100));
    refused(
        path + ":a --recipe current", 4,
        path + ": byte 100: truncated: the header should have " + std::to_string(header.size()) + " bytes");
    CHECK(fp8lab("quantize " + path + " --recipe fp9").code == 2);
    CHECK(fp8lab("quantize " + path).code == 2);
}
