// The plan of the bytes of a training on the CPU against what its trainer holds, as malloc counts it.
#include "core/nn/cpu_memory.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/nn/blas.h"
#include "core/train/cpu_trainer.h"

using namespace fp8lab;

namespace {

double allocated() {
    const struct mallinfo2 now = ::mallinfo2();
    return static_cast<double>(now.uordblks + now.hblkhd);
}

TrainSpec mlp(const std::string& recipes) {
    return make_train_spec(
        {.layers = std::vector{300, 700, 500, 20}, .batch = 333, .steps = 2, .recipes = recipes});
}

TrainSpec transformer(const std::string& recipes, int batch, int tie = 0) {
    return make_train_spec({.model = "transformer",
                            .sizes = {{"d", 96},
                                      {"blocks", 2},
                                      {"heads", 4},
                                      {"kv-heads", 2},
                                      {"ffn", 256},
                                      {"context", 48},
                                      {"tie", tie}},
                            .task = "zipf:3000",
                            .batch = batch,
                            .steps = 2,
                            .recipes = recipes});
}

}  // namespace

TEST_CASE("the plan of a training on the CPU is what its trainer holds, within a tenth") {
    { BlasUse warm; }
    for (const TrainSpec& spec : {mlp("bf16"), mlp("fp32,delayed,mxfp8"), mlp("nvfp4-te"),
                                  transformer("bf16", 16), transformer("fp32,mxfp8:scope=all", 4),
                                  transformer("nvfp4-te,delayed", 16), transformer("bf16", 24, 1)}) {
        const std::string what = command_line(spec);
        CAPTURE(what);
        const double before = allocated();
        const auto trainer = make_cpu_trainer(spec);
        trainer->step(2);
        const double held = allocated() - before, planned = cpu_training_bytes(spec);
        CAPTURE(held);
        CAPTURE(planned);
        CHECK(planned > 0.95 * held);
        CHECK(planned < 1.1 * held);
    }
}

TEST_CASE("trainings that no machine of 24 GB holds are refused before anything is allocated") {
    constexpr std::uint64_t kFree = 24'000'000'000;
    const auto refused = [](const TrainSpec& spec) {
        const double bytes = cpu_training_bytes(spec);
        CAPTURE(bytes);
        CHECK_THROWS_WITH_AS(require_memory("train", bytes, kFree), doctest::Contains("24 GB are free"),
                             Error);
    };
    std::string many = "bf16";
    for (int i = 1; i < 200; ++i) many += ",bf16:margin=" + std::to_string(i % 16);
    TrainOptions wide{.model = "transformer", .sizes = {{"d", 1024}, {"heads", 16}, {"ffn", 2816}}};
    wide.recipes = many;
    refused(make_train_spec(wide));
    refused(make_train_spec({.model = "transformer", .sizes = {{"d", 4096}}, .task = "zipf:131072"}));
    std::string most = "fp32";
    for (int i = 1; i < 40'000; ++i) most += ",fp32";
    refused(make_train_spec({.recipes = most}));
}

TEST_CASE("a training within the memory is not refused") {
    CHECK(cpu_training_bytes(make_train_spec({})) < 20e6);
    CHECK(cpu_training_bytes(make_train_spec({.model = "transformer"})) < 100e6);
}
