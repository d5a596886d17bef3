// The list of allocations against what a GPU really allocated, and against a small network counted by hand.
#include "core/nn/memory_plan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files/files.h"
#include "tests/json.h"

using namespace fp8lab;
using namespace fp8lab::cuda;

namespace {

constexpr double kPage = 2 << 20;

TrainSpec network(std::vector<int> layers, int batch, StateType state = StateType::fp32) {
    TrainSpec spec;
    spec.task = TaskKind::noise;
    spec.layers = std::move(layers);
    spec.batch = batch;
    spec.state = state;
    return spec;
}

Engine engine_on_hopper(const std::string& recipe) {
    return recipe == "bf16" ? Engine::bf16 : recipe.starts_with("nvfp4") ? Engine::emulated : Engine::fp8;
}

ArmMemory memory_of(const TrainSpec& spec, const std::string& recipe) {
    return {spec, parse_recipe(recipe), engine_on_hopper(recipe), spec.batch};
}

}  // namespace

TEST_CASE("every recorded arm: the calculated bytes are within 2 % or two pages of the allocated ones") {
    int arms = 0;
    for (const auto& file : std::filesystem::directory_iterator(asset("recordings"))) {
        if (!file.is_regular_file()) continue;  // the folder of the recordings of many GPUs
        const auto recording = parsed(read_text(file.path()));
        if (!recording.contains("results")) continue;
        for (const auto& result : recording["results"]) {
            if (result["bench"] != "step") continue;
            for (const auto& arm : result["arms"]) {
                const std::string recipe = arm["recipe"];
                const bool narrow = result.value("state", "fp32") == "bf16";
                const TrainSpec spec =
                    network(result["layers"], result["batch"], narrow ? StateType::bf16 : StateType::fp32);
                const double allocated = arm["memory_bytes"],
                             calculated = static_cast<double>(memory_of(spec, recipe).device_bytes());
                CAPTURE(file.path().filename().string());
                CAPTURE(spec.layers);
                CAPTURE(spec.batch);
                CAPTURE(recipe);
                CAPTURE(calculated);
                CAPTURE(allocated);
                CHECK(std::fabs(calculated - allocated) <= std::max(0.02 * allocated, 2 * kPage));
                ++arms;
            }
        }
    }
    CHECK(arms >= 17);
}

TEST_CASE(
    "every recorded transformer: the calculated bytes are within 2 % or two pages of the allocated ones") {
    int arms = 0;
    for (const auto& file : std::filesystem::directory_iterator(asset("recordings"))) {
        if (!file.is_regular_file()) continue;  // the folder of the recordings of many GPUs
        const auto recording = parsed(read_text(file.path()));
        if (!recording.contains("results")) continue;
        for (const auto& result : recording["results"]) {
            const bool training = result["bench"] == "train";
            if (!training && result["bench"] != "blocks") continue;
            TrainOptions options;
            options.model = "transformer";
            options.batch = result["batch"];
            for (const auto& [name, size] : result["sizes"].items()) options.sizes[name] = size;
            if (training) {
                options.task = "zipf:" + std::to_string(result["language"]["vocabulary"].get<int>());
                options.sizes["heads"] = 12, options.sizes["ffn"] = 2048, options.sizes["tie"] = 1;
            }
            for (const auto& arm : result["arms"]) {
                const std::string recipe = arm["recipe"];
                TrainSpec spec = make_train_spec(options);
                if (!training) spec.clip = 0;
                const ArmMemory memory(spec, parse_recipe(recipe), engine_on_hopper(recipe), spec.batch,
                                       flash_attention(spec, spec.batch), Sharing::by_size);
                // The blocks alone have three matrices more: x, dy and dx in BF16.
                const double outside =
                    training ? 0.0 : 3.0 * 2 * spec.batch * spec.sizes.at("context") * spec.sizes.at("d");
                const double allocated = arm["memory_bytes"],
                             calculated = static_cast<double>(memory.device_bytes()) + outside;
                CAPTURE(file.path().filename().string());
                CAPTURE(result["sizes"].dump());
                CAPTURE(recipe);
                CAPTURE(calculated);
                CAPTURE(allocated);
                CHECK(std::fabs(calculated - allocated) <= std::max(0.02 * allocated, 2 * kPage));
                ++arms;
            }
        }
    }
    CHECK(arms >= 24);
}

