// What an arm takes of a GPU, against the calculator of core/nn/memory_plan.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/nn/memory_plan.h"
#include "core/nn/model.h"
#include "kernels/transformer/arm.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/training.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

constexpr double kPage = 2 << 20;

TrainSpec model(const std::string& recipe, std::map<std::string, int, std::less<>> sizes, int batch,
                double clip) {
    TrainOptions options;
    options.model = "transformer";
    options.batch = batch;
    options.recipes = recipe;
    options.sizes = std::move(sizes);
    options.clip = clip;
    return make_train_spec(options);
}

void check_bytes(const TrainSpec& spec) {
    // Measured before the trainer below exists: in its pages the driver would place small buffers of this one.
    const double allocated = cuda::allocated_bytes(spec, device()).front();
    const auto trainer = cuda::make_cuda_trainer(spec, device());
    trainer->step(1);
    const ArmSnapshot arm = trainer->snapshot().arms[0];
    const cuda::Engine engine = arm.provenance != Provenance::tensor_core ? cuda::Engine::emulated
                                : spec.arms[0].fwd->name == "bf16"        ? cuda::Engine::bf16
                                                                          : cuda::Engine::fp8;
    const cuda::ArmMemory list(spec, spec.arms[0], engine, spec.batch,
                               cuda::attention_bytes(spec, spec.batch));
    const auto calculated = static_cast<double>(list.device_bytes());
    CAPTURE(spec.arms[0].name);
    CAPTURE(calculated);
    CAPTURE(allocated);
    CHECK(std::fabs(calculated - allocated) <= std::max(0.02 * allocated, 2 * kPage));
}

}  // namespace

TEST_CASE("a transformer takes the bytes that are calculated, within 2 % or two pages") {
    NEEDS_GPU();
    for (const std::string recipe : {"bf16", "delayed", "current", "rowwise", "block128", "nvfp4-te"})
        check_bytes(model(recipe, {}, 16, 0));
    for (const std::string recipe : {"bf16", "delayed", "rowwise"}) {
        check_bytes(model(
            recipe, {{"d", 768}, {"heads", 12}, {"ffn", 2048}, {"context", 1024}, {"blocks", 4}}, 8, 1));
        check_bytes(model(
            recipe, {{"d", 1024}, {"heads", 8}, {"ffn", 2816}, {"context", 500}, {"blocks", 2}, {"tie", 1}},
            3, 0));
    }
}
