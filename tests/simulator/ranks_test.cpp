// Ranks of the GPU's trainer, their kernels on the CPU: a thread for each rank, of which one runs at a time.
#include "tests/kernels/ranks.h"

#include <cmath>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/ranks/local.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "kernels/ranks/thread_link.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

// The simulator runs one thread at a time: who waits for the others lets them run.
std::mutex turn;
template <class Call>
auto without_turn(const Call& call) {
    struct Again {
        Again() { turn.unlock(); }
        ~Again() { turn.lock(); }
    } again;
    return call();
}

class SimulatedCollective final : public cuda::GpuCollective {
  public:
    explicit SimulatedCollective(std::shared_ptr<Collective> local) : local_(std::move(local)) {}
    int ranks() const override { return local_->ranks(); }
    void use(cudaStream_t) override {}
    void reduce_scatter(const RankSum& sum, std::span<const RankBuffers> buffers, std::size_t n) override {
        without_turn([&] { local_->reduce_scatter(sum, buffers, n); });
    }
    void all_gather(std::span<const RankBuffers> buffers, std::size_t bytes) override {
        without_turn([&] { local_->all_gather(buffers, bytes); });
    }
    void all_reduce_max(std::span<const RankValues> values, std::size_t n) override {
        without_turn([&] { local_->all_reduce_max(values, n); });
    }
    void barrier(std::span<const int>, std::chrono::milliseconds) override {}
    void abort() override { local_->abort(); }

  private:
    std::shared_ptr<Collective> local_;
};

class SimulatedLink final : public cuda::HostLink {
  public:
    explicit SimulatedLink(std::shared_ptr<HostLink> link) : link_(std::move(link)) {}
    std::vector<std::string> all_gather(std::string bytes, const std::string& what,
                                        Patience patience) override {
        return without_turn([&] { return link_->all_gather(std::move(bytes), what, patience); });
    }
    void check() override { link_->check(); }
    void fail(const std::string& reason) override { link_->fail(reason); }

  private:
    std::shared_ptr<HostLink> link_;
};

// Calls work(trainer, rank) of each rank in a thread of its own.
void on_each_rank(const TrainSpec& spec, const std::function<void(Trainer&, int)>& work) {
    constexpr std::chrono::seconds kTimeout(60);
    const std::shared_ptr<Collective> local = make_local_collective(spec.ranks.count, kTimeout);
    const auto links = cuda::make_thread_links(spec.ranks.count, kTimeout);
    std::vector<std::string> failures(static_cast<std::size_t>(spec.ranks.count));
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < spec.ranks.count; ++rank)
            threads.emplace_back([&, rank] {
                const std::lock_guard lock(turn);
                const auto at = static_cast<std::size_t>(rank);
                try {
                    const cuda::RankPlace place{rank, spec.ranks.count,
                                                std::make_shared<SimulatedCollective>(local),
                                                std::make_shared<SimulatedLink>(links[at]), kTimeout};
                    const auto trainer =
                        cuda::make_rank_trainer(spec, device(), place, cuda::Launching::one_by_one);
                    work(*trainer, rank);
                } catch (const std::exception& error) {
                    failures[at] = error.what();
                    links[at]->fail(error.what());
                    local->abort();
                }
            });
    }
    for (const std::string& failure : failures) CHECK(failure == "");
}

std::vector<StepRecord> gpu_records(const TrainSpec& spec, int steps) {
    std::vector<StepRecord> out;
    on_each_rank(spec, [&](Trainer& trainer, int rank) {
        trainer.step(steps);
        Snapshot snapshot = trainer.snapshot();
        if (rank == 0) out = std::move(snapshot.arms[0].records);
    });
    return out;
}

std::vector<StepRecord> cpu_records(const TrainSpec& spec, int steps) {
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(steps);
    Snapshot snapshot = trainer->snapshot();
    return snapshot.arms[0].records;
}

void check_like_cpu(const TrainSpec& spec, double bound) {
    const std::string what = command_line(spec);
    CAPTURE(what);
    const auto expected = cpu_records(spec, 6), found = gpu_records(spec, 6);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i);
        if (bound == 0)
            CHECK(found[i].loss == expected[i].loss);
        else
            CHECK(std::abs(found[i].loss / expected[i].loss - 1) < bound);
    }
}

}  // namespace

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
