// The plan of the bytes of a training on the CPU against what its trainer holds, as malloc counts it.
#include "core/nn/memory/cpu_memory.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/nn/gemm.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/sanitized.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

double allocated() {
    const struct mallinfo2 now = ::mallinfo2();
    return static_cast<double>(now.uordblks + now.hblkhd);
}

TrainSpec mlp(const std::string& recipes) {
    TrainOptions options;
    options.layers = std::vector{300, 700, 500, 20};
    // A multiple of 16: what is rotated is padded to one, and a vector that grows by a few rows doubles its capacity, of
    // which it uses nothing.
    options.batch = 336;
    options.steps = 2;
    options.recipes = recipes;
    return make_train_spec(options);
}

TrainSpec transformer(const std::string& recipes, int batch, int tie = 0) {
    TrainOptions options;
    options.model = "transformer";
    options.sizes = {{"d", 96},    {"blocks", 2},   {"heads", 4}, {"kv-heads", 2},
                     {"ffn", 256}, {"context", 48}, {"tie", tie}};
    options.task = "zipf:3000";
    options.batch = batch;
    options.steps = 2;
    options.recipes = recipes;
    return make_train_spec(options);
}

TrainSpec experts(const std::string& recipes, int batch, int active, int shared) {
    TrainOptions options;
    options.model = "moe";
    options.sizes = {{"d", 96},       {"blocks", 2},  {"heads", 4},       {"kv-heads", 2},   {"ffn", 128},
                     {"context", 48}, {"experts", 6}, {"active", active}, {"shared", shared}};
    options.task = "zipf:3000";
    options.batch = batch;
    options.steps = 2;
    options.recipes = recipes;
    return make_train_spec(options);
}

TrainSpec large(int d, const std::string& task, const std::string& recipes) {
    TrainOptions options;
    options.model = "transformer";
    options.sizes = {{"d", d}, {"heads", 16}, {"ffn", 3 * d}};
    options.task = task;
    options.recipes = recipes;
    return make_train_spec(options);
}

std::string many(int arms) {
    std::string text = "bf16";
    for (int i = 1; i < arms; ++i) text += ",bf16";
    return text;
}

}  // namespace

TEST_CASE("the plan of a training on the CPU is what its trainer holds, within a tenth") {
    if (kSanitized) {
        MESSAGE("skipped: a sanitizer's allocator does not say what is held");
        return;
    }
    { BlasUse warm; }
    const auto cut = [](TrainSpec spec, int parts) {
        spec.accumulate.micro_batches = parts;
        return spec;
    };
    const auto ranked = [](TrainSpec spec, int ranks, const Ranks& how = {}) {
        spec.ranks = how;
        spec.ranks.count = ranks;
        return spec;
    };
    const Ranks sends_e4m3{.shard = Shard::zero1, .gather = Gather::e4m3},
        own{.shard = Shard::zero1, .gather = Gather::e4m3, .weight_scale = WeightScale::own};
    for (const TrainSpec& spec : {ranked(mlp("bf16,mxfp8"), 7), ranked(mlp("current,bf16"), 3, sends_e4m3),
                                  ranked(cut(mlp("delayed"), 2), 7, own),
                                  ranked(transformer("delayed", 32), 4, {.shard = Shard::zero1}), mlp("bf16"),
                                  cut(mlp("bf16,mxfp8"), 7), cut(transformer("delayed", 32), 2),
                                  mlp("fp32,delayed,mxfp8"), mlp("nvfp4-te"),
                                  // A second cast of w and of dy, of x and dy, of all three.
                                  mlp("current:dgrad_in=bf16"), mlp("current:wgrad_in=bf16"),
                                  mlp("rowwise:fprop_in=mxfp8:dgrad_in=bf16:wgrad_in=nvfp4-te"),
                                  transformer("delayed:wgrad_in=bf16,fp32:wgrad_in=current", 16),
                                  transformer("bf16", 16), transformer("fp32,mxfp8:scope=all", 4),
                                  transformer("nvfp4-te,delayed", 16), transformer("bf16", 24, 1),
                                  experts("bf16", 24, 6, 0), experts("mxfp8:router=bf16,fp32", 16, 6, 1)}) {
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

TEST_CASE(
    "the plan of experts has room for steps in which one gets more tokens, and no more than half too much") {
    if (kSanitized) {
        MESSAGE("skipped: a sanitizer's allocator does not say what is held");
        return;
    }
    { BlasUse warm; }
    for (const TrainSpec& spec : {experts("bf16", 24, 2, 0), experts("mxfp8:router=bf16,fp32", 16, 1, 1)}) {
        const double before = allocated();
        const auto trainer = make_cpu_trainer(spec);
        trainer->step(8);
        const double held = allocated() - before, planned = cpu_training_bytes(spec);
        CAPTURE(held);
        CAPTURE(planned);
        CHECK(planned > 0.98 * held);
        CHECK(planned < 1.5 * held);
    }
}

TEST_CASE("a teacher is in the plan of a training: its weights, and its forward pass") {
    if (kSanitized) {
        MESSAGE("skipped: a sanitizer's allocator does not say what is held");
        return;
    }
    { BlasUse warm; }
    for (TrainSpec spec : {mlp("bf16,nvfp4"), transformer("bf16", 16)}) {
        const Scratch folder;
        TrainSpec taught = spec;
        taught.arms = {parse_recipe("fp32")};
        make_cpu_trainer(taught)->save(folder.path);
        spec.teacher = (folder.path / "1-fp32.safetensors").string();
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

TEST_CASE("trainings that need more than is free are refused before anything is allocated") {
    const auto refused = [](const TrainSpec& spec, std::uint64_t free) {
        const double bytes = cpu_training_bytes(spec);
        CAPTURE(bytes);
        CHECK_THROWS_WITH_AS(require_memory("train", bytes, free), doctest::Contains(" GB are needed, "),
                             Error);
    };
    refused(large(1024, "text", many(200)), 24'000'000'000);
    refused(large(4096, "zipf:131072", "bf16"), 16'000'000'000);
    TrainOptions options;
    options.recipes = many(10'000);
    refused(make_train_spec(options), 4'000'000'000);
}

TEST_CASE("a training within the memory is not refused") {
    CHECK(cpu_training_bytes(make_train_spec({})) < 20e6);
    TrainOptions options;
    options.model = "transformer";
    CHECK(cpu_training_bytes(make_train_spec(options)) < 100e6);
}
