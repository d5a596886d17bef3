#include "core/tensors/safetensors.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/unit/tensors/safetensors_file.h"

using namespace fp8lab;

TEST_CASE("safetensors read what they wrote") {
    SafeTensors file;
    file.metadata["step"] = "7";
    file.tensors["a"] = {{2, 3}, {1, -2, 3, 0.1F, 1e-40F, INFINITY}};
    file.tensors["empty"] = {{0, 4}, {}};
    file.tensors["scalar"] = {{}, {5}};
    const SafeTensors back = parse_safetensors(to_safetensors(file), "test");
    CHECK(back.metadata == file.metadata);
    REQUIRE(back.tensors.size() == 3);
    CHECK(back.tensors.at("a").values == file.tensors["a"].values);
    CHECK(back.tensors.at("a").shape == std::vector<std::size_t>{2, 3});
    CHECK(back.tensors.at("empty").shape == std::vector<std::size_t>{0, 4});
    CHECK(back.tensors.at("scalar").values == std::vector<float>{5});
}

TEST_CASE("every dtype is read as other writers store it, at any alignment") {
    struct Row {
        const char* dtype;
        std::vector<std::uint8_t> data;
        std::vector<float> values;
    };
    for (const Row& row :
         {Row{"F64", {0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0xC0}, {1, -2}},
          Row{"F32", {0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}, {1, -2}}, Row{"F16", {0, 0x3C, 0, 0xC0}, {1, -2}},
          Row{"BF16", {0x80, 0x3F, 0, 0xC0}, {1, -2}},
          Row{"F8_E4M3", {0x7E, 0x01, 0xB8}, {448, 0x1p-9F, -1}},     // 0x7E is the last code before NaN
          Row{"F8_E5M2", {0x7B, 0x01, 0xBC}, {57344, 0x1p-16F, -1}},  // 0x7B is the last code before Inf
          Row{"F8_E8M0", {0, 127, 254}, {0x1p-127F, 1, 0x1p127F}}}) {
        CAPTURE(std::string(row.dtype));
        for (const char* padding : {"", " ", "  ", "   "}) {
            const std::string header = std::string("{\"t\":{\"dtype\":\"") + row.dtype + "\",\"shape\":[" +
                                       std::to_string(row.values.size()) + "],\"data_offsets\":[0," +
                                       std::to_string(row.data.size()) + "]}}" + padding;
            CHECK(parse_safetensors(safetensors_file(header, row.data), "test").tensors.at("t").values ==
                  row.values);
        }
    }
    const auto nan =
        safetensors_file(R"({"t":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", {0x7F});
    CHECK(std::isnan(parse_safetensors(nan, "test").tensors.at("t").values[0]));
}

TEST_CASE("the index of a file touches its header only and leaves tensors of other dtypes alone") {
    const auto bytes = safetensors_file(
        R"({"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"w":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[8,10]}})",
        {1, 2, 3, 4, 5, 6, 7, 8, 0x38, 0x40});
    const SafeTensorsIndex index = index_safetensors(bytes, "file");
    REQUIRE(index.tensors.size() == 2);
    const SafeTensorInfo& w = index.tensors.at("w");
    CHECK(w.dtype == "F8_E4M3");
    CHECK(w.end == bytes.size());
    CHECK(w.begin == bytes.size() - 2);
    CHECK(read_safetensor(bytes, w, "file") == std::vector<float>{1, 2});
    CHECK_THROWS_WITH_AS(read_safetensor(bytes, index.tensors.at("ids"), "file"),
                         "file: byte 124: dtype I64 is not one of F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 "
                         "F8_E4M3FNUZ F8_E5M2FNUZ F6_E2M3 F6_E3M2 F4",
                         Error);
}

