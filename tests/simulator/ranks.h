// Ranks of the GPU's trainer, their kernels on the CPU: a thread for each rank, of which one runs at a time.
#pragma once

#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>
#include <thread>

#include "core/ranks/local.h"
#include "core/trainer/cpu_trainer.h"
#include "kernels/ranks/thread_link.h"
#include "tests/kernels/ranks.h"

namespace fp8lab::test {

// The simulator runs one thread at a time: who waits for the others lets them run.
inline std::mutex turn;
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
inline void on_each_rank(const TrainSpec& spec, const std::function<void(Trainer&, int)>& work) {
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

inline std::vector<StepRecord> gpu_records(const TrainSpec& spec, int steps) {
    std::vector<StepRecord> out;
    on_each_rank(spec, [&](Trainer& trainer, int rank) {
        trainer.step(steps);
        Snapshot snapshot = trainer.snapshot();
        if (rank == 0) out = std::move(snapshot.arms[0].records);
    });
    return out;
}

inline std::vector<StepRecord> cpu_records(const TrainSpec& spec, int steps) {
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(steps);
    Snapshot snapshot = trainer->snapshot();
    return snapshot.arms[0].records;
}

// The losses of six steps.
inline void check_like_cpu(const TrainSpec& spec, double bound) {
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

}  // namespace fp8lab::test
