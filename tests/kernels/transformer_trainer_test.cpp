// The transformer on the GPU gives the numbers of the CPU, and the same bytes run after run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/training.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

using Sizes = std::map<std::string, int, std::less<>>;

// L13's training, curriculum.md, with other sizes where they are given.
TrainSpec transformer(const std::string& recipes, int steps = 200, const Sizes& sizes = {},
                      const std::string& task = "text") {
    TrainOptions options;
    options.model = "transformer";
    options.task = task;
    options.sizes = sizes;
    options.steps = steps;
    options.schedule = "cosine";
    options.recipes = recipes;
    return make_train_spec(options);
}

double mean(const std::vector<double>& values, std::size_t first, std::size_t last) {
    const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
    return std::accumulate(at(first), at(last), 0.0) / static_cast<double>(last - first);
}

struct Bounds {
    double step_0 = 1e-4, mean = 0.01;
};

void check_like_cpu(const TrainSpec& spec, int steps, const Bounds& bounds) {
    CAPTURE(spec.arms[0].name);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    const Run expected = run(*cpu, steps, 10), found = run(*gpu, steps, 10);
    REQUIRE(found.losses.size() == expected.losses.size());
    CHECK(std::abs(found.losses[0] / expected.losses[0] - 1) < bounds.step_0);
    const auto half = static_cast<std::size_t>(steps) / 2, all = static_cast<std::size_t>(steps);
    const double ratio = mean(found.losses, half, all) / mean(expected.losses, half, all);
    MESSAGE(spec.arms[0].name << ": loss of step 0 " << found.losses[0] << " against " << expected.losses[0]
                              << ", mean of the second half " << ratio << " of the CPU's");
    CHECK(std::abs(ratio - 1) < bounds.mean);
}

}  // namespace

TEST_CASE("the transformer trains on the GPU as on the CPU") {
    NEEDS_GPU();
    for (const std::string recipe : {"fp32", "bf16", "delayed", "current", "rowwise", "block128", "mxfp8"})
        check_like_cpu(transformer(recipe), 200, {});
    for (const std::string recipe : {"unscaled", "nvfp4", "mxfp4"})
        check_like_cpu(transformer(recipe), 200, {1e-4, 0.05});
}

TEST_CASE("options and shapes of the transformer train on the GPU as on the CPU") {
    NEEDS_GPU();
    for (const std::string recipe :
         {"delayed:scope=head", "delayed:scope=attn", "delayed:act=smooth", "bf16:act=clamp",
          "current:act=smooth", "delayed:wide=1.down", "delayed:master=none:round_update=stochastic",
          "delayed:round_bwd=stochastic", "nvfp4-te", "bf16:out=fp32"})
        check_like_cpu(transformer(recipe, 60), 60, {2e-4, 0.02});
    const Bounds usual{2e-4, 0.02};
    check_like_cpu(transformer("delayed", 60, {{"kv-heads", 2}}), 60, usual);
    check_like_cpu(transformer("delayed", 60, {{"tie", 1}}), 60, usual);
    check_like_cpu(transformer("bf16", 60, {{"context", 30}, {"heads", 1}}), 60, usual);
    check_like_cpu(transformer("fp32", 60, {{"kv-heads", 1}, {"tie", 1}, {"context", 17}}), 60, usual);
    check_like_cpu(transformer("bf16", 60, {{"context", 160}, {"blocks", 1}}), 60, usual);
    check_like_cpu(transformer("delayed", 60, {}, "copying"), 60, usual);
    check_like_cpu(transformer("delayed:scope=head", 60, {{"tie", 1}}, "zipf:257"), 60, usual);
    TrainSpec clipped = transformer("delayed", 60);
    clipped.clip = 0.5, clipped.beta1 = 0.8, clipped.beta2 = 0.95, clipped.eps = 1e-6,
    clipped.weight_decay = 0.1;
    check_like_cpu(clipped, 60, usual);
}

