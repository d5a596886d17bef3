// Whole trainings by the GPU's trainer, its kernels on the CPU.
#include "tests/kernels/training.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/nn/model.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

TrainSpec transformer(const std::string& recipes, int steps, double clip, const std::string& task = "text",
                      int tie = 0) {
    TrainOptions options;
    options.model = "transformer";
    options.task = task;
    options.batch = 2;
    options.steps = steps + 1;  // without what comes after the last one: an evaluation
    options.recipes = recipes;
    options.sizes = {{"context", 17}, {"d", 32},       {"heads", 2}, {"ffn", 48},
                     {"blocks", 2},   {"kv-heads", 1}, {"tie", tie}};
    options.clip = clip;
    return make_train_spec(options);
}

// Emulated recipes are the CPU's; on the tensor cores sums have another order, and roundings follow them.
void check_like_cpu(const TrainSpec& spec, int steps, double bound) {
    CAPTURE(spec.arms[0].name);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    const Run expected = run(*cpu, steps), found = run(*gpu, steps);
    REQUIRE(found.losses.size() == expected.losses.size());
    for (std::size_t i = 0; i < found.losses.size(); ++i)
        CHECK(std::abs(found.losses[i] / expected.losses[i] - 1) < bound);
}

}  // namespace

TEST_CASE("the MLP's steps on the GPU are the CPU's") {
    for (const std::string recipe : {"fp32", "bf16", "delayed", "rowwise", "block128", "nvfp4-te"})
        check_like_cpu(reference(recipe, 6), 6, 2e-3);
}

TEST_CASE("the transformer's steps on the GPU are the CPU's") {
    for (const std::string recipe :
         {"fp32", "mxfp8", "nvfp4-te", "delayed:scope=attn", "delayed:wide=1.down"})
        check_like_cpu(transformer(recipe, 4, 0), 4, 1e-5);
    for (const std::string recipe : {"bf16", "delayed", "current", "rowwise", "delayed:act=smooth"})
        check_like_cpu(transformer(recipe, 4, 1), 4, 2e-3);
}

namespace {

// All values of a checkpoint, by name.
std::map<std::string, std::vector<float>> state_of(Trainer& trainer) {
    const Scratch folder;
    trainer.save(folder.path);
    std::map<std::string, std::vector<float>> out;
    for (const auto& [name, tensor] :
         parse_safetensors(read_bytes(checkpoints_to_load(folder.path)[0]), "checkpoint").tensors)
        out[name] = tensor.values;
    return out;
}

const std::vector<std::string> kInputs = {
    "current:fprop_in=bf16", "delayed:dgrad_in=bf16",    "delayed:wgrad_in=bf16",
    "delayed:wgrad_in=e4m3", "bf16:fprop_in=current",    "bf16:wgrad_in=delayed",
    "rowwise:wgrad_in=bf16", "rowwise:fprop_in=delayed", "current:dgrad_in=rowwise:wgrad_in=block128"};

}  // namespace

TEST_CASE("a format for each GEMM: the steps on the GPU are the CPU's") {
    for (const std::string& recipe : kInputs) {
        check_like_cpu(reference(recipe, 6), 6, 2e-3);
        check_like_cpu(transformer(recipe, 4, 1), 4, 2e-3);
    }
    check_like_cpu(transformer("delayed:wgrad_in=bf16:scope=head", 3, 1, "zipf:257", 1), 3, 2e-3);
    check_like_cpu(transformer("delayed:fprop_in=bf16:act=smooth", 3, 1), 3, 2e-3);
}

TEST_CASE("a recipe whose GEMMs are given its own name is that recipe on the GPU, to the byte") {
    for (const Recipe& row : recipes()) {
        const std::string name = row.name,
                          same = name + ":fprop_in=" + name + ":dgrad_in=" + name + ":wgrad_in=" + name;
        CAPTURE(name);
        for (const bool tokens : {false, true}) {
            const auto make = [&](const std::string& recipe) {
                return cuda::make_cuda_trainer(tokens ? transformer(recipe, 3, 1) : reference(recipe, 3),
                                               device());
            };
            const auto plain = make(name), given = make(same);
            CHECK(run(*given, 3).losses == run(*plain, 3).losses);
            CHECK(state_of(*given) == state_of(*plain));
        }
    }
}