TEST_CASE("a layer of 32 to 48 with a batch of 16, counted by hand") {
    const TrainSpec spec = network({32, 48}, 16);
    const ArmMemory bf16 = memory_of(spec, "bf16"), fp8 = memory_of(spec, "delayed");
    const auto both = [&](ArmPart part, TensorClass tensor, std::size_t wide, std::size_t narrow) {
        CHECK(bf16.bytes(part, 1, tensor) == wide);
        CHECK(fp8.bytes(part, 1, tensor) == narrow);
    };
    both(ArmPart::first, TensorClass::x, 16 * 32 * 2, 16 * 32);
    both(ArmPart::second, TensorClass::x, 0, 16 * 32);
    both(ArmPart::first, TensorClass::w, 48 * 32 * 2, 48 * 32);
    both(ArmPart::second, TensorClass::w, 0, 0);  // the first layer has no dgrad
    both(ArmPart::first, TensorClass::dy, 16 * 48 * 2, 0);
    both(ArmPart::second, TensorClass::dy, 0, 16 * 48);
    for (const ArmPart part : {ArmPart::master, ArmPart::m, ArmPart::v})
        both(part, TensorClass::x, 48 * 32 * 4, 48 * 32 * 4);
    both(ArmPart::weight_gradient, TensorClass::x, 0, 0);  // inside the optimiser up to a batch of 64
    CHECK(memory_of(network({32, 48}, 80), "bf16").bytes(ArmPart::weight_gradient, 1) == 48 * 32 * 4);
    both(ArmPart::output, TensorClass::x, 16 * 48 * 2, 16 * 48 * 2);
    both(ArmPart::input_gradient, TensorClass::x, 0, 0);
    both(ArmPart::bias, TensorClass::x, 48 * 4, 48 * 4);
    // Short steps overlap: the next input is cast beside this one.
    CHECK(bf16.bytes(ArmPart::first, 0) == 16 * 32 * 2);
    CHECK(fp8.bytes(ArmPart::second, 0) == 16 * 32);
    CHECK(bf16.device_bytes() == static_cast<std::size_t>(kPage));  // all small: one page
}

TEST_CASE("dimensions are padded to 16, weights in BF16 have no copy, SGD has no moments") {
    CHECK(memory_of(network({17, 33}, 1), "bf16").bytes(ArmPart::master, 1) == 32 * 48 * 4);
    const ArmMemory narrow = memory_of(network({32, 48}, 128, StateType::bf16), "bf16");
    CHECK(narrow.bytes(ArmPart::first, 1, TensorClass::w) == 0);
    CHECK(narrow.bytes(ArmPart::master, 1) == 32 * 48 * 2);
    CHECK(narrow.bytes(ArmPart::weight_gradient, 1) == 32 * 48 * 2);
    TrainSpec sgd = network({32, 48}, 128);
    sgd.optimizer = OptimizerKind::sgd;
    CHECK(memory_of(sgd, "bf16").bytes(ArmPart::m, 1) == 0);
    CHECK(memory_of(sgd, "bf16").bytes(ArmPart::bias_v, 1) == 0);
}

