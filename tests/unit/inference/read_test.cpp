// Which files are networks, which data fit them, the drawn digits, and the KV cache.
#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/inference/data.h"
#include "core/inference/kv_cache.h"
#include "core/nn/pictures/digits.h"
#include "tests/scratch.h"
#include "tests/unit/inference/made.h"
#include "tests/unit/tensors/safetensors_file.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

SafeTensors good_file() {
    SafeTensors file;
    file.metadata = {{"command_line", "--task digits --activation tanh --loss cross-entropy --seed 3"}};
    file.tensors["w1"] = {{3, 2}, {1, 2, 3, 4, 5, 6}};
    file.tensors["b1"] = {{3}, {7, 8, 9}};
    file.tensors["w2"] = {{1, 3}, {1, 1, 1}};
    file.tensors["b2"] = {{1}, {0}};
    return file;
}

}  // namespace

TEST_CASE("a checkpoint is read as its layers, activation and kind of output") {
    SafeTensors file = good_file();
    file.tensors["m.w1"] = {{3, 2}, {0, 0, 0, 0, 0, 0}};  // moments are not looked at
    const TrainedMlp n = mlp_of(file, "f");
    CHECK(n.sizes() == std::vector{2, 3, 1});
    CHECK(n.activation == Activation::tanh);
    CHECK(n.classifies);
    CHECK(n.weights() == 9);
    CHECK(n.layers[0].w.row(2)[1] == 6);
    CHECK(option_in(n.command_line, "--seed") == "3");
    CHECK(option_in(n.command_line, "--see").empty());
    CHECK(option_in(n.command_line, "seed").empty());
    file.metadata["command_line"] = "--activation relu --loss mse";
    CHECK_FALSE(mlp_of(file, "f").classifies);
}

TEST_CASE("a network whose weights are FP8 codes is read with their scales, and not without") {
    const Scratch scratch;
    const auto read = [&](const std::string& scale) {
        // w1: codes of 1, 2, -0.5 and 448. b1: two zeros.
        std::vector<std::uint8_t> data = {0x38, 0x40, 0xB0, 0x7E, 0, 0, 0, 0, 0, 0, 0, 0};
        const float value = 0.25F;
        data.resize(16);
        std::memcpy(data.data() + 12, &value, sizeof value);
        const std::string header = R"({"__metadata__":{"command_line":"--activation relu --loss mse"},)"
                                   R"("w1":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},)"
                                   R"("b1":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},")" +
                                   scale + R"(":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})";
        write_file(scratch.path / "m.safetensors", safetensors_file(header, data));
        return read_mlp(scratch.path / "m.safetensors");
    };
    CHECK(read("w1_scale").layers[0].w.values == std::vector<float>{0.25F, 0.5F, -0.125F, 112});
    CHECK_THROWS_WITH_AS(read("other"), doctest::Contains("tensor 'w1' holds F8_E4M3 codes without a scale"),
                         Error);
}

TEST_CASE("what is no network is refused with the tensor") {
    const auto refused = [](const std::function<void(SafeTensors&)>& change, const std::string& why) {
        SafeTensors file = good_file();
        change(file);
        CHECK_THROWS_WITH_AS(mlp_of(file, "f"), doctest::Contains(why.c_str()), Error);
    };
    refused([](SafeTensors& f) { f.metadata.clear(); }, "no checkpoint of train --save");
    refused([](SafeTensors& f) { f.tensors.erase("b2"); }, "tensor 'b2' is missing");
    refused([](SafeTensors& f) { f.tensors.erase("w1"); }, "tensor 'w1' is missing");
    refused([](SafeTensors& f) { f.tensors["w2"].shape = {3}; }, "'w2' must have 2 dimensions");
    refused([](SafeTensors& f) { f.tensors["w2"] = {{1, 2}, {1, 1}}; }, "w2 has 2 columns, w1 has 3 rows");
    refused([](SafeTensors& f) { f.tensors["b1"] = {{2}, {1, 1}}; }, "b1 has 2 elements, w1 has 3 rows");
    refused([](SafeTensors& f) { f.tensors["w1"].values[4] = NAN; }, "'w1', element 4, is not finite");
    refused([](SafeTensors& f) { f.metadata["command_line"] = "--model transformer --loss cross-entropy"; },
            "no activation");
    refused([](SafeTensors& f) { f.metadata["command_line"] = "--activation relu --loss hinge"; }, "no loss");
}