TEST_CASE("the second cast on the GPU has the codes of the CPU's: the SQNR of the first weights and batch") {
    for (const std::string& recipe : kInputs) {
        CAPTURE(recipe);
        const auto cpu = make_cpu_trainer(reference(recipe, 2));
        const auto gpu = cuda::make_cuda_trainer(reference(recipe, 2), device());
        cpu->step(1);
        gpu->step(1);
        const auto expected = cpu->snapshot().arms[0].records.at(0),
                   found = gpu->snapshot().arms[0].records.at(0);
        std::size_t seconds = 0;
        for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
            CAPTURE(i);
            const TensorRecord &e = expected.tensors[i], &f = found.tensors[i];
            CHECK(std::isnan(f.second_sqnr_db) == std::isnan(e.second_sqnr_db));
            if (std::isnan(e.second_sqnr_db)) continue;
            ++seconds;
            const bool same_values = i == 0 || i % 3 == 1;  // the batch and the weights
            CHECK(f.second_sqnr_db == doctest::Approx(e.second_sqnr_db).epsilon(same_values ? 1e-6 : 0.05));
        }
        CHECK(seconds > 0);
    }
}

TEST_CASE("a run with a format for each GEMM resumes to the byte on the GPU, also where the CPU began it") {
    for (const std::string& recipe : kInputs)
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            CAPTURE(recipe);
            CAPTURE(seed);
            TrainSpec spec = reference(recipe, 6);
            spec.seed = seed;
            const Scratch folder;
            const auto whole = cuda::make_cuda_trainer(spec, device()),
                       begun = cuda::make_cuda_trainer(spec, device()),
                       resumed = cuda::make_cuda_trainer(spec, device());
            whole->step(6);
            begun->step(3);
            begun->save(folder.path / "gpu");
            resumed->load(folder.path / "gpu");
            const auto middle = state_of(*begun);
            CHECK(state_of(*resumed) == middle);
            resumed->step(3);
            CHECK(state_of(*resumed) == state_of(*whole));
            const auto cpu = make_cpu_trainer(spec);
            cpu->load(folder.path / "gpu");
            const auto on_cpu = state_of(*cpu);
            for (const auto& [name, values] : middle) {
                CAPTURE(name);
                CHECK(on_cpu.at(name) == values);
            }
            cpu->save(folder.path / "cpu");
            const auto back = cuda::make_cuda_trainer(spec, device());
            back->load(folder.path / "cpu");
            CHECK(state_of(*back) == middle);
        }
}

TEST_CASE("an MLP's arm allocates what is in its list, also where each GEMM has its cast") {
    std::vector<std::string> recipes = {"bf16", "delayed", "rowwise", "block128", "nvfp4-te"};
    recipes.insert(recipes.end(), kInputs.begin(), kInputs.end());
    for (const std::string& recipe : recipes)
        for (const int batch : {32, 256}) {  // dW inside the update, and stored
            CAPTURE(recipe);
            CAPTURE(batch);
            TrainSpec spec = reference(recipe, 2);
            spec.batch = batch;
            const cuda::Engine engine = recipe == "bf16"              ? cuda::Engine::bf16
                                        : recipe.starts_with("nvfp4") ? cuda::Engine::emulated
                                                                      : cuda::Engine::fp8;
            const cuda::ArmMemory list(spec, spec.arms[0], engine, batch);
            CHECK(cuda::allocated_bytes(spec, device()).front() ==
                  static_cast<double>(list.requested_bytes()));
        }
}

TEST_CASE("what no tensor-core product takes of a format for each GEMM is refused with the reason") {
    for (const auto& [recipe, why] :
         {std::pair{"current:wgrad_in=fp32", "wgrad: there is no tensor-core product"},
          {"current:fprop_in=e5m2", "fprop: tensor cores take no product of two E5M2"},
          {"nvfp4:wgrad_in=bf16", "fprop: "},
          {"delayed:wgrad_in=bf16:wide=1", "some layers in BF16"},
          {"rowwise:colsrc=rowwise", "colsrc=rowwise is computed on the CPU only"}}) {
        CAPTURE(recipe);
        CHECK_THROWS_WITH_AS(cuda::make_cuda_trainer(reference(recipe, 2), device()), doctest::Contains(why),
                             Error);
    }
    CHECK_THROWS_WITH_AS(
        cuda::make_cuda_trainer(transformer("delayed:wgrad_in=bf16:out=fp32", 2, 1), device()),
        doctest::Contains("have BF16"), Error);
}

