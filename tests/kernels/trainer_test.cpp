// Training on the GPU gives the numbers of the CPU emulation.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/training.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

// How near the loss of step 0 comes to the CPU's. Tensor cores drop what lies 13 bits below the largest
// product of a group, and the cast before the next layer turns that into whole steps of FP8: a model of it
// over networks of these sizes moves the loss by 1e-5 to 6e-4, either way. With scales that are powers of two
// or short sums (K = 32, blocks) many sums also lie on a BF16 tie, where the last bit decides; the emulated
// twins of the same recipes agree to 1e-4.
double step_0_bound(const std::string& recipe) {
    const bool blocks = recipe.starts_with("block128") && recipe.find("nonsaturate") == recipe.npos;
    return blocks || recipe == "current:pow2=1" ? 1e-3 : 1e-4;
}

double mean(const std::vector<double>& values, std::size_t first, std::size_t last) {
    const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
    return std::accumulate(at(first), at(last), 0.0) / static_cast<double>(last - first);
}

}  // namespace

TEST_CASE("the GPU and the CPU emulation train alike in every recipe") {
    NEEDS_GPU();
    for (const Recipe& recipe : recipes()) {
        const std::string name{recipe.base};
        CAPTURE(name);
        const auto cpu = make_cpu_trainer(reference(name));
        const auto gpu = cuda::make_cuda_trainer(reference(name), device());
        const Run expected = run(*cpu, 200), found = run(*gpu, 200);
        REQUIRE(expected.losses.size() == 200);
        REQUIRE(found.losses.size() == 200);
        CHECK(std::abs(found.losses[0] / expected.losses[0] - 1) < step_0_bound(name));
        const double bound = name == "mxfp4" || name.starts_with("nvfp4") ? 0.05 : 0.01;
        const double ratio = mean(found.losses, 101, 200) / mean(expected.losses, 101, 200);
        MESSAGE(name << ": loss of step 0 " << found.losses[0] << " against " << expected.losses[0]
                     << ", mean of steps 101-200 " << ratio << " of the CPU's");
        CHECK(std::abs(ratio - 1) < bound);
    }
}

TEST_CASE("options that the tensor cores do not have train on the GPU as on the CPU") {
    NEEDS_GPU();
    for (const std::string name :
         {"delayed:master=none:round_update=stochastic", "delayed:round=stochastic", "delayed:out=fp32",
          "current:pow2=1", "current:pow2=1:overflow=nonsaturate", "delayed:bwd=e4m3", "delayed:interval=4",
          "current:bwd=bf16", "delayed:fast_accum=none", "bf16:wgrad=bf16", "delayed:wgrad=bf16",
          "int8:wgrad=bf16", "rowwise:bwd=e4m3", "rowwise:out=fp32:fast_accum=none",
          "block128:pow2=0:bwd=e5m2", "block128:margin=2", "block128:overflow=nonsaturate"}) {
        CAPTURE(name);
        const auto cpu = make_cpu_trainer(reference(name));
        const auto gpu = cuda::make_cuda_trainer(reference(name), device());
        const Run expected = run(*cpu, 200), found = run(*gpu, 200);
        CHECK(std::abs(found.losses[0] / expected.losses[0] - 1) < step_0_bound(name));
        const double ratio = mean(found.losses, 101, 200) / mean(expected.losses, 101, 200);
        MESSAGE(name << ": loss of step 0 " << found.losses[0] << " against " << expected.losses[0]
                     << ", mean of steps 101-200 " << ratio);
        CHECK(std::abs(ratio - 1) < 0.02);
    }
}