TEST_CASE("moments in 16 bits take two bytes a value, those in 8 bits one and four for each 128") {
    const TrainSpec spec = network({30, 50}, 16);
    const auto bytes = [&](const std::string& recipe, ArmPart part) {
        return memory_of(spec, recipe).bytes(part, 1);
    };
    CHECK(bytes("delayed:m=bf16", ArmPart::m) == 64 * 32 * 2);
    CHECK(bytes("delayed:m=bf16", ArmPart::v) == 64 * 32 * 4);
    CHECK(bytes("delayed:m=e5m2:v=e4m3", ArmPart::m) == 12 * 128 + 12 * 4);  // 1500 values without padding
    CHECK(bytes("delayed:m=e5m2:v=e4m3", ArmPart::v) == 12 * 128 + 12 * 4);
    CHECK(bytes("delayed:v=e4m3", ArmPart::bias_v) == 64 * 4);
    CHECK(bytes("delayed:v=e4m3", ArmPart::weight_gradient) ==
          64 * 32 * 4);  // beside the update, which rounds
    CHECK(memory_of(spec, "delayed:v=e4m3").bytes(ArmPart::moment_counts) == 16);
    CHECK(memory_of(spec, "delayed").bytes(ArmPart::moment_counts) == 0);
    CHECK(bytes("bf16:master=bf16", ArmPart::master) == 64 * 32 * 2);
    CHECK(memory_of(spec, "bf16:master=bf16").bytes(ArmPart::first, 1, TensorClass::w) == 0);
    CHECK(bytes("delayed:master=bf16", ArmPart::master) == 64 * 32 * 2);
    CHECK(bytes("nvfp4:master=bf16", ArmPart::master) == 64 * 32 * 4);
    // Of the large layer with both moments in 8 bits: 6.06 bytes a weight less.
    const TrainSpec large = network({4096, 16384, 4096}, 8192);
    const double saved = static_cast<double>(memory_of(large, "delayed").requested_bytes()) -
                         static_cast<double>(memory_of(large, "delayed:m=e4m3:v=e4m3").requested_bytes());
    CHECK(saved / (2.0 * 4096 * 16384) == doctest::Approx(8 - 2 * (1 + 4.0 / 128)).epsilon(1e-3));
}

TEST_CASE("scales of rows and blocks, and what an emulated recipe keeps in FP32") {
    const TrainSpec spec = network({256, 512, 256}, 128);
    CHECK(memory_of(spec, "delayed").bytes(ArmPart::scale_inv, 2) == 0);
    CHECK(memory_of(spec, "rowwise").bytes(ArmPart::scale_inv, 2) == 4 * (128 + 512));
    CHECK(memory_of(spec, "rowwise").bytes(ArmPart::amaxes, 2) ==
          4 * (128 + 512 + 1));  // and how many blocks wait
    // x2 (128, 512): 4 blocks across 128 rows, and the transpose's 1 block across 512.
    CHECK(memory_of(spec, "block128").bytes(ArmPart::scale_inv, 2) == 4 * (4 * 128 + 1 * 512));
    const ArmMemory emulated = memory_of(spec, "nvfp4");
    CHECK(emulated.bytes(ArmPart::value, 2) == 4 * 128 * 512);
    CHECK(emulated.bytes(ArmPart::first, 2) == 4 * 128 * 512);
    CHECK(emulated.bytes(ArmPart::second, 2) == 4 * 128 * 512);
    CHECK(emulated.bytes(ArmPart::value, 2, TensorClass::w) == 0);
    CHECK(emulated.bytes(ArmPart::scratch) == 4 * (512 * 256 / 16 + 1));
}

TEST_CASE(
    "options of four bits: weights of 16x16 are cast once, rotated operands need a place, wide layers too") {
    const TrainSpec spec = network({256, 512, 256}, 120);  // padded to 128
    const auto both = [&](const std::string& recipe, TensorClass tensor) {
        const ArmMemory memory = memory_of(spec, recipe);
        return std::pair{memory.bytes(ArmPart::first, 2, tensor), memory.bytes(ArmPart::second, 2, tensor)};
    };
    constexpr std::size_t kWeights = 4 * 256 * 512, kX = 4 * 128 * 512;
    CHECK(both("nvfp4", TensorClass::w) == std::pair{kWeights, kWeights});
    CHECK(both("nvfp4:w2d=1", TensorClass::w) == std::pair{kWeights, std::size_t{0}});
    CHECK(both("nvfp4-te", TensorClass::x) == std::pair{kX, kX});
    CHECK(both("nvfp4-te:wide=2", TensorClass::x) == std::pair{kX, std::size_t{0}});  // BF16: one cast
    CHECK(memory_of(spec, "nvfp4").bytes(ArmPart::rotated) == 0);
    CHECK(memory_of(spec, "nvfp4-te").bytes(ArmPart::rotated) == kX);
    CHECK(memory_of(spec, "nvfp4-te:wide=1+2").bytes(ArmPart::rotated) == 0);
    CHECK(memory_of(spec, "nvfp4:target=4or6").bytes(ArmPart::scratch) == 4 * (2 * 512 * 256 / 16 + 1));
    CHECK(emulation_scratch_bytes(cast_plan(parse_recipe("nvfp4-te"), TensorClass::w), 512, 256) ==
          4 * (512 * 256 / 256 + 1));
}

