// Gradient accumulation by the GPU's trainer, its kernels on the CPU.
#include "tests/kernels/micro_batches.h"

#include <cmath>

#include "core/base/error.h"
#include "core/nn/memory_plan.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

std::vector<StepRecord> records_of(Trainer& trainer, int steps) {
    trainer.step(steps);
    return trainer.snapshot().arms[0].records;
}

void check_like_cpu(const TrainSpec& spec, double bound) {
    const std::string what = command_line(spec);
    CAPTURE(what);
    const auto expected = records_of(*make_cpu_trainer(spec), 6);
    const auto found = records_of(*cuda::make_cuda_trainer(spec, device()), 6);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(std::abs(found[i].loss / expected[i].loss - 1) < bound);
        if (!std::isnan(expected[i].accuracy))
            CHECK(std::abs(found[i].accuracy - expected[i].accuracy) < 0.02);
    }
}

std::string refusal(const TrainSpec& spec) {
    try {
        cuda::make_cuda_trainer(spec, device());
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::backend);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("virtual ranks are refused by a GPU") {
    TrainSpec spec = reference("delayed", 6);
    spec.ranks.count = 2;
    CHECK(refusal(spec) == "--ranks: virtual ranks are computed on the CPU: --backend cpu");
}

TEST_CASE("the steps of micro-batches on the GPU are the CPU's") {
    for (const std::string recipe :
         {"fp32", "bf16", "delayed", "current", "rowwise", "block128", "nvfp4-te", "mxfp8",
          "delayed:wgrad_in=bf16", "rowwise:fprop_in=delayed", "current:bwd=bf16"})
        check_like_cpu(cut(reference(recipe, 6), 4), recipe == "fp32" ? 1e-5 : 2e-3);
    for (const std::string recipe : {"fp32", "delayed", "rowwise"}) {
        check_like_cpu(cut(classes(recipe, 6), 8), 2e-3);
        check_like_cpu(cut(reference(recipe, 6), 8, "bf16"), 2e-3);
    }
    // A micro-batch that is no multiple of 16 rows.
    TrainSpec odd = reference("delayed", 6);
    odd.batch = 60;
    check_like_cpu(cut(odd, 3), 2e-3);
}

TEST_CASE("micro-batches in FP32 on the GPU give what one batch gives") {
    const auto whole = records_of(*cuda::make_cuda_trainer(reference("fp32", 6), device()), 6);
    const auto parts = records_of(*cuda::make_cuda_trainer(cut(reference("fp32", 6), 8), device()), 6);
    for (std::size_t i = 0; i < whole.size(); ++i)
        CHECK(parts[i].loss == doctest::Approx(whole[i].loss).epsilon(i == 0 ? 1e-6 : 1e-5));
}

TEST_CASE("amaxes of micro-batches go into the history as --amax-of says, on the GPU as on the CPU") {
    for (const AmaxOf amax : {AmaxOf::max, AmaxOf::last, AmaxOf::each}) {
        const TrainSpec spec = cut(reference("delayed:history=4", 5), 4, "fp32", amax);
        CAPTURE(to_string(amax));
        const Scratch folder;
        const auto cpu = make_cpu_trainer(spec);
        const auto gpu = cuda::make_cuda_trainer(spec, device());
        const auto expected = records_of(*cpu, 3), found = records_of(*gpu, 3);
        for (std::size_t i = 0; i < expected.size(); ++i)
            for (std::size_t t = 0; t < expected[i].tensors.size(); ++t) {
                CAPTURE(i);
                CAPTURE(t);
                const TensorRecord &e = expected[i].tensors[t], &f = found[i].tensors[t];
                CHECK(f.amax == doctest::Approx(static_cast<double>(e.amax)).epsilon(0.02));
                CHECK(f.scale == doctest::Approx(static_cast<double>(e.scale)).epsilon(0.02));
                CHECK(std::abs(f.underflow_pct - e.underflow_pct) < 0.5F);
            }
        cpu->save(folder.path / "cpu");
        gpu->save(folder.path / "gpu");
        const auto a = load_checkpoints(folder.path / "cpu", spec).arms[0],
                   b = load_checkpoints(folder.path / "gpu", spec).arms[0];
        REQUIRE(a.scales.size() == b.scales.size());
        for (std::size_t i = 0; i < a.scales.size(); ++i) {
            CAPTURE(i);
            REQUIRE(a.scales[i].history.size() == b.scales[i].history.size());
            for (std::size_t s = 0; s < a.scales[i].history.size(); ++s)
                CHECK(b.scales[i].history[s] ==
                      doctest::Approx(static_cast<double>(a.scales[i].history[s])).epsilon(0.02));
        }
    }
}

TEST_CASE(
    "the record of the batch and of weights with current scaling has the largest amax of all micro-batches") {
    const auto whole = records_of(*cuda::make_cuda_trainer(reference("current", 2), device()), 1);
    const auto parts = records_of(*cuda::make_cuda_trainer(cut(reference("current", 2), 8), device()), 1);
    CHECK(parts[0].tensors[0].amax == whole[0].tensors[0].amax);
    CHECK(parts[0].tensors[1].amax == whole[0].tensors[1].amax);
}

TEST_CASE("a run of micro-batches resumes to the byte on the GPU") {
    for (const std::string recipe : {"delayed:interval=2", "current", "rowwise", "nvfp4-te"})
        for (const AmaxOf amax : {AmaxOf::max, AmaxOf::each}) {
            CAPTURE(recipe);
            const TrainSpec spec = cut(reference(recipe, 8), 4, "bf16", amax);
            const Scratch folder;
            const auto whole = cuda::make_cuda_trainer(spec, device()),
                       begun = cuda::make_cuda_trainer(spec, device()),
                       resumed = cuda::make_cuda_trainer(spec, device());
            whole->step(6);
            begun->step(3);
            begun->save(folder.path / "half");
            resumed->load(folder.path / "half");
            resumed->step(3);
            CHECK(bytes_after(*resumed, folder, "resumed") == bytes_after(*whole, folder, "whole"));
        }
}

TEST_CASE("an arm with micro-batches allocates what is in its list") {
    for (const std::string recipe : {"bf16", "delayed", "rowwise", "nvfp4-te"})
        for (const std::string format : {"fp32", "bf16"}) {
            CAPTURE(recipe);
            const TrainSpec spec = cut(reference(recipe, 2), 8, format);
            const cuda::Engine engine = recipe == "bf16"       ? cuda::Engine::bf16
                                        : recipe == "nvfp4-te" ? cuda::Engine::emulated
                                                               : cuda::Engine::fp8;
            const cuda::ArmMemory list(spec, spec.arms[0], engine, spec.batch);
            CHECK(cuda::allocated_bytes(spec, device()).front() ==
                  static_cast<double>(list.requested_bytes()));
        }
}

TEST_CASE("what a GPU does not do with micro-batches is refused with the reason") {
    TrainSpec stale = reference("delayed", 2), each = cut(stale, 4);
    stale.accumulate.weights = WeightCache::stale;
    each.accumulate.weights = WeightCache::each;
    CHECK(refusal(stale).find("--weight-cache: a GPU casts weights once a step: --backend cpu") !=
          std::string::npos);
    CHECK(refusal(each).find("--weight-cache") != std::string::npos);
    CHECK(refusal(cut(reference("delayed", 2), 4, "e4m3")).find("fp32 or bf16, not in e4m3") !=
          std::string::npos);
    CHECK(refusal(cut(reference("delayed:wgrad=bf16", 2), 4)).find("weight gradients in bf16") !=
          std::string::npos);
    TrainOptions options;
    options.model = "transformer";
    CHECK(refusal(cut(make_train_spec(options), 4)).find("model mlp only") != std::string::npos);
}