TEST_CASE("held-out loss and sample of the GPU are those of the CPU") {
    NEEDS_GPU();
    for (const std::string recipe : {"fp32", "delayed"}) {
        CAPTURE(recipe);
        const TrainSpec spec = transformer(recipe, 50);
        const auto cpu = make_cpu_trainer(spec);
        const auto gpu = cuda::make_cuda_trainer(spec, device());
        cpu->step(50);
        gpu->step(50);
        const auto expected = cpu->snapshot().arms[0].evaluation, found = gpu->snapshot().arms[0].evaluation;
        REQUIRE(expected);
        REQUIRE(found);
        CHECK(found->step == 50);
        CHECK(std::abs(found->loss / expected->loss - 1) < 0.01);
        CHECK(std::abs(found->accuracy - expected->accuracy) < 0.02);
        CHECK(found->prompt == expected->prompt);
        CHECK(found->continuation.size() == expected->continuation.size());
        CHECK(found->text_step == 50);
        // An evaluation changes nothing of the training.
        const Scratch folder;
        const auto other = cuda::make_cuda_trainer(transformer(recipe, 100), device());
        const auto steady = cuda::make_cuda_trainer(transformer(recipe, 100), device());
        other->step(50);
        for (int i = 0; i < 50; ++i) steady->step(1);
        CHECK(bytes_after(*other, folder, "together") == bytes_after(*steady, folder, "one by one"));
    }
}

TEST_CASE("a text that is not drawn anew is that of an earlier step, and the last step has its own") {
    NEEDS_GPU();
    const auto gpu = cuda::make_cuda_trainer(transformer("delayed", 120), device());
    gpu->step(50);
    const auto first = gpu->snapshot().arms[0].evaluation;
    REQUIRE(first);
    CHECK(first->text_step == 50);
    gpu->step(50);
    const auto second = gpu->snapshot().arms[0].evaluation;
    REQUIRE(second);
    CHECK(second->step == 100);
    CHECK(second->loss != first->loss);
    CHECK(second->prompt == first->prompt);
    if (second->text_step != 100) {  // there was not yet time for another
        CHECK(second->text_step == 50);
        CHECK(second->continuation == first->continuation);
    }
    gpu->step(20);
    const auto last = gpu->snapshot().arms[0].evaluation;
    REQUIRE(last);
    CHECK(last->text_step == 120);
}

TEST_CASE("the transformer gives the same bytes again, with and without graphs, and resumes exactly") {
    NEEDS_GPU();
    for (const std::string recipe :
         {"bf16", "delayed", "current", "rowwise", "block128", "mxfp8", "nvfp4-te"}) {
        CAPTURE(recipe);
        TrainSpec spec = transformer(recipe, 200);
        if (recipe == "delayed") spec.clip = 1;
        const Scratch folder;
        const auto first = cuda::make_cuda_trainer(spec, device());
        const std::vector<double> losses = run(*first, 200).losses;
        const auto bytes = bytes_after(*first, folder, "first");
        for (const auto launching : {cuda::Launching::graphs, cuda::Launching::one_by_one}) {
            const auto again = cuda::make_cuda_trainer(spec, device(), launching);
            CHECK(run(*again, 200).losses == losses);
            CHECK(bytes_after(*again, folder, launching == cuda::Launching::graphs ? "again" : "no graph") ==
                  bytes);
        }
        const auto begun = cuda::make_cuda_trainer(spec, device());
        begun->step(104);
        begun->save(folder.path / "half");
        const auto resumed = cuda::make_cuda_trainer(spec, device());
        resumed->load(folder.path / "half");
        CHECK(resumed->steps_done() == 104);
        resumed->step(96);
        CHECK(bytes_after(*resumed, folder, "resumed") == bytes);
    }
}

