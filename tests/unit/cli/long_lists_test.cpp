// Models of many tensors: read in about linear time, and told in short lines.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

constexpr int kMany = 100'000;

// In an order that is not that of the names: layers.10 before layers.2 in one, not in the other.
std::string name_of(int i) {
    return "model.layers." + std::to_string(i * 7 % kMany) + ".mlp.experts.w.weight";
}

// `count` tensors of one value.
void write_model(const std::string& path, int count) {
    std::string header = "{", data;
    for (int i = 0; i < count; ++i)
        header += (i ? ",\"" : "\"") + name_of(i) + R"(":{"dtype":"BF16","shape":[1],"data_offsets":[)" +
                  std::to_string(2 * i) + "," + std::to_string(2 * i + 2) + "]}";
    header += "}";
    data.resize(2 * static_cast<std::size_t>(count), '\x3F');
    std::string size(8, '\0');
    for (std::size_t i = 0; i < 4; ++i) size[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    spit(path, size + header + data);
}

}  // namespace

TEST_CASE("the index of a model with 100,000 tensors is read, and a tensor that is not there is named") {
    const Scratch scratch;
    write_model(scratch / "m.safetensors", kMany);
    std::string index = R"({"metadata":{"total_size":1},"weight_map":{)";
    for (int i = kMany; i-- > 0;) index += "\n\"" + name_of(i) + "\": \"m.safetensors\",";
    const std::size_t place = index.size() + 1;
    spit(scratch / "m.safetensors.index.json", index + "\n\"zz\": \"m.safetensors\"}}");
    const auto begun = std::chrono::steady_clock::now();
    const Finished run = fp8lab("inspect " + (scratch / "m.safetensors.index.json"));
    CHECK(run.code == 4);
    CHECK(run.err == "fp8lab: " + (scratch / "m.safetensors.index.json") + ": byte " + std::to_string(place) +
                         ": tensor 'zz' is not in 'm.safetensors'\n");
    // Quadratic it was a minute of this; a watchdog, not a measurement.
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(30));
}

TEST_CASE("quantize of a file with 100,000 tensors names the first ten and how many more") {
    const Scratch scratch;
    write_model(scratch / "m.safetensors", kMany);
    const Finished run = fp8lab("quantize " + (scratch / "m.safetensors") + " --recipe bf16");
    CHECK(run.code == 2);
    CHECK(run.err.find("has 100,000 tensors; name one, as FILE:TENSOR: model.layers.0.mlp") !=
          std::string::npos);
    CHECK(run.err.ends_with(" and 99,990 more\n"));
    CHECK(run.err.size() < 1000);
    const Finished unknown = fp8lab("quantize " + (scratch / "m.safetensors") + ":w --recipe bf16");
    CHECK(unknown.err.find("unknown tensor 'w'; valid: model.layers.0.") != std::string::npos);
    CHECK(unknown.err.ends_with(" and 99,990 more\n"));
    const Finished one =
        fp8lab("quantize " + (scratch / "m.safetensors") + ":" + name_of(99'999) + " --recipe bf16");
    CHECK(one.code == 0);
}

TEST_CASE("a name of a megabyte in a message is cut") {
    const Scratch scratch;
    const std::string name(1 << 20, 'n');
    const std::string header = "{\"" + name + R"(":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}})";
    std::string size(8, '\0');
    for (std::size_t i = 0; i < 4; ++i) size[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    spit(scratch / "x.safetensors", size + header + bytes_of({1}));
    const Finished run = fp8lab("quantize " + (scratch / "x.safetensors") + " --recipe bf16");
    CHECK(run.code == 4);
    CHECK(run.err.size() < 1000);
    CHECK(run.err.find("the shape needs 36 bytes, data_offsets give 4") != std::string::npos);
}
