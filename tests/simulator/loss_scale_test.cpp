// Loss scaling, and scales from an average of the amaxes, by the GPU's trainer, its kernels on the CPU.
#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/nn/memory_plan.h"
#include "core/nn/model.h"
#include "core/scaling/delayed.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/kernels/micro_batches.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

constexpr int kSteps = 16;

std::vector<StepRecord> records_of(Trainer& trainer, int steps) {
    trainer.step(steps);
    return trainer.snapshot().arms[0].records;
}

// Without a saturating activation, so that a poisoned batch has large gradients, which a large loss scale makes infinite.
TrainSpec relu(const std::string& recipe, int steps) {
    TrainSpec spec = reference(recipe, steps);
    spec.activation = Activation::relu;
    return spec;
}
std::vector<StepRecord> poisoned_records_of(Trainer& trainer, int steps) {
    for (int step = 0; step < steps; ++step) {
        if (step == 2 || step == 5 || step == 6) trainer.set(PoisonBatch{1e7F});
        trainer.step(1);
    }
    return trainer.snapshot().arms[0].records;
}

void check_like_cpu(const TrainSpec& spec, bool poisoned = false) {
    const std::string what = command_line(spec);
    CAPTURE(what);
    const auto run = poisoned ? poisoned_records_of : records_of;
    const auto expected = run(*make_cpu_trainer(spec), kSteps);
    const auto found = run(*cuda::make_cuda_trainer(spec, device()), kSteps);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(found[i].loss / expected[i].loss - 1) < 2e-3);
        CHECK(found[i].loss_scale == expected[i].loss_scale);
        CHECK(found[i].skipped == expected[i].skipped);
    }
}

const std::string kSkips = "current:overflow=nonsaturate:loss_scale=1e36:growth_interval=2",
                  kGrows = "delayed:loss_scale=1024:growth_interval=3";

}  // namespace

TEST_CASE("loss scales grow, halve and skip steps on the GPU as on the CPU") {
    for (const std::string& recipe :
         {kGrows, std::string("bf16:loss_scale=65536:growth_interval=1"), std::string("fp32:loss_scale=3"),
          std::string("unscaled:overflow=nonsaturate:loss_scale=65536:growth_interval=2"),
          std::string("rowwise:loss_scale=1000:growth_interval=0")}) {
        check_like_cpu(reference(recipe, kSteps));
        check_like_cpu(cut(reference(recipe, kSteps), 4));
        check_like_cpu(classes(recipe, kSteps));
    }
    for (const std::string& recipe : {kSkips, std::string("fp32:loss_scale=1e36:growth_interval=4"),
                                      std::string("bf16:loss_scale=1e36:growth_interval=0")}) {
        check_like_cpu(relu(recipe, kSteps), true);
        check_like_cpu(cut(relu(recipe, kSteps), 4), true);
        const auto trainer = cuda::make_cuda_trainer(relu(recipe, kSteps), device());
        CHECK(poisoned_records_of(*trainer, kSteps).back().skipped == 3);
    }
}

TEST_CASE("a skipped step changes no weight and no moment on the GPU") {
    const TrainSpec spec = relu("fp32:loss_scale=1e36:growth_interval=0", 4);
    const Scratch folder;
    const auto trainer = cuda::make_cuda_trainer(spec, device());
    trainer->save(folder.path / "start");
    trainer->set(PoisonBatch{1e7F});
    REQUIRE(records_of(*trainer, 1)[0].skipped == 1);
    trainer->save(folder.path / "skipped");
    const auto before = load_checkpoints(folder.path / "start", spec).arms[0],
               after = load_checkpoints(folder.path / "skipped", spec).arms[0];
    for (std::size_t i = 0; i < before.parameters.size(); ++i) {
        CHECK(after.parameters[i].values == before.parameters[i].values);
        for (const float m : after.parameters[i].moments.m) CHECK(m == 0);
    }
}

TEST_CASE("a run with a loss scale resumes to the byte on the GPU, also without the scale") {
    for (const std::string& recipe : {kGrows, kSkips})
        for (const std::string& after : {recipe, std::string("delayed")}) {
            CAPTURE(recipe);
            CAPTURE(after);
            const Scratch folder;
            const auto begun = cuda::make_cuda_trainer(relu(recipe, 16), device());
            poisoned_records_of(*begun, 7);
            begun->save(folder.path / "half");
            const auto a = cuda::make_cuda_trainer(relu(after, 16), device());
            const auto b = make_cpu_trainer(relu(after, 16));
            a->load(folder.path / "half");
            b->load(folder.path / "half");
            const auto found = records_of(*a, 5), expected = records_of(*b, 5);
            for (std::size_t i = 0; i < found.size(); ++i) {
                CHECK(std::abs(found[i].loss / expected[i].loss - 1) < 2e-3);
                CHECK(found[i].skipped == expected[i].skipped);
            }
            if (after != recipe) continue;
            begun->step(5);
            CHECK(bytes_after(*a, folder, "resumed") == bytes_after(*begun, folder, "whole"));
        }
}

TEST_CASE("an arm with a loss scale allocates what is in its list") {
    for (const std::string recipe : {"bf16:loss_scale=8", "delayed:loss_scale=8:growth_interval=5"}) {
        const TrainSpec spec = reference(recipe, 2);
        const cuda::ArmMemory list(spec, spec.arms[0],
                                   recipe.starts_with("bf16") ? cuda::Engine::bf16 : cuda::Engine::fp8,
                                   spec.batch);
        CHECK(cuda::allocated_bytes(spec, device()).front() == static_cast<double>(list.requested_bytes()));
    }
}

TEST_CASE("a scale from an average of the amaxes is the CPU's on the GPU") {
    for (const std::string recipe : {"delayed:algo=ema0.9", "delayed:algo=ema0.5:history=4:interval=2"})
        check_like_cpu(reference(recipe, kSteps));
    // core's rule on the recorded amaxes gives the recorded scales, to the bit.
    const TrainSpec spec = reference("delayed:algo=ema0.75:history=5", kSteps);
    const auto records = records_of(*cuda::make_cuda_trainer(spec, device()), kSteps);
    const ModelPlan plan = model_plan(spec);
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const float fp8_max = plan.tensors[i].tensor == TensorClass::dy ? 57344.0F : 448.0F;
        DelayedScale scale(5, AmaxAlgo::ema, 0, 1, fp8_max, false, 0.75F);
        for (const StepRecord& record : records) {
            CHECK(record.tensors[i].scale == scale.scale());
            scale.update(record.tensors[i].amax);
        }
    }
}

TEST_CASE("what a GPU does not do of loss scales and amaxes is refused with the reason") {
    const auto refusal = [](const TrainSpec& spec) -> std::string {
        try {
            cuda::make_cuda_trainer(spec, device());
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::backend);
            return error.what();
        }
        return "";
    };
    CHECK(refusal(reference("delayed:algo=p99.9", 2)).find("percentile") != std::string::npos);
    TrainOptions options;
    options.model = "transformer";
    options.recipes = "bf16:loss_scale=8";
    CHECK(refusal(make_train_spec(options)).find("scales the loss of model mlp only") != std::string::npos);
}
