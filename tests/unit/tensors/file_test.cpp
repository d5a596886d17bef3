#include "core/tensors/file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "core/tensors/safetensors.h"
#include "tests/scratch.h"
#include "tests/unit/tensors/safetensors_file.h"

using namespace fp8lab;

namespace {

struct Refusal {
    ErrorKind kind;
    std::string message;
};
Refusal refusal(const std::string& text) {
    try {
        read_tensor(text);
    } catch (const Error& error) {
        return {error.kind(), error.what()};
    }
    return {ErrorKind::failed, "read"};
}

std::string put(const Scratch& scratch, const std::string& name, std::span<const std::byte> bytes) {
    write_file(scratch.path / name, bytes);
    return scratch / name;
}

}  // namespace

TEST_CASE("the last dimension of a tensor is its columns, all others are rows") {
    const auto rows_cols = [](std::vector<std::size_t> shape) {
        const MatrixShape matrix = as_matrix(shape);
        return std::pair{matrix.rows, matrix.cols};
    };
    using Pair = std::pair<std::size_t, std::size_t>;
    CHECK(rows_cols({}) == Pair{1, 1});
    CHECK(rows_cols({7}) == Pair{1, 7});
    CHECK(rows_cols({3, 7}) == Pair{3, 7});
    CHECK(rows_cols({2, 3, 7}) == Pair{6, 7});
}

TEST_CASE("an .npy is read with its shape and its file's name") {
    const Scratch scratch;
    const std::vector<float> values = {1, 2, 3, 4, 5, NAN};
    const std::string path = put(scratch, "acts.npy", to_npy(values, std::vector<std::size_t>{2, 3}));
    const Tensor tensor = read_tensor(path);
    CHECK(tensor.rows == 2);
    CHECK(tensor.cols == 3);
    CHECK(tensor.name == "acts");
    CHECK(tensor.values[4] == 5);
    CHECK(std::isnan(tensor.values[5]));
    const TensorSpec spec{
        .kind = "laplace", .outliers = 3, .file = path};  // the file, and nothing of the rest
    CHECK(make_tensor(spec).values[4] == 5);
    CHECK(make_tensor(spec).outliers.empty());
    const Refusal named = refusal(path + ":x");
    CHECK(named.kind == ErrorKind::usage);
    CHECK(named.message == path + ": an .npy has one tensor and no name for it: leave out ':x'");
}

TEST_CASE("a tensor of a safetensors file is read by its name, the only one needs none") {
    const Scratch scratch;
    const SafeTensors two{{{"b", {{2, 1, 2}, {1, 2, 3, 4}}}, {"a:0", {{1}, {9}}}}, {}};
    const std::string path = put(scratch, "two.safetensors", to_safetensors(two));
    const Tensor b = read_tensor(path + ":b");
    CHECK(b.rows == 2);
    CHECK(b.cols == 2);
    CHECK(b.values == std::vector<float>{1, 2, 3, 4});
    CHECK(b.name == "b");
    CHECK(read_tensor(path + ":a:0").values == std::vector<float>{9});  // a tensor's name may hold a colon
    const Refusal unnamed = refusal(path), unknown = refusal(path + ":c");
    CHECK(unnamed.kind == ErrorKind::usage);
    CHECK(unnamed.message == path + ": has 2 tensors; name one, as FILE:TENSOR: a:0 b");
    CHECK(unknown.kind == ErrorKind::usage);
    CHECK(unknown.message == path + ": unknown tensor 'c'; valid: a:0 b");

    const SafeTensors one{{{"only", {{}, {7}}}}, {}};
    CHECK(read_tensor(put(scratch, "one.safetensors", to_safetensors(one))).name == "only");
    const std::string colon =
        put(scratch, "o:ne.safetensors", to_safetensors(one));  // a file's name may, too
    CHECK(read_tensor(colon).values == std::vector<float>{7});
    CHECK(read_tensor(colon + ":only").values == std::vector<float>{7});
}

TEST_CASE("files that are missing, broken or without elements are refused with place and reason") {
    const Scratch scratch;
    const auto is_input = [](const Refusal& got, const std::string& message) {
        CHECK(got.kind == ErrorKind::input);
        CHECK(got.message == message);
    };
    const std::string nowhere = scratch / "nowhere.safetensors";
    is_input(refusal(nowhere), nowhere + ": No such file or directory");
    is_input(refusal(nowhere + ":t"), nowhere + ": No such file or directory");
    CHECK(refusal(scratch.path.string()).kind == ErrorKind::input);  // a folder
    const std::string empty = put(scratch, "empty.npy", {});
    is_input(refusal(empty), empty + ": byte 0: not an .npy file (no \\x93NUMPY)");
    const std::string none = put(scratch, "none.npy", to_npy({}, std::vector<std::size_t>{0, 3}));
    is_input(refusal(none), none + ": tensor 'none' has no elements");
    const std::string hollow = put(scratch, "hollow.safetensors", safetensors_file("{}"));
    is_input(refusal(hollow), hollow + ": byte 8: the file has no tensor");
    const std::string text = put(scratch, "notes.txt", std::as_bytes(std::span("these are notes", 15)));
    is_input(refusal(text), text + ": byte 0: not a safetensors file: header length 8241904413164529780");
    auto bytes = to_safetensors({{{"t", {{3}, {1, 2, 3}}}}, {}});
    bytes.pop_back();
    const std::string cut = put(scratch, "cut.safetensors", bytes);
    is_input(refusal(cut), cut + ": byte 9: tensor 't': data_offsets are not within the 11 bytes of data");
}

TEST_CASE("one tensor out of a sparse file of 2 GiB is read without the rest") {
    const Scratch scratch;
    constexpr std::size_t kBig = (std::size_t{1} << 31) - 16;
    const std::string header = "{\"big\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(kBig / 4) +
                               "],\"data_offsets\":[0," + std::to_string(kBig) +
                               "]},\"last\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[" +
                               std::to_string(kBig) + "," + std::to_string(kBig + 16) + "]}}";
    const std::string path = put(scratch, "sparse.safetensors", safetensors_file(header));
    std::filesystem::resize_file(path, 8 + header.size() + kBig + 16);
    CHECK(read_tensor(path + ":last").values == std::vector<float>(4));
    CHECK(refusal(path).kind == ErrorKind::usage);
}
