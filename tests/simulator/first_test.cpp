#include <doctest/doctest.h>
#include <chrono>
#include <cstdlib>
#include "core/train/cpu_trainer.h"
#include "tests/kernels/training.h"
using namespace fp8lab;
using namespace fp8lab::test;
TEST_CASE("mlp") {
    for (const std::string recipe : {"bf16", "delayed", "current", "rowwise", "block128", "nvfp4-te", "mxfp8"}) {
        const auto cpu = make_cpu_trainer(reference(recipe, 20));
        const auto gpu = cuda::make_cuda_trainer(reference(recipe, 20), device());
        const Run a = run(*cpu, 20), b = run(*gpu, 20);
        MESSAGE(recipe << " " << a.losses[0] << " " << b.losses[0] << "   " << a.losses[19] << " " << b.losses[19]);
    }
}
TEST_CASE("transformer") {
    const char* env = std::getenv("RECIPES");
    for (const Recipe& r : parse_recipes(env ? env : "fp32,bf16,delayed")) {
        const std::string recipe = r.name;
        TrainOptions o; o.model = "transformer"; o.batch = 2; o.steps = 4; o.recipes = recipe;
        o.sizes = {{"context", 32}, {"d", 64}, {"ffn", 96}, {"blocks", 2}};
        const auto spec = make_train_spec(o);
        const auto cpu = make_cpu_trainer(spec);
        const auto t0 = std::chrono::steady_clock::now();
        const auto gpu = cuda::make_cuda_trainer(spec, device());
        const Run a = run(*cpu, 4, 1), b = run(*gpu, 4, 1);
        MESSAGE(recipe << " " << std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count() << " s");
        for (int i = 0; i < 4; ++i) MESSAGE(a.losses[i] << " " << b.losses[i]);
        if (b.stopped) MESSAGE(b.stopped->tensor);
    }
}
