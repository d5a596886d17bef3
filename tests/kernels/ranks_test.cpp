// A training on two GPUs: the CPU's virtual ranks, one GPU, and the same bytes from run to run.
#include "tests/kernels/ranks.h"

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/trainer/cpu_trainer.h"
#include "kernels/trainer/many_gpus.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

TrainSpec on_two(TrainSpec spec, Shard shard = Shard::zero1, Gather gather = Gather::bf16,
                 const std::string& sum = "bf16") {
    spec = on_ranks(std::move(spec), 2, shard, gather, sum);
    spec.devices = {0, 1};
    return spec;
}

TrainSpec seeded(const std::string& recipe, std::uint64_t seed) {
    TrainSpec spec = reference(recipe);
    spec.seed = seed;
    return spec;
}

double mean_of_steps_101_to_200(const std::vector<double>& losses) {
    return std::accumulate(losses.begin() + 101, losses.begin() + 200, 0.0) / 99;
}

std::vector<double> losses_of(Trainer& trainer) { return run(trainer, 200).losses; }

std::string failure_of(const TrainSpec& spec) {
    try {
        cuda::make_many_gpu_trainer(spec, {});
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("two GPUs train as one GPU does with all of the batch, and as virtual ranks on the CPU") {
    NEEDS_TWO_GPUS();
    for (const std::uint64_t seed : {1U, 2U, 3U})
        for (const auto& [recipe, shard, gather, sum] :
             {std::tuple{"bf16", Shard::none, Gather::bf16, "fp32"},
              {"bf16", Shard::zero1, Gather::bf16, "bf16"},
              {"delayed", Shard::none, Gather::bf16, "bf16"},
              {"delayed", Shard::zero1, Gather::bf16, "bf16"},
              {"delayed", Shard::zero1, Gather::e4m3, "bf16"},
              {"current", Shard::zero1, Gather::e4m3, "bf16"},
              {"rowwise", Shard::zero1, Gather::bf16, "fp32"}}) {
            CAPTURE(recipe);
            CAPTURE(seed);
            const TrainSpec spec = on_two(seeded(recipe, seed), shard, gather, sum);
            const auto two = losses_of(*cuda::make_many_gpu_trainer(spec, {})),
                       one = losses_of(*cuda::make_cuda_trainer(seeded(recipe, seed), device()));
            TrainSpec virtual_ranks = spec;
            virtual_ranks.devices = {};
            const auto cpu = losses_of(*make_cpu_trainer(virtual_ranks));
            REQUIRE(two.size() == 200);
            double furthest = 0;
            for (std::size_t i = 0; i < two.size(); ++i)
                furthest = std::max(furthest, std::abs(two[i] / one[i] - 1));
            const double ratio = mean_of_steps_101_to_200(two) / mean_of_steps_101_to_200(one),
                         to_cpu = mean_of_steps_101_to_200(two) / mean_of_steps_101_to_200(cpu);
            MESSAGE(std::string(recipe) << " seed " << seed << ' '
                                        << command_line(spec).substr(command_line(spec).find("--devices"))
                                        << ": furthest loss " << furthest << ", mean of steps 101-200 "
                                        << ratio << " of one GPU's, " << to_cpu << " of the CPU's");
            CHECK(std::abs(ratio - 1) < 0.01);
            CHECK(std::abs(to_cpu - 1) < 0.01);
            if (std::string_view(recipe) == "bf16") CHECK(furthest < 4e-3);
        }
}

TEST_CASE("two GPUs give the same bytes again, and resume exactly, on one GPU too") {
    NEEDS_TWO_GPUS();
    for (const auto& [recipe, shard, gather] : {std::tuple{"delayed", Shard::none, Gather::bf16},
                                                {"delayed", Shard::zero1, Gather::bf16},
                                                {"delayed", Shard::zero1, Gather::e4m3},
                                                {"current", Shard::zero1, Gather::e4m3}})
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            CAPTURE(recipe);
            CAPTURE(seed);
            const Scratch folder;
            const TrainSpec spec = on_two(seeded(recipe, seed), shard, gather);
            const auto first = cuda::make_many_gpu_trainer(spec, {}),
                       again = cuda::make_many_gpu_trainer(spec, {}),
                       resumed = cuda::make_many_gpu_trainer(spec, {});
            first->step(100);
            again->step(60);
            again->save(folder.path / "begun");
            resumed->load(folder.path / "begun");
            resumed->step(40);
            again->step(40);
            const auto bytes = bytes_after(*first, folder, "first");
            CHECK(bytes == bytes_after(*again, folder, "again"));
            CHECK(bytes == bytes_after(*resumed, folder, "resumed"));
            const auto alone = cuda::make_cuda_trainer(seeded(recipe, seed), device());
            alone->load(folder.path / "begun");
            alone->step(40);
            CHECK(std::isfinite(alone->snapshot().arms[0].records.back().loss));
        }
}

TEST_CASE(
    "two GPUs train a transformer as virtual ranks on the CPU do, to the same bytes again, and resume") {
    NEEDS_TWO_GPUS();
    for (const auto& [recipe, shard, gather, clip] : {std::tuple{"bf16", Shard::none, Gather::bf16, 1},
                                                      {"bf16", Shard::zero1, Gather::bf16, 0},
                                                      {"delayed", Shard::none, Gather::bf16, 0},
                                                      {"delayed", Shard::zero1, Gather::e4m3, 1},
                                                      {"current", Shard::zero1, Gather::e4m3, 0},
                                                      {"rowwise", Shard::zero1, Gather::bf16, 1},
                                                      {"nvfp4-te", Shard::zero1, Gather::bf16, 1}}) {
        CAPTURE(recipe);
        const Scratch folder;
        TrainSpec spec = on_two(tokens(recipe, clip), shard, gather);
        spec.steps = 60;
        const auto first = cuda::make_many_gpu_trainer(spec, {}),
                   again = cuda::make_many_gpu_trainer(spec, {}),
                   resumed = cuda::make_many_gpu_trainer(spec, {});
        const auto found = run(*first, 40).losses;
        TrainSpec virtual_ranks = spec;
        virtual_ranks.devices = {};
        const auto cpu = make_cpu_trainer(virtual_ranks);
        const auto expected = run(*cpu, 6).losses;
        for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(found[i] / expected[i] - 1) < 5e-3);
        again->step(30);
        again->save(folder.path / "begun");
        resumed->load(folder.path / "begun");
        resumed->step(10);
        again->step(10);
        const auto bytes = bytes_after(*first, folder, "first");
        CHECK(bytes == bytes_after(*again, folder, "again"));
        CHECK(bytes == bytes_after(*resumed, folder, "resumed"));
    }
}

TEST_CASE("what is not finite on one of two GPUs stops the arm in the same step, with the rank") {
    NEEDS_TWO_GPUS();
    for (const Shard shard : {Shard::none, Shard::zero1}) {
        TrainSpec spec = on_two(reference("delayed", 100), shard);
        spec.ranks.bad = BadRank{1, std::numeric_limits<double>::quiet_NaN(), 50};
        const auto trainer = cuda::make_many_gpu_trainer(spec, {});
        trainer->step(100);
        const Snapshot snapshot = trainer->snapshot();
        REQUIRE(snapshot.arms[0].stopped);
        CHECK(to_string(*snapshot.arms[0].stopped) == "x1 of rank 1 became non-finite at step 50");
        CHECK(snapshot.arms[0].records.size() == 51);
    }
}

TEST_CASE("GPUs that are not there, or twice, are refused in one sentence") {
    NEEDS_TWO_GPUS();
    TrainSpec spec = on_two(reference("delayed"));
    spec.devices = {0, 63};
    CHECK(failure_of(spec).starts_with("--devices: there is no GPU 63; "));
    spec.devices = {1, 1};
    CHECK(failure_of(spec) == "--devices: GPU 1 is named twice");
}
