// Moments in 16 and 8 bits and weights in BF16 by the GPU's trainer, its kernels on the CPU.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/nn/memory_plan.h"
#include "core/nn/streams.h"
#include "core/scaling/moment_storage.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/kernels/micro_batches.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

using State = std::map<std::string, std::vector<float>>;

// All values of a checkpoint, by name.
State state_of(Trainer& trainer) {
    const Scratch folder;
    trainer.save(folder.path);
    State out;
    for (const auto& [name, tensor] :
         parse_safetensors(read_bytes(checkpoints_to_load(folder.path)[0]), "checkpoint").tensors)
        out[name] = tensor.values;
    return out;
}

TrainSpec transformer(const std::string& recipes, int tie = 0) {
    TrainOptions options;
    options.model = "transformer";
    options.task = "zipf:257";
    options.batch = 2;
    options.steps = 8;
    options.recipes = recipes;
    options.sizes = {{"context", 17}, {"d", 32}, {"heads", 2}, {"ffn", 48}, {"blocks", 2}, {"tie", tie}};
    return make_train_spec(options);
}

const std::vector<std::string> kMoments = {"m=bf16:v=bf16", "v=bf16:round_v=stochastic", "m=e4m3:v=e4m3",
                                           "m=e5m2:v=bf16",
                                           "m=e4m3:v=e5m2:round_m=stochastic:round_v=stochastic"};

}  // namespace

TEST_CASE("steps with moments in fewer bits are the CPU's on the GPU, and so are their records") {
    std::vector<TrainSpec> specs;
    for (const std::string& moments : kMoments) {
        for (const std::string base : {"bf16:", "delayed:", "rowwise:", "nvfp4-te:"})
            specs.push_back(reference(base + moments, 8));
        specs.push_back(cut(reference("delayed:" + moments, 8), 4));
        specs.push_back(reference("delayed:loss_scale=1024:growth_interval=3:" + moments, 8));
        specs.push_back(transformer("bf16:" + moments));
        specs.push_back(transformer("delayed:scope=head:" + moments, 1));
    }
    for (const std::string weights : {"master=bf16", "master=bf16:round_update=stochastic:m=e4m3:v=bf16"})
        for (const std::string base : {"bf16:", "delayed:", "current:", "nvfp4:", "delayed:wgrad_in=bf16:"})
            specs.push_back(reference(base + weights, 8));
    for (const TrainSpec& spec : specs) {
        const std::string what = command_line(spec);
        CAPTURE(what);
        const auto cpu = make_cpu_trainer(spec);
        const auto gpu = cuda::make_cuda_trainer(spec, device());
        cpu->step(6);
        gpu->step(6);
        const auto expected = cpu->snapshot().arms[0].records, found = gpu->snapshot().arms[0].records;
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            CAPTURE(i);
            CHECK(std::abs(found[i].loss / expected[i].loss - 1) < 2e-3);
            CHECK(std::isnan(found[i].v_zero_pct) == std::isnan(expected[i].v_zero_pct));
            if (std::isnan(expected[i].v_zero_pct)) continue;
            CHECK(found[i].v_zero_pct == doctest::Approx(expected[i].v_zero_pct).epsilon(0.05));
            CHECK(std::abs(found[i].large_updates_ppm - expected[i].large_updates_ppm) <= 1000);
        }
    }
}

// In FP32, emulated, all arithmetic is the CPU's but for the order of sums: what follows from equal gradients is equal.
TEST_CASE("after a step on the GPU what is kept in fewer bits is on the grid of the CPU's") {
    for (const std::string& moments : kMoments) {
        CAPTURE(moments);
        const TrainSpec spec = reference("fp32:" + moments, 4), wide = reference("fp32", 4);
        const auto exact = cuda::make_cuda_trainer(wide, device()),
                   gpu = cuda::make_cuda_trainer(spec, device());
        exact->step(1);
        gpu->step(1);
        const State expected = state_of(*exact), found = state_of(*gpu);
        const MomentStorage storage = moment_storage(spec.arms[0]);
        for (const auto& [name, values] : expected) {
            CAPTURE(name);
            const bool m = name.starts_with("m.w"), v = name.starts_with("v.w");
            std::vector<float> kept = values;
            const auto ordinal = static_cast<int>(name.back() - '0');
            if (m) store(storage.m, kept, spec.seed, stream(Draw::update, ordinal, 0, 1));
            if (v) store(storage.v, kept, spec.seed, stream(Draw::update, ordinal, 0, 2));
            CHECK(found.at(name) == kept);
        }
    }
}

TEST_CASE("a step that is skipped leaves moments in fewer bits, and its record has no share of them") {
    TrainSpec spec = reference("fp32:loss_scale=1e36:growth_interval=0:m=e4m3:v=bf16", 4);
    spec.activation = Activation::relu;
    const auto trainer = cuda::make_cuda_trainer(spec, device());
    trainer->step(1);
    const State before = state_of(*trainer);
    trainer->set(PoisonBatch{1e7F});
    trainer->step(1);
    State after = state_of(*trainer);
    const auto records = trainer->snapshot().arms[0].records;
    REQUIRE(records[1].skipped == 1);
    CHECK(records[0].v_zero_pct >= 0);
    CHECK(std::isnan(records[1].v_zero_pct));
    after["loss_scale"] = before.at("loss_scale");
    CHECK(after == before);
}