// Contexts of cuDNN, where it is: updates run beside its attention, and a graph clears its counters otherwise.
TEST_CASE("blocks of a long context give the same bytes with and without graphs, and train as on the CPU") {
    NEEDS_GPU();
    for (const int tied : {0, 1})
        for (const std::string recipe : {"bf16", "delayed", "rowwise"}) {
            CAPTURE(recipe);
            CAPTURE(tied);
            const TrainSpec spec = transformer(recipe, 40, {{"context", 160}, {"blocks", 3}, {"tie", tied}});
            const Scratch folder;
            const auto graphs = cuda::make_cuda_trainer(spec, device()),
                       plain = cuda::make_cuda_trainer(spec, device(), cuda::Launching::one_by_one);
            CHECK(run(*graphs, 40).losses == run(*plain, 40).losses);
            CHECK(bytes_after(*graphs, folder, "graphs") == bytes_after(*plain, folder, "plain"));
            if (recipe == "bf16") check_like_cpu(spec, 40, {2e-4, 0.02});
        }
}

TEST_CASE("an aligned channel, a poisoned batch and a change of recipe act on the GPU as on the CPU") {
    NEEDS_GPU();
    const TrainSpec spec = transformer("delayed", 60);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    std::vector<double> expected, found;
    for (Trainer* trainer : {cpu.get(), gpu.get()}) {
        trainer->step(20);
        trainer->set(AlignChannel{});
        trainer->step(10);
        trainer->set(PoisonBatch{2});
        trainer->step(10);
        trainer->set(SetRecipe{0, parse_recipe("current")});
        trainer->step(20);
        auto& losses = trainer == cpu.get() ? expected : found;
        const Snapshot snapshot = trainer->snapshot();
        for (const StepRecord& r : snapshot.arms[0].records) losses.push_back(r.loss);
    }
    REQUIRE(expected.size() == 60);
    REQUIRE(found.size() == 60);
    for (const std::size_t part : {0U, 20U, 30U, 40U})
        CHECK(std::abs(mean(found, part, part + 10) / mean(expected, part, part + 10) - 1) < 0.03);
}

TEST_CASE("records and views of the transformer's tensors are those of the CPU") {
    NEEDS_GPU();
    const TrainSpec spec = transformer("delayed", 8);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    const ModelPlan plan = model_plan(spec);
    for (const std::string name : {"1.qkv.x", "1.down.x", "2.gate_up.dy", "1.qkv.dy", "2.out.w", "head.x"}) {
        CAPTURE(name);
        const TensorId id = *plan.find(name);
        cpu->set(Watch{id});
        gpu->set(Watch{id});
        cpu->step(1);
        gpu->step(1);
        const ArmSnapshot expected = cpu->snapshot().arms[0], found = gpu->snapshot().arms[0];
        const TensorRecord &e = expected.records.back().tensors[id.index],
                           &f = found.records.back().tensors[id.index];
        CHECK(f.amax == doctest::Approx(e.amax).epsilon(0.05));
        CHECK(f.scale == doctest::Approx(e.scale).epsilon(0.05));
        REQUIRE(expected.watched);
        REQUIRE(found.watched);
        CHECK(found.watched->before.n == expected.watched->before.n);
        CHECK(found.watched->format == expected.watched->format);
        double moved = 0;
        for (std::size_t b = 0; b < Log2Histogram::kBins; ++b)
            moved += std::abs(
                static_cast<double>(found.watched->before.counts[b] - expected.watched->before.counts[b]));
        CHECK(moved / static_cast<double>(expected.watched->before.n) < 0.02);
    }
}

TEST_CASE("a transformer whose widths a GPU cannot take is refused in one sentence") {
    NEEDS_GPU();
    for (const Sizes& sizes : {Sizes{{"d", 24}, {"heads", 1}}, Sizes{{"ffn", 100}}, Sizes{{"heads", 16}}})
        CHECK_THROWS_AS(cuda::make_cuda_trainer(transformer("bf16", 2, sizes), device()), Error);
}