TEST_CASE("a model that only the CPU trains is refused with its name") {
    TrainOptions options;
    options.model = "moe";
    options.recipes = "bf16";
    try {
        cuda::make_cuda_trainer(make_train_spec(options), device());
        FAIL_CHECK("not refused");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::backend);  // exit code 3
        CHECK(std::string(error.what()) == "--model moe: is trained on the CPU only: --backend cpu");
    }
}

TEST_CASE("a change of recipe to and from a format for each GEMM keeps the scales of casts that stay") {
    const auto gpu = cuda::make_cuda_trainer(reference("delayed", 8), device());
    gpu->step(3);
    const auto before = state_of(*gpu);
    gpu->set(SetRecipe{0, parse_recipe("delayed:wgrad_in=e4m3")});
    gpu->step(1);
    auto after = state_of(*gpu);
    // Slot 0 is empty, the newest amax last: those of before have moved one place.
    const auto moved = [](const std::vector<float>& old, const std::vector<float>& now) {
        return std::equal(old.begin() + 2, old.end(), now.begin() + 1);
    };
    CHECK(moved(before.at("history.dy2"), after.at("history.dy2.dgrad")));
    CHECK(moved(before.at("history.x2"), after.at("history.x2")));
    CHECK_FALSE(
        moved(before.at("history.dy2"), after.at("history.dy2.wgrad")));  // another format: a fresh one
    gpu->set(SetHistory{0, 4});
    gpu->set(SetRecipe{0, parse_recipe("delayed:history=4")});
    gpu->step(1);
    CHECK(state_of(*gpu).at("history.dy2").size() == 4);
    CHECK(state_of(*gpu).at("history.dy2")[2] == after.at("history.dy2.dgrad").back());
}

namespace {

// The counts of all linear layers in `steps` steps.
void check_statistics(const std::string& recipe, std::size_t steps, double bound) {
    CAPTURE(recipe);
    const TrainSpec spec = transformer(recipe, 4, 1);
    const ModelPlan plan = model_plan(spec);
    const auto cpu = make_cpu_trainer(spec);
    const auto gpu = cuda::make_cuda_trainer(spec, device());
    for (Trainer* trainer : {cpu.get(), gpu.get()}) trainer->step(static_cast<int>(steps));
    const Snapshot of_cpu = cpu->snapshot(), of_gpu = gpu->snapshot();
    const auto &expected = of_cpu.arms[0].records, &found = of_gpu.arms[0].records;
    REQUIRE((expected.size() == steps && found.size() == steps));
    std::size_t compared = 0;
    for (std::size_t step = 0; step < steps; ++step)
        for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
            const TensorRecord &e = expected[step].tensors[i], &f = found[step].tensors[i];
            if (plan.gemms[plan.tensors[i].gemm].role != GemmRole::linear) continue;
            CAPTURE(step);
            CAPTURE(plan.tensors[i].name);
            CHECK(f.kurtosis == doctest::Approx(e.kurtosis).epsilon(bound));
            CHECK(f.amax == doctest::Approx(e.amax).epsilon(bound));
            CHECK(f.sqnr_db == doctest::Approx(e.sqnr_db).epsilon(bound));
            CHECK(std::abs(f.underflow_pct - e.underflow_pct) < 100 * bound);
            CHECK(std::abs(f.overflow_pct - e.overflow_pct) < 100 * bound);
            ++compared;
        }
    CHECK(compared == steps * 2 * 4 * 3);  // blocks, linear layers, x w dy
}

}  // namespace

TEST_CASE("small transformers have the statistics of every step on the GPU, those of the CPU") {
    check_statistics("mxfp8", 4, 1e-3);    // emulated
    check_statistics("delayed", 1, 2e-2);  // on the tensor cores, before roundings add up
}