TEST_CASE("records of the GPU are those of the CPU: amax, scale, counts and SQNR of every tensor") {
    NEEDS_GPU();
    for (const std::string name :
         {"delayed", "current", "rowwise", "block128", "mxfp8", "int8", "nvfp4", "nvfp4-te"}) {
        CAPTURE(name);
        const auto cpu = make_cpu_trainer(reference(name)),
                   gpu = cuda::make_cuda_trainer(reference(name), device());
        cpu->step(1);
        gpu->step(1);
        const auto expected = cpu->snapshot().arms[0].records.at(0),
                   found = gpu->snapshot().arms[0].records.at(0);
        REQUIRE(found.tensors.size() == expected.tensors.size());
        for (std::size_t i = 0; i < found.tensors.size(); ++i) {
            CAPTURE(i);
            const TensorRecord &a = expected.tensors[i], &b = found.tensors[i];
            CHECK(b.amax == doctest::Approx(static_cast<double>(a.amax)).epsilon(0.01));
            CHECK(std::isnan(b.scale) == std::isnan(a.scale));
            if (!std::isnan(a.scale))
                CHECK(b.scale == doctest::Approx(static_cast<double>(a.scale)).epsilon(0.01));
            CHECK(std::abs(b.underflow_pct - a.underflow_pct) < 1.0F);
            CHECK(std::abs(b.overflow_pct - a.overflow_pct) < 0.5F);
            CHECK(std::abs(b.lost_l1_pct - a.lost_l1_pct) < 0.5F);
            CHECK(std::abs(b.lost_energy_pct - a.lost_energy_pct) < 0.25F);
            CHECK(std::abs(b.sqnr_db - a.sqnr_db) < 0.5F);
        }
    }
}

// Too large for statistics in every step, short enough for several steps a launch.
TEST_CASE("the step after a snapshot has statistics, also where launches are of several steps") {
    NEEDS_GPU();
    TrainOptions options;
    options.task = "noise";
    options.layers = std::vector{768, 3072, 768};
    options.batch = 32;
    options.recipes = "delayed";
    const auto trainer = cuda::make_cuda_trainer(make_train_spec(options), device());
    REQUIRE(trainer->steps_per_call() > 1);
    for (int call = 0; call < 2; ++call) {
        trainer->step(trainer->steps_per_call());
        const auto records = trainer->snapshot().arms[0].records;
        REQUIRE(static_cast<int>(records.size()) == trainer->steps_per_call());
        for (std::size_t i = 0; i < records.size(); ++i)
            CHECK(std::isfinite(records[i].tensors.at(0).sqnr_db) == (i == 0));
    }
}

// No dimension is a multiple of a block, each has several: a scale in the wrong place would show.
TEST_CASE("networks of many partial blocks train on the tensor cores as on the CPU") {
    NEEDS_GPU();
    for (const std::string recipe : {"rowwise", "block128", "block128:pow2=0"}) {
        CAPTURE(recipe);
        TrainOptions options;
        options.task = "noise";
        options.layers = std::vector{300, 520, 200, 300};
        options.batch = 200;
        options.steps = 40;
        options.lr = 1e-3;
        options.recipes = recipe;
        const auto cpu = make_cpu_trainer(make_train_spec(options)),
                   gpu = cuda::make_cuda_trainer(make_train_spec(options), device());
        const Run expected = run(*cpu, 40), found = run(*gpu, 40);
        REQUIRE(found.losses.size() == 40);
        CHECK(found.last.provenance == Provenance::tensor_core);
        CHECK(std::abs(found.losses[0] / expected.losses[0] - 1) < step_0_bound(recipe));
        double worst = 0;
        for (std::size_t i = 0; i < 40; ++i)
            worst = std::max(worst, std::abs(found.losses[i] / expected.losses[i] - 1));
        MESSAGE(recipe << ": loss of step 0 " << found.losses[0] << " against " << expected.losses[0]
                       << ", largest deviation in 40 steps " << worst);
        CHECK(worst < 0.01);
    }
}

TEST_CASE("the watched tensor's histograms are the CPU's where codes have scales of their own") {
    NEEDS_GPU();
    for (const std::string recipe : {"rowwise", "block128"}) {
        const auto cpu = make_cpu_trainer(reference(recipe)),
                   gpu = cuda::make_cuda_trainer(reference(recipe), device());
        for (Trainer* trainer : {cpu.get(), gpu.get()}) {
            trainer->set(Watch{MlpTensor{TensorClass::x, 1}});  // the batch: the same in both
            trainer->step(3);
        }
        const auto expected = cpu->snapshot().arms[0].watched, found = gpu->snapshot().arms[0].watched;
        REQUIRE(expected);
        REQUIRE(found);
        CHECK(found->before.counts == expected->before.counts);
        CHECK(found->after.counts == expected->after.counts);
        CHECK(found->after.zeros == expected->after.zeros);
        CHECK(std::isnan(found->scale));
        CHECK(std::isnan(expected->scale));
    }
}

