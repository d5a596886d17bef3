// A format for each GEMM on the GPU (Recipe::inputs): the CPU's numbers, and the same bytes from run to run.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/training.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

TrainSpec transformer(const std::string& recipe, int steps, std::uint64_t seed = 1) {
    TrainOptions options;
    options.model = "transformer";
    options.steps = steps;
    options.recipes = recipe;
    options.seed = seed;
    return make_train_spec(options);
}

double mean(const std::vector<double>& values, std::size_t first, std::size_t last) {
    const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
    return std::accumulate(at(first), at(last), 0.0) / static_cast<double>(last - first);
}

void check_like_cpu(const TrainSpec& spec, double step_0) {
    const std::string name = spec.arms[0].name;
    CAPTURE(spec.model);
    CAPTURE(name);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    const Run expected = run(*cpu, 200), found = run(*gpu, 200);
    REQUIRE(expected.losses.size() == 200);
    REQUIRE(found.losses.size() == 200);
    CHECK(found.last.provenance == Provenance::tensor_core);
    CHECK(std::abs(found.losses[0] / expected.losses[0] - 1) < step_0);
    const double ratio = mean(found.losses, 101, 200) / mean(expected.losses, 101, 200);
    MESSAGE(spec.model << " " << name << ": loss of step 0 " << found.losses[0] << " against "
                       << expected.losses[0] << ", mean of steps 101-200 " << ratio << " of the CPU's");
    CHECK(std::abs(ratio - 1) < 0.01);
}

const std::vector<std::string> kRecipes = {"current:fprop_in=bf16",
                                           "current:dgrad_in=bf16",
                                           "current:wgrad_in=bf16",
                                           "delayed:wgrad_in=bf16",
                                           "delayed:wgrad_in=e4m3",
                                           "delayed:fprop_in=bf16:dgrad_in=current",
                                           "bf16:fprop_in=current",
                                           "bf16:wgrad_in=delayed",
                                           "rowwise:wgrad_in=bf16",
                                           "rowwise:fprop_in=delayed",
                                           "current:dgrad_in=rowwise:wgrad_in=block128"};

}  // namespace

TEST_CASE("a format for each GEMM trains on the GPU as on the CPU") {
    NEEDS_GPU();
    for (const std::string& recipe : kRecipes) {
        // Why recipes of blocks have another bound: trainer_test.cpp.
        const double step_0 = recipe.find("fprop_in=block128") == recipe.npos ? 1e-4 : 1e-3;
        check_like_cpu(reference(recipe), step_0);
        check_like_cpu(transformer(recipe, 200), step_0);
    }
}

TEST_CASE("the second cast of a tensor has the SQNR of the CPU's") {
    NEEDS_GPU();
    for (const std::string& recipe : kRecipes) {
        CAPTURE(recipe);
        const auto cpu = make_cpu_trainer(reference(recipe)),
                   gpu = cuda::make_cuda_trainer(reference(recipe), device());
        cpu->step(1);
        gpu->step(1);
        const auto expected = cpu->snapshot().arms[0].records.at(0),
                   found = gpu->snapshot().arms[0].records.at(0);
        std::size_t seconds = 0;
        for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
            CAPTURE(i);
            const TensorRecord &e = expected.tensors[i], &f = found.tensors[i];
            CHECK(f.amax == doctest::Approx(static_cast<double>(e.amax)).epsilon(0.01));
            CHECK(std::abs(f.sqnr_db - e.sqnr_db) < 0.5F);
            CHECK(std::isnan(f.second_sqnr_db) == std::isnan(e.second_sqnr_db));
            if (std::isnan(e.second_sqnr_db)) continue;
            ++seconds;
            CHECK(std::abs(f.second_sqnr_db - e.second_sqnr_db) < 0.5F);
        }
        CHECK(seconds > 0);
    }
}

TEST_CASE("a format for each GEMM gives the same bytes again, and resumes exactly") {
    NEEDS_GPU();
    for (const std::string& recipe : kRecipes)
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            CAPTURE(recipe);
            CAPTURE(seed);
            const TrainSpec spec = transformer(recipe, 48, seed);
            const Scratch folder;
            const auto first = cuda::make_cuda_trainer(spec, device()),
                       plain = cuda::make_cuda_trainer(spec, device(), cuda::Launching::one_by_one),
                       begun = cuda::make_cuda_trainer(spec, device());
            first->step(48);
            plain->step(48);
            begun->step(24);
            begun->save(folder.path / "half");
            const auto resumed = cuda::make_cuda_trainer(spec, device());
            resumed->load(folder.path / "half");
            resumed->step(24);
            const auto bytes = bytes_after(*first, folder, "first");
            CHECK(bytes_after(*plain, folder, "plain") == bytes);
            CHECK(bytes_after(*resumed, folder, "resumed") == bytes);
        }
}

TEST_CASE("checkpoints with a scale for each GEMM move between CPU and GPU, and between BF16 and FP8") {
    NEEDS_GPU();
    const std::string split = "delayed:wgrad_in=e4m3";
    const Scratch folder;
    const auto whole = cuda::make_cuda_trainer(reference(split), device());
    const std::vector<double> expected = run(*whole, 200).losses;
    const auto cpu = make_cpu_trainer(reference(split));
    cpu->step(100);
    cpu->save(folder.path / "cpu");
    for (const std::string& recipe : {split, std::string("bf16"), std::string("delayed:fprop_in=bf16")}) {
        CAPTURE(recipe);
        const auto rest = cuda::make_cuda_trainer(reference(recipe), device());
        rest->load(folder.path / "cpu");
        CHECK(mean(run(*rest, 100).losses, 0, 100) ==
              doctest::Approx(mean(expected, 100, 200)).epsilon(0.05));
    }
    whole->save(folder.path / "gpu");
    for (const std::string& recipe : {split, std::string("bf16")}) {
        const auto back = make_cpu_trainer(reference(recipe, 220));
        back->load(folder.path / "gpu");
        CHECK(back->steps_done() == 200);
        back->step(20);
        CHECK(std::isfinite(back->snapshot().arms[0].records.back().loss));
    }
}
