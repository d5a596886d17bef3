// fp8lab convert as a script uses it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

namespace {

namespace fs = std::filesystem;
const std::string kModel = quoted(FP8LAB_SOURCE "/tests/unit/convert/golden/model.safetensors");

void check_fails(const Finished& run, int code, const std::string& says) {
    CAPTURE(run.err);
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK(run.err.starts_with("fp8lab: "));
    CHECK(std::ranges::count(run.err, '\n') == 1);
    CHECK(run.err.find(says) != std::string::npos);
}

}  // namespace

TEST_CASE("convert: the verb writes a folder, and says what it did") {
    const Scratch scratch;
    const Finished run = fp8lab("convert " + kModel + " --to nvfp4 -o " + (scratch / "out"));
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    CHECK(run.out.find("cast to nvfp4: 4 tensors\n") != std::string::npos);
    CHECK(run.out.find("in BF16, head: 1\n") != std::string::npos);
    // What it wrote, inspect reads: no tensor is refused or without a scale.
    const Finished read = fp8lab("inspect " + (scratch / "out/model.safetensors") + " --recipe bf16 --json");
    CHECK(read.code == 0);
    CHECK(read.err.find("not read") == std::string::npos);
    const Finished json =
        fp8lab("convert " + kModel + " --to mxfp8 --keep down_proj --json -o " + (scratch / "two"));
    const auto out = parsed(json.out);
    CHECK(out["cast"] == 3);
    CHECK(out["tensors"].size() == 7);
    CHECK(out["files"][0]["bytes"] == fs::file_size(scratch / "two/model.safetensors"));
    CHECK(out["left_out"].empty());
}

TEST_CASE("convert: what it refuses, and the codes") {
    const Scratch scratch;
    const std::string out = " -o " + (scratch / "out"), to = " --to mxfp8";
    fs::create_directories(scratch / "there");
    check_fails(fp8lab("convert " + kModel + to + " -o " + (scratch / "there")), 2, "there already");
    check_fails(fp8lab("convert " + kModel + " --to fp8" + out), 2, "valid: bf16 e4m3-block128");
    check_fails(fp8lab("convert " + kModel + to + " --keep nothing" + out), 2, "'nothing'");
    check_fails(fp8lab("convert " + (scratch / "none.safetensors") + to + out), 4, "No such file");
    check_fails(fp8lab("convert " + (scratch / "there") + to + out), 4, "folder");
    check_fails(fp8lab("convert " + kModel + to + " -o " + (scratch / "no/folder/here")), 1,
                "cannot be made");
    check_fails(fp8lab("convert " + kModel + to + " -o /proc/out"), 1, "cannot");
    spit(scratch / "model.safetensors.index.json", R"({"weight_map":{"a.weight":"../model.safetensors"}})");
    check_fails(fp8lab("convert " + (scratch / "model.safetensors.index.json") + to + out), 4, "a.weight");
    spit(scratch / "config.json", "[1]");
    spit(scratch / "model.safetensors", slurp(FP8LAB_SOURCE "/tests/unit/convert/golden/model.safetensors"));
    fs::remove(scratch / "model.safetensors.index.json");
    check_fails(fp8lab("convert " + (scratch / "model.safetensors") + to + out), 4, "config.json");
    CHECK_FALSE(fs::exists(scratch / "out"));
    for (const auto& entry : fs::directory_iterator(scratch.path))
        CHECK_FALSE(entry.path().filename().string().starts_with(".out"));
}
