// Ranks of a transformer on the GPU against virtual ranks on the CPU.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/trainer/checkpoint.h"
#include "tests/simulator/ranks.h"

using namespace fp8lab;
using namespace fp8lab::test;

TEST_CASE("ranks of a transformer on the GPU step as virtual ranks on the CPU do") {
    check_like_cpu(on_ranks(tokens("fp32"), 2, Shard::none), 1e-5);
    check_like_cpu(on_ranks(tokens("nvfp4-te"), 2, Shard::none, Gather::bf16, "fp32"), 1e-5);
    for (const std::string recipe : {"bf16", "delayed", "current", "rowwise"})
        check_like_cpu(on_ranks(tokens(recipe), 2, Shard::none), 5e-3);
    check_like_cpu(on_ranks(tokens("bf16", 0), 2, Shard::none, Gather::bf16, "fp32"), 5e-3);
    check_like_cpu(on_ranks(tokens("delayed:act=smooth"), 2, Shard::none, Gather::bf16, "fp32"), 5e-3);
    check_like_cpu(on_ranks(tokens("fp32", 0, "zipf:257", 1), 4, Shard::none), 1e-5);
}

TEST_CASE("ranks of a transformer that each own a part of the weights step as virtual ranks on the CPU do") {
    check_like_cpu(on_ranks(tokens("fp32"), 2), 1e-5);
    check_like_cpu(on_ranks(tokens("nvfp4-te"), 2, Shard::zero1, Gather::bf16, "fp32"), 1e-5);
    for (const std::string recipe : {"bf16", "delayed", "current", "rowwise"})
        check_like_cpu(on_ranks(tokens(recipe), 2), 5e-3);
    check_like_cpu(on_ranks(tokens("fp32", 0, "zipf:257"), 4, Shard::zero1, Gather::bf16, "fp32"), 1e-5);
    check_like_cpu(on_ranks(tokens("delayed", 1, "zipf:257", 1), 4), 5e-3);
}

TEST_CASE("ranks of a transformer that send weights in E4M3 step as virtual ranks on the CPU do") {
    for (const std::string recipe : {"delayed", "current", "delayed:scope=head"})
        check_like_cpu(on_ranks(tokens(recipe), 2, Shard::zero1, Gather::e4m3), 5e-3);
}

TEST_CASE("sharding changes no bit of a transformer where weights are sent as their GEMMs read them") {
    const auto losses = [](const TrainSpec& spec) {
        std::vector<double> out;
        for (const StepRecord& record : gpu_records(spec, 5)) out.push_back(record.loss);
        return out;
    };
    for (const auto& [recipe, gather, state] : {std::tuple{"bf16", Gather::bf16, StateType::fp32},
                                                {"bf16", Gather::bf16, StateType::bf16},
                                                {"delayed", Gather::e4m3, StateType::fp32},
                                                {"current", Gather::e4m3, StateType::fp32}}) {
        CAPTURE(recipe);
        TrainSpec whole = on_ranks(tokens(recipe, 0), 2, Shard::none);
        TrainSpec cut = on_ranks(tokens(recipe, 0), 2, Shard::zero1, gather);
        whole.state = cut.state = state;
        CHECK(losses(cut) == losses(whole));
    }
}

TEST_CASE("the norm of gradients that is limited is that of all ranks") {
    // A limit far below the norm, and SGD: an update is as long as the limit says.
    for (const auto& [shard, count] : {std::pair{Shard::none, 2}, {Shard::zero1, 2}, {Shard::zero1, 4}}) {
        TrainSpec spec = on_ranks(tokens("fp32", 0.01, "zipf:257"), count, shard, Gather::bf16, "fp32");
        spec.optimizer = OptimizerKind::sgd;
        spec.lr = 100;
        check_like_cpu(spec, 1e-5);
    }
}

