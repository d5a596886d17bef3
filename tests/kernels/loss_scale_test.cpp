// Loss scaling, and scales from an average of the amaxes, on the GPU: the CPU's numbers, and the same bytes from run to run.
#include <cmath>
#include <numeric>

#include "core/trainer/cpu_trainer.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/micro_batches.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

double mean_of_steps_101_to_200(const std::vector<double>& losses) {
    return std::accumulate(losses.begin() + 101, losses.begin() + 200, 0.0) / 99;
}

const std::vector<std::string> kRecipes = {
    "unscaled:loss_scale=65536:growth_interval=50",
    "unscaled:overflow=nonsaturate:loss_scale=65536:growth_interval=20",
    "delayed:loss_scale=1024:growth_interval=100", "delayed:algo=ema0.9"};

}  // namespace

TEST_CASE("loss scaling and averages of amaxes train on the GPU as on the CPU") {
    NEEDS_GPU();
    for (const std::string& recipe : kRecipes) {
        CAPTURE(recipe);
        const auto cpu = make_cpu_trainer(reference(recipe));
        const auto gpu = cuda::make_cuda_trainer(reference(recipe), device());
        cpu->step(200);
        gpu->step(200);
        const auto expected = cpu->snapshot().arms[0].records, found = gpu->snapshot().arms[0].records;
        REQUIRE(found.size() == 200);
        std::vector<double> a, b;
        for (std::size_t i = 0; i < found.size(); ++i) {
            a.push_back(expected[i].loss), b.push_back(found[i].loss);
            CHECK(std::abs(found[i].skipped - expected[i].skipped) <= 2);
        }
        CHECK(std::abs(b[0] / a[0] - 1) < 1e-4);
        const double ratio = mean_of_steps_101_to_200(b) / mean_of_steps_101_to_200(a);
        MESSAGE(recipe << ": mean of steps 101-200 " << ratio << " of the CPU's, loss scale "
                       << found.back().loss_scale << " against " << expected.back().loss_scale << ", skipped "
                       << found.back().skipped << " against " << expected.back().skipped);
        CHECK(std::abs(ratio - 1) < 0.01);
    }
}

TEST_CASE("loss scaling gives the same bytes again, with and without graphs, and resumes exactly") {
    NEEDS_GPU();
    for (const std::string& recipe : kRecipes)
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            CAPTURE(recipe);
            CAPTURE(seed);
            TrainSpec spec = reference(recipe);
            spec.seed = seed;
            const Scratch folder;
            const auto first = cuda::make_cuda_trainer(spec, device()),
                       plain = cuda::make_cuda_trainer(spec, device(), cuda::Launching::one_by_one),
                       begun = cuda::make_cuda_trainer(spec, device()),
                       resumed = cuda::make_cuda_trainer(spec, device());
            first->step(48);
            plain->step(48);
            begun->step(24);
            begun->save(folder.path / "half");
            resumed->load(folder.path / "half");
            resumed->step(24);
            const auto bytes = bytes_after(*first, folder, "first");
            CHECK(bytes_after(*plain, folder, "plain") == bytes);
            CHECK(bytes_after(*resumed, folder, "resumed") == bytes);
        }
}