TEST_CASE("a header of 20 MB is read, and one above the format's 100 MB is not") {
    const std::string long_text(20'000'000, 'a');
    const auto bytes =
        safetensors_file("{\"__metadata__\":{\"a\":\"" + long_text +
                             "\"},\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                         {7});
    const SafeTensorsIndex index = index_safetensors(bytes, "file");
    CHECK(index.metadata.at("a") == long_text);
    CHECK(index.tensors.at("t").end == bytes.size());
    const RandomFile file({bytes.begin(), bytes.end()}, "file");
    CHECK(index_safetensors(file).tensors.at("t").begin == bytes.size() - 1);
    std::vector<std::byte> too_long(8);
    const std::uint64_t length = 100'000'001;
    std::memcpy(too_long.data(), &length, sizeof length);
    CHECK_THROWS_WITH_AS(index_safetensors(too_long, "file"),
                         "file: byte 0: not a safetensors file: header length 100000001", Error);
}

TEST_CASE("the head of a safetensors file says how large the file is") {
    const auto bytes = safetensors_file(
        R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
        {1, 2, 3, 4, 5});
    const std::span<const std::byte> whole(bytes);
    CHECK(safetensors_size({}, "file") == 8);
    CHECK(safetensors_size(whole.first(20), "file") == bytes.size() - 5);
    CHECK(safetensors_size(whole.first(bytes.size() - 5), "file") == bytes.size());
    CHECK(safetensors_size(whole, "file") == bytes.size());
    CHECK_THROWS_AS(safetensors_size(std::vector<std::byte>(8, std::byte{0xFF}), "file"), Error);
    CHECK_THROWS_AS(safetensors_size(std::vector<std::byte>(8), "file"), Error);  // a header of no bytes
}

TEST_CASE("a broken safetensors file is refused with its place") {
    const auto why_bytes = [](std::span<const std::byte> bytes) {
        try {
            parse_safetensors(bytes, "file");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            CHECK(error.where() == "file");
            return error.why();
        }
        return std::string("accepted");
    };
    const auto why = [&](std::string_view header, std::size_t data = 0) {
        return why_bytes(safetensors_file(header, std::vector<std::uint8_t>(data)));
    };
    CHECK(why_bytes(std::vector<std::byte>(5)) == "byte 5: truncated: the 8-byte header length is missing");
    CHECK(why_bytes(std::vector<std::byte>(8, std::byte{1})) ==
          "byte 0: not a safetensors file: header length 72340172838076673");
    const auto whole = safetensors_file("{}  ");
    CHECK(why_bytes(std::span(whole).first(10)) == "byte 10: truncated: the header should have 4 bytes");
    CHECK(why("{") == "byte 10: the header is not valid JSON");
    CHECK(why("[]") == "byte 8: the header is not a JSON object");
    CHECK(why(R"({"t":1e999})") == "byte 8: the header is not valid JSON: a number is out of range");
    CHECK(why("{}", 4) == "byte 10: bytes that belong to no tensor");
    CHECK(why(R"({"t":7})") == "byte 9: tensor 't': no dtype");
    CHECK(why(R"({"t":{"dtype":5}})") == "byte 9: tensor 't': no dtype");
    CHECK(why(R"({"t":{"dtype":"F32","shape":3}})") == "byte 9: tensor 't': no array 'shape'");
    CHECK(why(R"({"\u0074":{"dtype":"F32"}})") == "byte 8: tensor 't': no array 'shape'");
    CHECK(why(R"({"__metadata__":[]})") == "byte 9: tensor '__metadata__': is not an object");
    CHECK(why(R"({"__metadata__":{"a":1}})") == "byte 9: tensor '__metadata__': 'a' is not a string");
    CHECK(why(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1) ==
          "byte 61: dtype I8 is not one of F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ "
          "F6_E2M3 F6_E3M2 F4");
    CHECK(why(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4) ==
          "byte 9: tensor 't': the shape needs 8 bytes, data_offsets give 4");
    CHECK(why(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})") ==
          "byte 9: tensor 't': data_offsets are not within the 0 bytes of data");
    CHECK(why(R"({"t":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})") ==
          "byte 9: tensor 't': the shape is too large");
    CHECK(why(R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4) ==
          "byte 9: tensor 't': 'shape' holds more than sizes");
    CHECK(
        why(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
            4) == "byte 119: tensor 'b' leaves a gap or overlaps");
}