TEST_CASE(
    "a checkpoint of a transformer's ranks on the GPU resumes exactly, and on another number of ranks") {
    const Scratch folder;
    for (const auto& [shard, gather] :
         {std::pair{Shard::none, Gather::bf16}, {Shard::zero1, Gather::bf16}, {Shard::zero1, Gather::e4m3}}) {
        const std::string name = std::string(to_string(shard)) + std::string(to_string(gather));
        CAPTURE(name);
        const TrainSpec spec = on_ranks(tokens("delayed"), 2, shard, gather);
        const auto in = [&](const char* what) { return folder.path / (name + what); };
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.step(4);
            trainer.save(in("begun"));
            trainer.step(2);
            trainer.save(in("whole"));
        });
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.step(6);
            trainer.save(in("again"));
        });
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.load(in("begun"));
            trainer.step(2);
            trainer.save(in("resumed"));
        });
        const auto file = [&](const char* what) { return read_bytes(checkpoints_to_load(in(what)).front()); };
        CHECK(file("whole") == file("again"));
        CHECK(file("whole") == file("resumed"));
        const auto cpu = make_cpu_trainer(tokens("delayed"));
        cpu->load(in("begun"));
        cpu->step(2);
        const Snapshot alone = cpu->snapshot();
        double loss = 0;
        on_each_rank(on_ranks(tokens("delayed"), 4), [&](Trainer& trainer, int rank) {
            trainer.load(in("begun"));
            trainer.step(2);
            const Snapshot snapshot = trainer.snapshot();
            if (rank == 0) loss = snapshot.arms[0].records.back().loss;
        });
        CHECK(std::abs(loss / alone.arms[0].records.back().loss - 1) < 5e-3);
    }
}

TEST_CASE("a rank of a transformer whose batch is not finite stops all ranks of the GPU in the same step") {
    for (const Shard shard : {Shard::none, Shard::zero1}) {
        TrainSpec spec = on_ranks(tokens("delayed"), 2, shard);
        spec.ranks.bad = BadRank{1, std::numeric_limits<double>::quiet_NaN(), 3};
        const auto cpu = make_cpu_trainer(spec);
        cpu->step(6);
        const std::string expected = to_string(cpu->snapshot().arms[0].stopped.value());
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.step(6);
            const Snapshot snapshot = trainer.snapshot();
            REQUIRE(snapshot.arms[0].stopped);
            CHECK(to_string(*snapshot.arms[0].stopped) == expected);
            CHECK(expected == "1.qkv.x of rank 1 became non-finite at step 3");
            CHECK(snapshot.arms[0].records.size() == 4);
        });
    }
}

TEST_CASE("weights that all ranks have and that become non-finite are named as on one rank") {
    for (const bool of_tokens : {false, true})
        for (const Shard shard : {Shard::none, Shard::zero1}) {
            TrainSpec spec = on_ranks(of_tokens ? tokens("fp32", 0) : reference("fp32", 9), 2, shard);
            spec.lr = 1e35;
            spec.weight_decay = 1e10;  // weights times infinity
            const auto cpu = make_cpu_trainer(spec);
            cpu->step(2);
            const std::string expected = to_string(cpu->snapshot().arms[0].stopped.value());
            CHECK(expected.find(" of rank") == std::string::npos);
            CHECK(expected.ends_with("became non-finite at step 0"));
            on_each_rank(spec, [&](Trainer& trainer, int) {
                trainer.step(2);
                const Snapshot snapshot = trainer.snapshot();
                REQUIRE(snapshot.arms[0].stopped);
                CHECK(to_string(*snapshot.arms[0].stopped) == expected);
            });
        }
}