TEST_CASE("data come from the task or from files that fit") {
    TrainedMlp digits = made_network({64, 10});
    digits.command_line = "--task digits --seed 1";
    CHECK(data_of_task(digits).test.x.rows == 449);
    CHECK(data_of_task(digits).train_x.rows == 1348);
    TrainedMlp teacher = made_network({8, 3}, Activation::tanh);
    teacher.command_line = "--task teacher";
    const InferenceData rows = data_of_task(teacher);
    CHECK(rows.test.y.cols == 3);
    CHECK(rows.test.x.values.front() != rows.train_x.values.front());
    teacher.command_line = "--task npy:a,b";
    CHECK_THROWS_WITH_AS(data_of_task(teacher), doctest::Contains("8 columns"), Error);
    digits.layers.front().w.cols = 63;
    CHECK_THROWS_AS(data_of_task(digits), Error);
    for (const char* text : {"a,b", "npy:a", "npy:,b", "npy:a,", ""})
        CHECK_THROWS_WITH_AS(data_of_files(teacher, text, ""), doctest::Contains("npy:X,Y"), Error);
    CHECK_THROWS_AS(data_of_files(teacher, "npy:/no/x.npy,/no/y.npy", ""), Error);
}

TEST_CASE("the drawn digits are pictures of ten digits, the same in every call, and none is in both parts") {
    const DigitData& data = digit_data();
    CHECK(data.train.x.rows == 1348);
    CHECK(data.test.x.rows == 449);
    std::set<std::vector<float>> seen;
    std::array<int, 10> counts{};
    for (const DenseBatch* part : {&data.train, &data.test}) {
        CHECK(is_one_hot(part->y));
        for (std::size_t r = 0; r < part->x.rows; ++r) {
            const auto row = part->x.row(r);
            CHECK(seen.insert({row.begin(), row.end()}).second);
            bool grey = true;
            for (const float v : row) grey = grey && v >= 0 && v <= 1 && v * 16 == std::round(v * 16);
            CHECK(grey);
            for (std::size_t d = 0; d < 10; ++d) counts[d] += part->y.row(r)[d] == 1;
        }
    }
    for (const int count : counts) CHECK(count > 140);
    const DenseBatch fourth = digit_picture(3);
    CHECK(std::ranges::equal(fourth.x.values, data.test.x.row(0)));
    CHECK(digit_picture(3).x.values == fourth.x.values);
}

TEST_CASE("bytes and tokens of a KV cache") {
    const auto format = [](const char* id) -> const LowFormat& { return find_low_format(id, "test"); };
    const KvShape llama{32, 8, 128};
    CHECK(kv_bytes_per_token(llama, format("bf16")) == 131072);
    CHECK(kv_bytes_per_token(llama, format("e4m3")) == 65536);
    CHECK(kv_bytes_per_token(llama, format("nvfp4")) == 65536 * 4.5 / 8);
    CHECK(kv_bytes_per_token(llama, format("mxfp4")) == 65536 * 4.25 / 8);
    CHECK(kv_tokens(16e9, 131072) == 122070);
    CHECK(kv_tokens(16e9, 65536) == 244140);
    CHECK(kv_tokens(16e9, 36864) == 434027);
}

TEST_CASE(
    "the error of a KV cache: none in the reference, larger with fewer bits, outliers and sharp queries") {
    const auto error = [](const char* id, int outlier, int sharpness, int seed) {
        return kv_error({outlier, sharpness, seed}, find_low_format(id, "test"));
    };
    CHECK(error("bf16", 8, 3, 1).both_pct == 0);
    for (const int seed : {1, 2, 3}) {
        const KvError e4m3 = error("e4m3", 8, 3, seed), nvfp4 = error("nvfp4", 8, 3, seed),
                      mxfp4 = error("mxfp4", 8, 3, seed);
        CHECK((e4m3.both_pct > 10 && e4m3.both_pct < 18));
        CHECK((nvfp4.both_pct > 28 && nvfp4.both_pct < 38));
        CHECK((mxfp4.both_pct > 52 && mxfp4.both_pct < 72));
        for (const KvError& one : {e4m3, nvfp4, mxfp4}) {
            CHECK(one.k_pct > 2.5 * one.v_pct);
            CHECK(one.both_pct > one.k_pct);
        }
        CHECK(error("nvfp4", 1, 1, seed).both_pct < 0.6 * nvfp4.both_pct);
    }
}
