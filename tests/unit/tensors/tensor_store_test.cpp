#include "core/tensors/tensor_store.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "core/tensors/safetensors.h"
#include "core/tensors/weight_map.h"
#include "tests/scratch.h"
#include "tests/unit/tensors/safetensors_file.h"

using namespace fp8lab;

namespace {

using Data = std::vector<std::uint8_t>;

std::string put(const Scratch& scratch, const std::string& name, std::span<const std::byte> bytes) {
    write_file(scratch.path / name, bytes);
    return scratch / name;
}
std::string put_text(const Scratch& scratch, const std::string& name, const std::string& text) {
    return put(scratch, name, std::as_bytes(std::span(text)));
}

std::string refusal(const std::string& path) {
    try {
        const TensorStore store(path);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "opened";
}
bool says(const std::string& text, const std::string& part) {
    CAPTURE(text);
    return text.find(part) != text.npos;
}

std::vector<float> all_of(const TensorStore& store, const std::string& name) {
    const StoredTensor* const tensor = store.find(name);
    REQUIRE(tensor != nullptr);
    std::vector<float> values(tensor->values());
    store.read_rows(*tensor, 0, values);
    return values;
}

// A tensor of a header.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  std::size_t begin, std::size_t end) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// E4M3 codes 0x38 = 1 everywhere and scales as F32 in another tensor.
std::string fp8_file(const Scratch& scratch, std::size_t rows, std::size_t cols,
                     const std::string& scale_name, const std::string& scale_shape,
                     const std::vector<float>& scales) {
    Data data(rows * cols, 0x38);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(scales.data());
    data.insert(data.end(), bytes, bytes + scales.size() * 4);
    const std::string header =
        "{" +
        entry("w", "F8_E4M3", "[" + std::to_string(rows) + "," + std::to_string(cols) + "]", 0, rows * cols) +
        "," + entry(scale_name, "F32", scale_shape, rows * cols, data.size()) + "}";
    return put(scratch, "fp8.safetensors", safetensors_file(header, data));
}

}  // namespace

TEST_CASE("a store lists what a safetensors file has and reads any rows of it") {
    const Scratch scratch;
    SafeTensors file;
    std::vector<float> values(60);
    std::iota(values.begin(), values.end(), 1.0F);
    file.tensors["b"] = {{3, 4, 5}, values};
    file.tensors["a"] = {{}, {7}};
    const TensorStore store(put(scratch, "m.safetensors", to_safetensors(file)));
    REQUIRE(store.tensors().size() == 2);
    CHECK(store.tensors()[0].name == "a");
    const StoredTensor& b = store.tensors()[1];
    CHECK(b.matrix().rows == 12);
    CHECK(b.values() == 60);
    for (std::size_t first = 0; first < 12; ++first)
        for (std::size_t rows = 1; rows <= 12 - first; ++rows) {
            std::vector<float> read(rows * 5);
            store.read_rows(b, first, read);
            CHECK(read[0] == values[first * 5]);
            CHECK(read.back() == values[(first + rows) * 5 - 1]);
        }
    std::vector<float> part(7), beyond(65);
    CHECK_THROWS_AS(store.read_rows(b, 0, part), Error);
    CHECK_THROWS_AS(store.read_rows(b, 0, beyond), Error);
    CHECK_THROWS_AS(store.read_rows(b, 12, std::span(beyond).first(5)), Error);
}

TEST_CASE("a header of 640 bytes is no pickle, though both begin with 0x80 0x02") {
    const Scratch scratch;
    std::string header = "{" + entry("a", "F32", "[1]", 0, 4) + "}";
    header.resize(640, ' ');
    const TensorStore store(put(scratch, "m.safetensors", safetensors_file(header, Data(4))));
    CHECK(store.tensors().size() == 1);
}

TEST_CASE("integers are listed and not read") {
    const Scratch scratch;
    const TensorStore store(put(scratch, "m.safetensors",
                                safetensors_file("{" + entry("ids", "I64", "[1]", 0, 8) + "}", Data(8))));
    CHECK_FALSE(store.tensors()[0].is_float());
    std::vector<float> one(1);
    CHECK_THROWS_AS(store.read_rows(store.tensors()[0], 0, one), Error);
}

// published/savez.npz: numpy 1.24.2.
TEST_CASE("the arrays of an .npz and of an .npy, in either order") {
    const TensorStore store(FP8LAB_SOURCE "/tests/unit/tensors/published/savez.npz");
    CHECK(all_of(store, "weights") == std::vector<float>{1, -2, 3, 0.1F, 1e-40F, INFINITY});
    CHECK(all_of(store, "halves") == std::vector<float>{1, -2, 0.5F});
    CHECK(all_of(store, "scalar") == std::vector<float>{5});
    std::vector<float> thirds;
    for (int i = 0; i < 6; ++i) thirds.push_back(static_cast<float>(i / 3.0));
    CHECK(all_of(store, "doubles") == thirds);  // in Fortran order
    std::vector<float> second_row(3);
    store.read_rows(*store.find("doubles"), 1, second_row);
    CHECK(second_row == std::vector<float>{thirds[3], thirds[4], thirds[5]});
    CHECK_FALSE(store.find("ids")->is_float());
    const Scratch scratch;
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    const TensorStore npy(put(scratch, "acts.npy", to_npy(values, std::vector<std::size_t>{2, 3})));
    CHECK(all_of(npy, "acts") == values);
}

// published/savez_compressed.npz: numpy 1.24.2.
TEST_CASE("a compressed .npz has the values of one that is not, whole and by rows") {
    const TensorStore packed(FP8LAB_SOURCE "/tests/unit/tensors/published/savez_compressed.npz"),
        plain(FP8LAB_SOURCE "/tests/unit/tensors/published/savez.npz");
    CHECK(all_of(packed, "weights") == all_of(plain, "weights"));
    std::vector<float> row(3);
    packed.read_rows(*packed.find("weights"), 1, row);
    CHECK(row == std::vector<float>{0.1F, 1e-40F, INFINITY});
}

TEST_CASE("an .npy that cannot be read is refused by its dtype when it is opened") {
    const Scratch scratch;
    const auto file = [&](const char* dtype, std::size_t bytes) {
        std::string text =
            std::string("{'descr': '") + dtype + "', 'fortran_order': False, 'shape': (2L,), }";
        text.resize(117, ' ');
        return put_text(
            scratch, "x.npy",
            std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n" + std::string(bytes, '\0'));
    };
    for (const char* dtype : {">i4", "<i4", "<c8"})
        CHECK(says(
            refusal(file(dtype, dtype[1] == 'c' ? 16 : 8)),
            std::string("byte 20: dtype '") + dtype + "' is not supported; valid: <f2 <f4 <f8 >f2 >f4 >f8"));
    CHECK(all_of(TensorStore(file(">f4", 8)), "x") == std::vector<float>{0, 0});
    CHECK(all_of(TensorStore(file("<f4", 8)), "x") == std::vector<float>{0, 0});  // a shape of Python 2
}

TEST_CASE("FP8 codes are multiplied by blocks of 128 x 128, also partial ones") {
    const Scratch scratch;
    const TensorStore store(fp8_file(scratch, 200, 300, "w_scale_inv", "[2,3]", {0.5F, 2, 4, 8, 16, 32}));
    const std::vector<float> w = all_of(store, "w");
    const float expected[2][3] = {{0.5F, 2, 4}, {8, 16, 32}};
    for (std::size_t r = 0; r < 200; ++r)
        for (std::size_t c = 0; c < 300; ++c) REQUIRE(w[r * 300 + c] == expected[r / 128][c / 128]);
    std::vector<float> row(300);
    store.read_rows(*store.find("w"), 150, row);
    CHECK(row[130] == 16);
    CHECK(store.find("w_scale_inv")->role == TensorRole::scale);
    CHECK(store.find("w")->scale_words() == "w_scale_inv, one scale per 128 x 128");
}

TEST_CASE("FP8 codes are multiplied by one scale, or by one per row") {
    const Scratch scratch;
    for (const char* shape : {"[]", "[1]"}) {
        const TensorStore store(fp8_file(scratch, 2, 3, "w_scale", shape, {0.25F}));
        CHECK(all_of(store, "w") == std::vector<float>(6, 0.25F));
    }
    for (const char* shape : {"[2,1]", "[2]"}) {
        const TensorStore store(fp8_file(scratch, 2, 3, "w_scale", shape, {0.25F, 3}));
        CHECK(all_of(store, "w") == std::vector<float>{0.25F, 0.25F, 0.25F, 3, 3, 3});
    }
    const TensorStore alone(
        put(scratch, "alone.safetensors",
            safetensors_file("{" + entry("w", "F8_E4M3", "[2]", 0, 2) + "}", {0x38, 0x40})));
    CHECK(all_of(alone, "w") == std::vector<float>{1, 2});  // as stored
}

TEST_CASE("scales that do not fit refuse their tensor, and NaN, infinite and negative ones are counted") {
    const Scratch scratch;
    const TensorStore wrong(fp8_file(scratch, 200, 300, "w_scale_inv", "[3,2]", {1, 1, 1, 1, 1, 1}));
    const StoredTensor& w = *wrong.find("w");
    CHECK(w.role == TensorRole::refused);
    CHECK(w.why == "scales of shape (3, 2) fit no division of (200, 300); transposed they do");
    CHECK(w.is_broken);
    // Blocks of 64 x 64 may be right, and are not known.
    const TensorStore blocks(fp8_file(scratch, 128, 256, "w_scale_inv", "[2,4]", std::vector<float>(8, 1)));
    CHECK(blocks.find("w")->why == "scales of shape (2, 4) fit no division of (128, 256) that is known");
    CHECK_FALSE(blocks.find("w")->is_broken);
    CHECK_THROWS_WITH_AS(require_values(wrong, w), doctest::Contains("tensor 'w': scales of shape"), Error);
    const TensorStore more(fp8_file(scratch, 1, 2, "w_scale", "[3]", {1, 1, 1}));
    CHECK(more.find("w")->role == TensorRole::refused);
    const TensorStore odd(fp8_file(scratch, 5, 1, "w_scale", "[5,1]", {NAN, INFINITY, -1.0F, 0, 0x1p-130F}));
    CHECK(odd.scale_health(*odd.find("w")) ==
          ScaleHealth{.scales = 5, .nan = 1, .inf = 1, .zero = 1, .subnormal = 1, .negative = 1});
    std::vector<float> values(5);
    CHECK(odd.read_rows(*odd.find("w"), 0, values).beyond == 0);  // the infinite one is the scale's
    CHECK(values[1] == INFINITY);
}

TEST_CASE("a model in several files is opened by its index, scales in another file included") {
    const Scratch scratch;
    put(scratch, "m-1.safetensors",
        safetensors_file("{" + entry("w", "F8_E4M3", "[1,2]", 0, 2) + "}", {0x38, 0x40}));
    put(scratch, "m-2.safetensors",
        safetensors_file("{" + entry("w_scale_inv", "F32", "[1,1]", 0, 4) + "}", {0, 0, 0, 0x41}));
    const std::string index = put_text(
        scratch, "m.safetensors.index.json",
        R"({"metadata":{"total_size":6},"weight_map":{"w":"m-1.safetensors","w_scale_inv":"m-2.safetensors"}})");
    const TensorStore store(index);
    CHECK(store.files().size() == 2);
    CHECK(all_of(store, "w") == std::vector<float>{8, 16});
    const auto with = [&](const std::string& map) {
        return refusal(put_text(scratch, "x.safetensors.index.json", "{\"weight_map\":" + map + "}"));
    };
    CHECK(says(with(R"({"w":"m-2.safetensors","w_scale_inv":"m-2.safetensors"})"),
               "byte 15: tensor 'w' is not in 'm-2.safetensors'"));
    CHECK(says(with(R"({"v":"m-1.safetensors"})"), "tensor 'v' is not in"));
    CHECK(says(with(R"({"w":"missing.safetensors"})"), "missing.safetensors: No such file"));
    put(scratch, "m-3.safetensors",
        safetensors_file("{" + entry("w", "F8_E4M3", "[1,2]", 0, 2) + "}", {0x38, 0x40}));
    CHECK(says(with(R"({"w":"m-1.safetensors","w_scale_inv":"m-3.safetensors"})"),
               "is in 'm-1.safetensors' too"));
}

TEST_CASE("an index that names a file outside its folder is refused with tensor and byte") {
    for (const char* file : {"../m.safetensors", "/etc/m.safetensors", "a/b.safetensors", "..", "", "m.bin",
                             "a\\\\b.safetensors", "a\\u0000.safetensors"}) {
        CAPTURE(file);
        const std::string text = std::string(R"({"weight_map": {"w": ")") + file + "\"}}";
        try {
            parse_weight_map(text, "x.index.json");
            FAIL("was read");
        } catch (const Error& error) {
            CHECK(says(error.what(), "x.index.json: byte 16: tensor 'w': '"));
        }
    }
    for (const char* text :
         {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"w":1}})"})
        CHECK_THROWS_AS(parse_weight_map(text, "x"), Error);
}

TEST_CASE("malformed files are refused with tensor and byte") {
    const Scratch scratch;
    const auto with = [&](const std::string& entries, std::size_t bytes) {
        return refusal(put(scratch, "bad.safetensors", safetensors_file("{" + entries + "}", Data(bytes))));
    };
    CHECK(says(with(entry("a", "F32", "[2]", 0, 8) + "," + entry("b", "F32", "[2]", 4, 12), 12),
               "tensor 'b' leaves a gap or overlaps"));
    CHECK(says(with(entry("a", "F32", "[4611686018427387904,4]", 0, 8), 8),
               "byte 9: tensor 'a': the shape is too large"));
    CHECK(says(with(entry("a", "I64", "[4611686018427387904,4]", 0, 8), 8),
               "tensor 'a': the shape is too large"));
    CHECK(says(with(entry("a", "F32", "[3]", 0, 8), 8), "tensor 'a': the shape needs 12 bytes"));
    for (const char* name : {"m.pt", "m.pth", "m.bin", "m.ckpt"})
        CHECK(says(refusal(put_text(scratch, name, "anything")), "holds code; save it as .safetensors"));
    CHECK(says(refusal(put_text(scratch, "m.dat", "\x80\x02}q")), "holds code"));
    CHECK(says(refusal(scratch / "none.safetensors"), "No such file"));
    CHECK(says(refusal(scratch.path.string()), "is a folder"));
}

TEST_CASE("a file that changes while it is open is an error, not a crash") {
    const Scratch scratch;
    SafeTensors file;
    file.tensors["a"] = {{4}, {1, 2, 3, 4}};
    const std::string path = put(scratch, "m.safetensors", to_safetensors(file));
    const TensorStore store(path);
    std::filesystem::resize_file(path, 20);
    std::vector<float> values(4);
    CHECK_THROWS_WITH_AS(store.read_rows(store.tensors()[0], 0, values),
                         (path + ": was changed while it was read; open it again").c_str(), Error);
}

TEST_CASE("several files are one list, each name behind its file's") {
    const Scratch scratch;
    std::filesystem::create_directory(scratch.path / "later");
    SafeTensors a, b;
    a.tensors["w"] = {{2}, {1, 2}}, a.tensors["0.v"] = {{1}, {3}};
    b.tensors["w"] = {{3}, {4, 5, 6}};
    const std::filesystem::path one = put(scratch, "step.1.safetensors", to_safetensors(a)),
                                two = put(scratch, "later/step.1.safetensors", to_safetensors(b)),
                                row = put(scratch, "row.npy",
                                          to_npy(std::vector<float>{7, 8}, std::vector<std::size_t>{2}));
    const TensorStore store = TensorStore::of_files(std::vector{one, two, row});
    std::vector<std::string> names;
    for (const StoredTensor& tensor : store.tensors()) names.push_back(tensor.name);
    CHECK(names == std::vector<std::string>{"row/row", "step.1-2/w", "step.1/0.v", "step.1/w"});
    CHECK(all_of(store, "step.1/w") == std::vector<float>{1, 2});
    CHECK(all_of(store, "step.1-2/w") == std::vector<float>{4, 5, 6});
    CHECK(all_of(store, "row/row") == std::vector<float>{7, 8});
    CHECK(store.find("step.1/0.v")->own_name() == "0.v");
    CHECK(store.listed() == 3);
    const TensorStore single = TensorStore::of_files(std::vector{one});
    CHECK(single.find("w") != nullptr);
    CHECK(single.find("w")->own_name() == "w");
    CHECK(single.listed() == 1);
    CHECK_THROWS_WITH_AS(TensorStore::of_files({}), doctest::Contains("no file is named"), Error);
    CHECK_THROWS_WITH_AS(TensorStore::of_files(std::vector{one, scratch.path / "no.npy"}),
                         doctest::Contains("no.npy"), Error);
}

TEST_CASE("FP8 codes in a list of files keep the scales of their own file") {
    const Scratch scratch;
    const auto file = [&](const char* name, float scale) {
        std::vector<std::uint8_t> data = {0x38, 0x38, 0, 0, 0, 0};  // two codes of 1, then the scale
        std::memcpy(data.data() + 2, &scale, sizeof scale);
        return std::filesystem::path(put(scratch, name,
                                         safetensors_file("{" + entry("w", "F8_E4M3", "[1,2]", 0, 2) + "," +
                                                              entry("w_scale", "F32", "[1]", 2, 6) + "}",
                                                          data)));
    };
    const TensorStore store =
        TensorStore::of_files(std::vector{file("a.safetensors", 2), file("b.safetensors", 3)});
    CHECK(all_of(store, "a/w") == std::vector<float>{2, 2});
    CHECK(all_of(store, "b/w") == std::vector<float>{3, 3});
}