// How many are at least 2^e, for every binade. Under scales that are powers of two a rounding lowers none.
std::vector<std::int64_t> from_the_top(const Log2Histogram& histogram) {
    std::vector<std::int64_t> sums(histogram.counts.rbegin(), histogram.counts.rend());
    std::partial_sum(sums.begin(), sums.end(), sums.begin());
    return sums;
}

TEST_CASE(
    "the watched tensor's codes are those of the values shown beside them, whatever the optimiser moved") {
    NEEDS_GPU();
    TrainSpec spec = reference("delayed:pow2=1:margin=-2");
    spec.lr = 0.05;
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    for (const MlpTensor id : {MlpTensor{TensorClass::x, 2}, MlpTensor{TensorClass::dy, 1},
                               MlpTensor{TensorClass::dy, 2}, MlpTensor{TensorClass::dy, 3}}) {
        CAPTURE(to_string(id));
        gpu->set(Watch{id});
        gpu->step(5);
        const auto found = gpu->snapshot().arms[0].watched;
        REQUIRE(found);
        CHECK(found->after.zeros >= found->before.zeros);
        const auto before = from_the_top(found->before), after = from_the_top(found->after);
        const double top = max_finite(*found->format) / static_cast<double>(found->scale);
        for (std::size_t i = 0; i < before.size(); ++i) {
            const int e = Log2Histogram::kLowest + Log2Histogram::kBins - 1 - static_cast<int>(i);
            if (std::ldexp(1.0, e) > top || std::ldexp(1.0, e) < top * 0x1p-12) continue;
            CHECK(after[i] >= before[i]);
        }
    }
}

TEST_CASE("the margin of row and block scales moves without a new graph: too little of it saturates") {
    NEEDS_GPU();
    for (const std::string recipe : {"rowwise", "block128", "rowwise:round=stochastic", "mxfp8"}) {
        CAPTURE(recipe);
        const auto cpu = make_cpu_trainer(reference(recipe)),
                   gpu = cuda::make_cuda_trainer(reference(recipe), device());
        for (Trainer* trainer : {cpu.get(), gpu.get()}) {
            trainer->step(16);
            trainer->snapshot();
            trainer->set(SetMargin{0, -3});
            trainer->step(8);
        }
        const auto expected = cpu->snapshot().arms[0].records, found = gpu->snapshot().arms[0].records;
        REQUIRE(found.size() == 8);
        for (const std::size_t tensor : {0, 1}) {
            CAPTURE(tensor);
            CHECK((found[0].tensors[tensor].overflow_pct > 5) == (recipe != "mxfp8"));  // MX has no margin
            CHECK(
                found[0].tensors[tensor].overflow_pct ==
                doctest::Approx(static_cast<double>(expected[0].tensors[tensor].overflow_pct)).epsilon(0.05));
        }
    }
}

TEST_CASE("a slider acts at the next step: margin halves the scale, a longer history keeps the peak") {
    NEEDS_GPU();
    const auto gpu = cuda::make_cuda_trainer(reference("delayed:history=1"), device());
    gpu->step(40);
    gpu->snapshot();
    gpu->set(SetMargin{0, 3});
    gpu->step(8);
    const auto records = gpu->snapshot().arms[0].records;
    REQUIRE(records.size() == 8);
    // w1 moves little from step to step; its scale was fixed before the slider moved, and is an eighth after
    // it.
    const double before = static_cast<double>(records[0].tensors[1].scale),
                 after = static_cast<double>(records[2].tensors[1].scale);
    CHECK(after / before == doctest::Approx(1.0 / 8).epsilon(0.05));
    gpu->set(SetMargin{0, 0});
    gpu->set(SetHistory{0, 64});
    gpu->set(PoisonBatch{1000});
    gpu->step(16);
    const auto poisoned = gpu->snapshot().arms[0].records;
    CHECK(poisoned[0].tensors[0].amax > 100 * poisoned[4].tensors[0].amax);
    CHECK(poisoned[15].tensors[0].scale == poisoned[1].tensors[0].scale);
}

