// Whole trainings by the GPU's trainer, its kernels on the CPU.
#include "tests/kernels/training.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/nn/model.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

TrainSpec transformer(const std::string& recipes, int steps, double clip, const std::string& task = "text",
                      int tie = 0) {
    TrainOptions options;
    options.model = "transformer";
    options.task = task;
    options.batch = 2;
    options.steps = steps + 1;  // without what comes after the last one: an evaluation
    options.recipes = recipes;
    options.sizes = {{"context", 17}, {"d", 32},       {"heads", 2}, {"ffn", 48},
                     {"blocks", 2},   {"kv-heads", 1}, {"tie", tie}};
    options.clip = clip;
    return make_train_spec(options);
}

// Emulated recipes are the CPU's; on the tensor cores sums have another order, and roundings follow them.
void check_like_cpu(const TrainSpec& spec, int steps, double bound) {
    CAPTURE(spec.arms[0].name);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    const Run expected = run(*cpu, steps), found = run(*gpu, steps);
    REQUIRE(found.losses.size() == expected.losses.size());
    for (std::size_t i = 0; i < found.losses.size(); ++i)
        CHECK(std::abs(found.losses[i] / expected.losses[i] - 1) < bound);
}

}  // namespace

TEST_CASE("the MLP's steps on the GPU are the CPU's") {
    for (const std::string recipe : {"fp32", "bf16", "delayed", "rowwise", "block128", "nvfp4-te"})
        check_like_cpu(reference(recipe, 6), 6, 2e-3);
}

TEST_CASE("the transformer's steps on the GPU are the CPU's") {
    for (const std::string recipe :
         {"fp32", "mxfp8", "nvfp4-te", "delayed:scope=attn", "delayed:wide=1.down"})
        check_like_cpu(transformer(recipe, 4, 0), 4, 1e-5);
    for (const std::string recipe : {"bf16", "delayed", "current", "rowwise", "delayed:act=smooth"})
        check_like_cpu(transformer(recipe, 4, 1), 4, 2e-3);
}

namespace {

// The counts of all linear layers in `steps` steps.
void check_statistics(const std::string& recipe, std::size_t steps, double bound) {
    CAPTURE(recipe);
    const TrainSpec spec = transformer(recipe, 4, 1);
    const ModelPlan plan = model_plan(spec);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    for (Trainer* trainer : {cpu.get(), gpu.get()}) trainer->step(static_cast<int>(steps));
    const Snapshot of_cpu = cpu->snapshot(), of_gpu = gpu->snapshot();
    const auto &expected = of_cpu.arms[0].records, &found = of_gpu.arms[0].records;
    REQUIRE((expected.size() == steps && found.size() == steps));
    std::size_t compared = 0;
    for (std::size_t step = 0; step < steps; ++step)
        for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
            const TensorRecord &e = expected[step].tensors[i], &f = found[step].tensors[i];
            if (plan.gemms[plan.tensors[i].gemm].role != GemmRole::linear) continue;
            CAPTURE(step);
            CAPTURE(plan.tensors[i].name);
            CHECK(f.kurtosis == doctest::Approx(e.kurtosis).epsilon(bound));
            CHECK(f.amax == doctest::Approx(e.amax).epsilon(bound));
            CHECK(f.sqnr_db == doctest::Approx(e.sqnr_db).epsilon(bound));
            CHECK(std::abs(f.underflow_pct - e.underflow_pct) < 100 * bound);
            CHECK(std::abs(f.overflow_pct - e.overflow_pct) < 100 * bound);
            ++compared;
        }
    CHECK(compared == steps * 2 * 4 * 3);  // blocks, linear layers, x w dy
}

}  // namespace

TEST_CASE("small transformers have the statistics of every step on the GPU, those of the CPU") {
    check_statistics("mxfp8", 4, 1e-3);    // emulated
    check_statistics("delayed", 1, 2e-2);  // on the tensor cores, before roundings add up
}