TEST_CASE(
    "a cast for each GEMM: its operand, scales, state and statistics are counted beside the first one's") {
    const TrainSpec spec = network({256, 512, 256}, 128);
    const auto fp8 = [&](const std::string& recipe) {
        return ArmMemory(spec, parse_recipe(recipe), Engine::fp8, spec.batch);
    };
    constexpr std::size_t kX = 128 * 512, kW = 256 * 512, kDy = 128 * 256;
    const ArmMemory plain = fp8("delayed"), wide = fp8("delayed:wgrad_in=bf16");
    CHECK(wide.bytes(ArmPart::first, 2) == kX);
    CHECK(wide.bytes(ArmPart::second, 2) == 2 * kX);
    CHECK(wide.bytes(ArmPart::second, 2, TensorClass::dy) == 2 * kDy);
    CHECK(wide.bytes(ArmPart::second, 2, TensorClass::w) == kW);  // of fprop and dgrad: one cast
    CHECK(wide.bytes(ArmPart::second_stats, 2) == plain.bytes(ArmPart::stats, 2));
    CHECK(wide.bytes(ArmPart::second_stats, 2, TensorClass::w) == 0);
    // dy1 is read by wgrad alone.
    CHECK(wide.bytes(ArmPart::first, 1, TensorClass::dy) == 2 * 128 * 512);
    CHECK(wide.bytes(ArmPart::second, 1, TensorClass::dy) == 0);
    // x1 dy1 x2 dy2 are split.
    CHECK(wide.bytes(ArmPart::states) == (6 + 4) * 48);
    CHECK(wide.bytes(ArmPart::tensor_results) == 1024 * (6 + 4) * 72);
    CHECK(wide.bytes(ArmPart::controls) == 3 * 24);
    CHECK(plain.bytes(ArmPart::controls) == 24);
    const ArmMemory rows = fp8("delayed:wgrad_in=rowwise");
    CHECK(rows.bytes(ArmPart::scale_inv, 2) == 0);
    CHECK(rows.bytes(ArmPart::second_scale_inv, 2) == 4 * (128 + 512));
    CHECK(rows.bytes(ArmPart::second_amaxes, 2) == 4 * (128 + 512 + 1));
    CHECK(fp8("delayed:dgrad_in=bf16").bytes(ArmPart::second, 2, TensorClass::w) == 2 * kW);
    CHECK(fp8("delayed:fprop_in=delayed").requested_bytes() ==
          plain.requested_bytes() + 2 * 24);  // one cast, but controls of each GEMM
}

TEST_CASE("the trainer's batches: one that never changes, else a ring of 32") {
    TrainSpec spec = network({32, 48}, 16);
    const std::size_t one = 16 * (32 + 48) * 4, inputs = 32 * 20;
    CHECK(ring_bytes(spec, 16) == one + inputs);
    spec.task = TaskKind::teacher;
    CHECK(ring_bytes(spec, 16) == 32 * one + inputs);
}

TEST_CASE("at small batches dW is stored nowhere, except where its scales change along the batch") {
    for (const char* recipe : {"bf16", "delayed", "current", "rowwise", "block128"}) {
        CAPTURE(recipe);
        CHECK(memory_of(network({256, 512, 256}, 32), recipe).bytes(ArmPart::weight_gradient, 2) == 0);
        CHECK(memory_of(network({256, 512, 256}, 80), recipe).bytes(ArmPart::weight_gradient, 2) > 0);
    }
    CHECK(memory_of(network({256, 512, 256}, 32), "mxfp8").bytes(ArmPart::weight_gradient, 2) > 0);
}