TEST_CASE("weights and moments kept in BF16 train beside FP32 masters, for recipe bf16 alone") {
    NEEDS_GPU();
    TrainSpec spec = reference("bf16");
    const Run masters = run(*cuda::make_cuda_trainer(spec, device()), 200);
    spec.state = StateType::bf16;
    const auto trainer = cuda::make_cuda_trainer(spec, device());
    const Run found = run(*trainer, 200);
    REQUIRE(found.losses.size() == 200);
    CHECK(found.losses[0] == masters.losses[0]);  // the operands of the first step are the same
    const double ratio = mean(found.losses, 101, 200) / mean(masters.losses, 101, 200);
    MESSAGE("mean loss of steps 101-200: " << ratio << " of that with FP32 masters");
    CHECK(ratio > 1.02);  // updates below half a step of BF16 are lost
    CHECK(ratio < 2);
    const Scratch folder;
    const auto bytes = bytes_after(*trainer, folder, "saved");
    const auto loaded = cuda::make_cuda_trainer(spec, device());
    loaded->load(folder.path / "saved");
    CHECK(bytes_after(*loaded, folder, "again") == bytes);
    spec.arms = {parse_recipe("delayed")};
    CHECK_THROWS_WITH_AS(cuda::make_cuda_trainer(spec, device()), doctest::Contains("is for recipe bf16"),
                         Error);
}

TEST_CASE("checkpoints move between CPU and GPU and between recipes") {
    NEEDS_GPU();
    const Scratch folder;
    const auto whole = cuda::make_cuda_trainer(reference("delayed"), device());
    const std::vector<double> expected = run(*whole, 200).losses;
    const auto first_half = make_cpu_trainer(reference("delayed"));
    first_half->step(100);
    first_half->save(folder.path / "cpu");
    for (const std::string recipe : {"delayed", "bf16", "mxfp8"}) {
        CAPTURE(recipe);
        const auto rest = cuda::make_cuda_trainer(reference(recipe), device());
        rest->load(folder.path / "cpu");
        CHECK(rest->steps_done() == 100);
        const std::vector<double> losses = run(*rest, 100).losses;
        REQUIRE(losses.size() == 100);
        CHECK(mean(losses, 0, 100) == doctest::Approx(mean(expected, 100, 200)).epsilon(0.05));
    }
    whole->save(folder.path / "gpu");
    const auto back = make_cpu_trainer(reference("bf16", 220));
    back->load(folder.path / "gpu");
    CHECK(back->steps_done() == 200);
    back->step(20);
    CHECK(std::isfinite(back->snapshot().arms[0].records.back().loss));
}

TEST_CASE("an arm that becomes non-finite stops where it stops on the CPU") {
    NEEDS_GPU();
    const auto cpu = make_cpu_trainer(reference("delayed:overflow=nonsaturate"));
    const auto gpu = cuda::make_cuda_trainer(reference("delayed:overflow=nonsaturate"), device());
    cpu->step(20);
    gpu->step(20);
    gpu->snapshot();
    REQUIRE(cpu->stopped(0));
    REQUIRE(gpu->stopped(0));
    CHECK(gpu->stopped(0)->step == cpu->stopped(0)->step);
    CHECK(gpu->stopped(0)->tensor == cpu->stopped(0)->tensor);
}

TEST_CASE("classification trains: the spiral's accuracy and decision picture") {
    NEEDS_GPU();
    TrainOptions options;
    options.task = "spiral";
    options.steps = 600;
    options.recipes = "delayed";
    const auto gpu = cuda::make_cuda_trainer(make_train_spec(options), device());
    gpu->step(600);
    const Snapshot snapshot = gpu->snapshot();
    CHECK(snapshot.arms[0].records.back().accuracy > 0.9);
    CHECK(snapshot.arms[0].decision.size() == kDecisionGrid * kDecisionGrid);
}

TEST_CASE("what does not fit the card is refused with the need and what would fit") {
    NEEDS_GPU();
    TrainOptions options;
    options.task = "teacher";
    options.layers = std::vector{65536, 65536, 65536};
    options.batch = 1 << 16;
    options.recipes = "bf16,delayed";
    CHECK_THROWS_WITH_AS(cuda::make_cuda_trainer(make_train_spec(options), device()),
                         doctest::Contains("GB are free"), Error);
}