// 257 is no multiple of 8 or 16: rows of the embedding and columns of the logits are padded, and masked in the loss.
TEST_CASE("an odd vocabulary trains on the GPU as on the CPU, with a tied head and without") {
    for (const std::string recipe : {"bf16", "rowwise:scope=head", "nvfp4-te:scope=head"})
        check_like_cpu(transformer(recipe, 2, 1, "zipf:257", 0), 2, 2e-3);
    for (const std::string recipe : {"fp32", "delayed", "block128:scope=head"})
        check_like_cpu(transformer(recipe, 2, 1, "zipf:257", 1), 2, 2e-3);
}

TEST_CASE("a vocabulary of 50,257 trains on the GPU as on the CPU") {
    TrainSpec spec = transformer("delayed:scope=head", 2, 1, "zipf:50257", 1);
    spec.batch = 1;
    check_like_cpu(spec, 2, 2e-3);
}

// Text and zipf hold out 8 sequences a batch: more than a batch of the training, or fewer; the last piece of 3 is
// not full.
TEST_CASE("the held-out loss of the GPU is the CPU's, whatever the batch is") {
    for (const auto& [task, batch] : {std::pair{std::string("text"), 3}, {"text", 12}, {"zipf:257", 3}}) {
        CAPTURE(task);
        CAPTURE(batch);
        TrainSpec spec = transformer("fp32", 1, 0, task);
        spec.batch = batch;
        spec.steps = 1;
        spec.sizes["context"] = 6;
        const auto cpu = make_cpu_trainer(spec);
        const auto gpu = cuda::make_cuda_trainer(spec, device());
        cpu->step(1);
        gpu->step(1);
        const auto expected = cpu->snapshot().arms[0].evaluation, found = gpu->snapshot().arms[0].evaluation;
        REQUIRE(expected);
        REQUIRE(found);
        CHECK(found->step == 1);
        CHECK(found->loss == doctest::Approx(expected->loss).epsilon(1e-5));
        CHECK(found->accuracy == doctest::Approx(expected->accuracy).epsilon(1e-5));
        CHECK(found->prompt == expected->prompt);
        CHECK(found->continuation.size() == expected->continuation.size());
        CHECK(found->prompt.empty() == (task != "text"));
        CHECK(found->text_step == expected->text_step);
        CHECK(found->text_step == (task == "text" ? 1 : 0));
    }
}

TEST_CASE("arms that write their texts at the same time write what each writes alone") {
    const auto texts = [](const std::string& recipes) {
        TrainSpec spec = transformer(recipes, 1, 0, "text");
        spec.steps = 3;
        spec.lr = 5;  // so that the arms write different texts
        spec.sizes["context"] = 6;
        const auto trainer = cuda::make_cuda_trainer(spec, device());
        trainer->step(3);
        std::vector<std::string> out;
        for (const ArmSnapshot& arm : trainer->snapshot().arms) {
            REQUIRE(arm.evaluation);
            CHECK(arm.evaluation->text_step == 3);
            out.push_back(arm.evaluation->continuation);
        }
        return out;
    };
    const std::vector<std::string> together = texts("fp32,nvfp4"), first = texts("fp32"),
                                   second = texts("nvfp4");
    REQUIRE(together.size() == 2);
    CHECK(together[0] == first[0]);
    CHECK(together[1] == second[0]);
    CHECK(together[0].size() == kSampleLength);
    CHECK(together[0] != together[1]);
}

TEST_CASE("a transformer that is saved and resumed on the GPU goes on with the same bytes") {
    const TrainSpec spec = transformer("delayed", 4, 1);
    const Scratch folder;
    const auto whole = cuda::make_cuda_trainer(spec, device());
    whole->step(4);
    const auto bytes = bytes_after(*whole, folder, "whole");
    const auto begun = cuda::make_cuda_trainer(spec, device(), cuda::Launching::one_by_one);
    begun->step(2);
    begun->save(folder.path / "begun");
    const auto resumed = cuda::make_cuda_trainer(spec, device());
    resumed->load(folder.path / "begun");
    resumed->step(2);
    CHECK(bytes_after(*resumed, folder, "resumed") == bytes);
}