// 257 is no multiple of 8 or 16: rows of the embedding and columns of the logits are padded, and masked in the loss.
TEST_CASE("an odd vocabulary trains on the GPU as on the CPU, with a tied head and without") {
    for (const std::string recipe : {"bf16", "rowwise:scope=head", "nvfp4-te:scope=head"})
        check_like_cpu(transformer(recipe, 2, 1, "zipf:257", 0), 2, 2e-3);
    for (const std::string recipe : {"fp32", "delayed", "block128:scope=head"})
        check_like_cpu(transformer(recipe, 2, 1, "zipf:257", 1), 2, 2e-3);
}

TEST_CASE("a vocabulary of 50,257 trains on the GPU as on the CPU") {
    TrainSpec spec = transformer("delayed:scope=head", 2, 1, "zipf:50257", 1);
    spec.batch = 1;
    check_like_cpu(spec, 2, 2e-3);
}

// Text and zipf hold out 8 sequences a batch: more than a batch of the training, or fewer; the last piece of 3 is
// not full.
TEST_CASE("the held-out loss of the GPU is the CPU's, whatever the batch is") {
    for (const auto& [task, batch] : {std::pair{std::string("text"), 3}, {"text", 12}, {"zipf:257", 3}}) {
        CAPTURE(task);
        CAPTURE(batch);
        TrainSpec spec = transformer("fp32", 1, 0, task);
        spec.batch = batch;
        spec.steps = 1;
        spec.sizes["context"] = 6;
        const auto cpu = make_cpu_trainer(spec);
        const auto gpu = cuda::make_cuda_trainer(spec, device());
        cpu->step(1);
        gpu->step(1);
        const auto expected = cpu->snapshot().arms[0].evaluation, found = gpu->snapshot().arms[0].evaluation;
        REQUIRE(expected);
        REQUIRE(found);
        CHECK(found->step == 1);
        CHECK(found->loss == doctest::Approx(expected->loss).epsilon(1e-5));
        CHECK(found->accuracy == doctest::Approx(expected->accuracy).epsilon(1e-5));
        CHECK(found->prompt == expected->prompt);
        CHECK(found->continuation.size() == expected->continuation.size());
        CHECK(found->prompt.empty() == (task != "text"));
        CHECK(found->text_step == expected->text_step);
        CHECK(found->text_step == (task == "text" ? 1 : 0));
    }
}

TEST_CASE("arms that write their texts at the same time write what each writes alone") {
    const auto texts = [](const std::string& recipes) {
        TrainSpec spec = transformer(recipes, 1, 0, "text");
        spec.steps = 3;
        spec.lr = 5;  // so that the arms write different texts
        spec.sizes["context"] = 6;
        const auto trainer = cuda::make_cuda_trainer(spec, device());
        trainer->step(3);
        std::vector<std::string> out;
        for (const ArmSnapshot& arm : trainer->snapshot().arms) {
            REQUIRE(arm.evaluation);
            CHECK(arm.evaluation->text_step == 3);
            out.push_back(arm.evaluation->continuation);
        }
        return out;
    };
    const std::vector<std::string> together = texts("fp32,nvfp4"), first = texts("fp32"),
                                   second = texts("nvfp4");
    REQUIRE(together.size() == 2);
    CHECK(together[0] == first[0]);
    CHECK(together[1] == second[0]);
    CHECK(together[0].size() == kSampleLength);
    CHECK(together[0] != together[1]);
}

TEST_CASE("a transformer that is saved and resumed on the GPU goes on with the same bytes") {
    const TrainSpec spec = transformer("delayed", 4, 1);
    const Scratch folder;
    const auto whole = cuda::make_cuda_trainer(spec, device());
    whole->step(4);
    const auto bytes = bytes_after(*whole, folder, "whole");
    const auto begun = cuda::make_cuda_trainer(spec, device(), cuda::Launching::one_by_one);
    begun->step(2);
    begun->save(folder.path / "begun");
    const auto resumed = cuda::make_cuda_trainer(spec, device());
    resumed->load(folder.path / "begun");
    resumed->step(2);
    CHECK(bytes_after(*resumed, folder, "resumed") == bytes);
}