TEST_CASE("each rank of a transformer on the GPU may have amaxes of its own") {
    const Scratch folder;
    TrainSpec spec = on_ranks(tokens("delayed:history=4"), 2);
    // The scales of x and dy that differ between the ranks after some steps.
    const auto differ = [&](RankAmax amax) {
        spec.ranks.amax = amax;
        check_like_cpu(spec, 5e-3);
        const auto to = folder.path / to_string(amax);
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.step(6);
            trainer.save(to);
        });
        std::map<int, std::set<float>> scales;
        const ModelPlan plan = model_plan(spec);
        const LoadedCheckpoints saved = load_checkpoints(to, spec);
        for (const ScaleCheckpoint& one : saved.arms[0].scales)
            if (plan.tensor(one.id).tensor != TensorClass::w) scales[one.id.index].insert(one.scale);
        REQUIRE(scales.size() == 16);  // four linear layers in each of two blocks
        return std::ranges::count_if(scales, [](const auto& of) { return of.second.size() > 1; });
    };
    CHECK(differ(RankAmax::reduced) == 0);
    CHECK(differ(RankAmax::local) > 8);
}

TEST_CASE("ranks of a transformer count scored targets, and evaluate, as virtual ranks on the CPU do") {
    // Of copying only some targets count.
    for (const std::string task : {"copying", "text"}) {
        TrainSpec spec = on_ranks(tokens("fp32", 1, task, 0, 32), 2, Shard::zero1, Gather::bf16, "fp32");
        spec.steps = 6;
        const auto cpu = make_cpu_trainer(spec);
        cpu->step(6);
        const Snapshot expected = cpu->snapshot();
        on_each_rank(spec, [&](Trainer& trainer, int rank) {
            trainer.step(6);
            const Snapshot found = trainer.snapshot();
            if (rank != 0) return;
            for (std::size_t i = 0; i < 6; ++i) {
                const StepRecord &e = expected.arms[0].records[i], &f = found.arms[0].records[i];
                CHECK(f.loss == doctest::Approx(e.loss).epsilon(1e-5));
                CHECK(f.accuracy == doctest::Approx(e.accuracy).epsilon(0.02));
                REQUIRE(f.ranks.size() == 2);
                for (std::size_t r = 0; r < 2; ++r)
                    CHECK(f.ranks[r].loss == doctest::Approx(e.ranks[r].loss).epsilon(1e-5));
            }
            REQUIRE(found.arms[0].evaluation.has_value() == expected.arms[0].evaluation.has_value());
            if (!found.arms[0].evaluation) return;
            CHECK(found.arms[0].evaluation->loss ==
                  doctest::Approx(expected.arms[0].evaluation->loss).epsilon(1e-5));
            CHECK(found.arms[0].evaluation->step == 6);
        });
    }
}

namespace {

std::string refusal(TrainSpec spec, const std::function<void(TrainSpec&)>& change = {}) {
    if (change) change(spec);
    try {
        cuda::make_rank_trainer(spec, device(), {0, spec.ranks.count, nullptr, nullptr});
    } catch (const Error& error) {
        return error.kind() == ErrorKind::backend ? error.what() : "not a refusal";
    }
    return "";
}

}  // namespace

TEST_CASE("what ranks of a transformer on GPUs do not compute is refused in one sentence") {
    const auto two = [](const std::string& recipe, Shard shard = Shard::none, Gather gather = Gather::bf16) {
        return on_ranks(tokens(recipe), 2, shard, gather);
    };
    CHECK(refusal(two("bf16"), [](TrainSpec& s) { s.ranks.sum = "e4m3"; }) ==
          "--sum: GPUs add gradients in bf16 or fp32, not as e4m3: --backend cpu --ranks");
    CHECK(refusal(two("bf16"), [](TrainSpec& s) { s.accumulate.micro_batches = 2; }) ==
          "--accumulate: a GPU takes micro-batches of model mlp only: --backend cpu");
    CHECK(refusal(two("delayed:act=smooth")) ==
          "recipe delayed:act=smooth: act=smooth needs gradients in FP32: --sum fp32, or: --backend cpu "
          "--ranks");
    CHECK(refusal(two("delayed:m=bf16")) ==
          "recipe delayed:m=bf16: several GPUs keep master weights and moments in FP32: --backend cpu "
          "--ranks");
    CHECK(refusal(two("nvfp4-te", Shard::zero1, Gather::e4m3)) ==
          "--gather: e4m3: recipe nvfp4-te is emulated: --backend cpu --ranks");
}