TEST_CASE("a run with moments or weights in fewer bits resumes to the byte on the GPU, also from the CPU's") {
    std::vector<TrainSpec> specs;
    for (const std::string& moments : kMoments) specs.push_back(reference("delayed:" + moments, 12));
    specs.push_back(reference("fp32:m=e4m3:v=e5m2:round_v=stochastic", 12));
    specs.push_back(reference("delayed:master=bf16:round_update=stochastic:m=e4m3:v=e4m3", 12));
    specs.push_back(reference("bf16:master=bf16:round_update=stochastic", 12));
    specs.push_back(cut(reference("delayed:m=e4m3:v=e4m3:round_v=stochastic", 12), 4));
    specs.push_back(transformer("delayed:m=e4m3:v=e4m3:round_v=stochastic", 1));
    for (TrainSpec& spec : specs)
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            spec.seed = seed;
            const std::string what = command_line(spec);
            CAPTURE(what);
            const Scratch folder;
            const auto whole = cuda::make_cuda_trainer(spec, device()),
                       plain = cuda::make_cuda_trainer(spec, device(), cuda::Launching::one_by_one),
                       begun = cuda::make_cuda_trainer(spec, device()),
                       resumed = cuda::make_cuda_trainer(spec, device());
            whole->step(6);
            plain->step(6);
            begun->step(3);
            begun->save(folder.path / "gpu");
            resumed->load(folder.path / "gpu");
            const State middle = state_of(*begun);
            CHECK(state_of(*resumed) == middle);
            resumed->step(3);
            CHECK(state_of(*resumed) == state_of(*whole));
            CHECK(state_of(*plain) == state_of(*whole));
            const auto cpu = make_cpu_trainer(spec);
            cpu->load(folder.path / "gpu");
            cpu->step(2);
            cpu->save(folder.path / "cpu");
            const auto back = cuda::make_cuda_trainer(spec, device());
            back->load(folder.path / "cpu");
            CHECK(state_of(*back) == state_of(*cpu));
        }
}

TEST_CASE("an arm with moments in fewer bits allocates what is in its list") {
    for (const std::string recipe :
         {"bf16:m=bf16:v=e4m3", "delayed:m=e4m3:v=e4m3", "delayed:master=bf16:v=e5m2", "bf16:master=bf16",
          "nvfp4:master=bf16:m=e4m3"}) {
        CAPTURE(recipe);
        TrainSpec spec = reference(recipe, 2);
        spec.batch = 32;
        const cuda::ArmMemory list(spec, spec.arms[0],
                                   recipe.starts_with("bf16")    ? cuda::Engine::bf16
                                   : recipe.starts_with("nvfp4") ? cuda::Engine::emulated
                                                                 : cuda::Engine::fp8,
                                   spec.batch);
        CHECK(cuda::allocated_bytes(spec, device()).front() == static_cast<double>(list.requested_bytes()));
    }
}

TEST_CASE("a change of recipe keeps moments, in fewer bits or in more") {
    const auto gpu = cuda::make_cuda_trainer(reference("delayed", 8), device());
    gpu->step(2);
    const State wide = state_of(*gpu);
    gpu->set(SetRecipe{0, parse_recipe("delayed:m=e4m3:v=bf16")});
    gpu->step(2);
    const State narrow = state_of(*gpu);
    CHECK(gpu->snapshot().arms[0].records.back().v_zero_pct >= 0);
    std::vector<float> on_grid = narrow.at("v.w2");
    store(moment_storage(parse_recipe("bf16:v=bf16")).v, on_grid, 0, 0);
    CHECK(on_grid == narrow.at("v.w2"));
    gpu->set(SetRecipe{0, parse_recipe("delayed")});
    gpu->step(1);
    CHECK(std::isnan(gpu->snapshot().arms[0].records.back().v_zero_pct));
}

TEST_CASE("what a GPU does not keep in fewer bits is refused with the reason") {
    const auto check = [](const TrainSpec& spec, ErrorKind kind, const std::string& why) {
        try {
            cuda::make_cuda_trainer(spec, device());
            FAIL_CHECK("not refused: ", why);
        } catch (const Error& error) {
            CHECK(error.kind() == kind);
            CHECK(std::string(error.what()).find(why) != std::string::npos);
        }
    };
    check(reference("current:wgrad_in=bf16:v=fp16", 2), ErrorKind::backend,
          "moments in FP16 are computed on the CPU only: --backend cpu");
    check(reference("nvfp4:m=e4m3:moment_block=tensor", 2), ErrorKind::backend,
          "moments in E4M3 with one scale a matrix are computed on the CPU only: --backend cpu");
    check(transformer("bf16:master=bf16"), ErrorKind::backend,
          "weights in BF16 without an FP32 master are computed on the CPU only");
    TrainSpec spec = reference("bf16:m=bf16", 2);
    spec.state = StateType::bf16;
    check(spec, ErrorKind::usage, "--state bf16");
}
