// Ranks of an MLP on the GPU against virtual ranks on the CPU.
#include "tests/simulator/ranks.h"

#include <cmath>

#include "core/base/error.h"
#include "core/trainer/checkpoint.h"

using namespace fp8lab;
using namespace fp8lab::test;

TEST_CASE("ranks on the GPU step as virtual ranks on the CPU do") {
    for (const std::string recipe : {"fp32", "bf16", "delayed", "current", "rowwise", "block128", "mxfp8"})
        check_like_cpu(on_ranks(reference(recipe, 6), 2, Shard::none), recipe == "fp32" ? 1e-5 : 5e-3);
}

TEST_CASE("ranks on the GPU that each own a part of the weights step as virtual ranks on the CPU do") {
    for (const std::string recipe : {"fp32", "bf16", "delayed", "current", "rowwise", "block128", "mxfp8"})
        check_like_cpu(on_ranks(reference(recipe, 6), 2), recipe == "fp32" ? 1e-5 : 5e-3);
}

TEST_CASE("ranks on the GPU that send weights in E4M3 step as virtual ranks on the CPU do") {
    for (const std::string recipe : {"delayed", "current"})
        for (const int count : {2, 4, 8})
            check_like_cpu(on_ranks(reference(recipe, 6), count, Shard::zero1, Gather::e4m3), 5e-3);
    check_like_cpu(on_ranks(reference("delayed", 6), 2, Shard::zero1, Gather::e4m3, "fp32"), 5e-3);
}

TEST_CASE("a checkpoint of ranks on the GPU resumes exactly, and on another number of ranks") {
    const Scratch folder;
    for (const Gather gather : {Gather::bf16, Gather::e4m3}) {
        const std::string name(to_string(gather));
        const TrainSpec spec = on_ranks(reference("delayed", 8), 2, Shard::zero1, gather);
        const auto in = [&](const char* what) { return folder.path / (name + what); };
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.step(4);
            trainer.save(in("begun"));
            trainer.step(2);
            trainer.save(in("whole"));
        });
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.load(in("begun"));
            trainer.step(2);
            trainer.save(in("resumed"));
        });
        const auto file = [&](const char* what) { return read_bytes(checkpoints_to_load(in(what)).front()); };
        CHECK(file("whole") == file("resumed"));
        const auto cpu = make_cpu_trainer(reference("delayed", 8));
        cpu->load(in("begun"));
        cpu->step(2);
        double loss = 0;
        on_each_rank(on_ranks(reference("delayed", 8), 4), [&](Trainer& trainer, int rank) {
            trainer.load(in("begun"));
            trainer.step(2);
            const Snapshot snapshot = trainer.snapshot();
            if (rank == 0) loss = snapshot.arms[0].records.back().loss;
        });
        const Snapshot snapshot = cpu->snapshot();
        CHECK(std::abs(loss / snapshot.arms[0].records.back().loss - 1) < 5e-3);
    }
}

TEST_CASE("a rank whose batch is not finite stops all ranks of the GPU in the same step") {
    for (const Shard shard : {Shard::none, Shard::zero1}) {
        TrainSpec spec = on_ranks(reference("delayed", 8), 2, shard);
        spec.ranks.bad = BadRank{1, std::numeric_limits<double>::quiet_NaN(), 3};
        on_each_rank(spec, [&](Trainer& trainer, int) {
            trainer.step(6);
            const Snapshot snapshot = trainer.snapshot();
            REQUIRE(snapshot.arms[0].stopped);
            CHECK(to_string(*snapshot.arms[0].stopped) == "x1 of rank 1 became non-finite at step 3");
            CHECK(snapshot.arms[0].records.size() == 4);
        });
    }
}

TEST_CASE("each rank of the GPU may have amaxes of its own") {
    TrainSpec spec = on_ranks(reference("delayed:history=4", 6), 2);
    spec.ranks.amax = RankAmax::local;
    spec.ranks.bad = BadRank{1, 1e6, 2};
    const auto local = cpu_records(spec, 6), found = gpu_records(spec, 6);
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(found[i].loss / local[i].loss - 1) < 5e-3);
    spec.ranks.amax = RankAmax::reduced;
    const auto reduced = cpu_records(spec, 6), shared = gpu_records(spec, 6);
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(shared[i].loss / reduced[i].loss - 1) < 5e-3);
    CHECK(std::abs(reduced[3].loss / local[3].loss - 1) > 0.05);  // of these the two really differ
}
