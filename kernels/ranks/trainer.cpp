#include "kernels/ranks/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "core/base/error.h"
#include "kernels/ranks/devices.h"
#include "kernels/ranks/nccl.h"
#include "kernels/ranks/thread_link.h"
#include "kernels/ranks/workers.h"
#include "kernels/trainer/trainer.h"

namespace fp8lab::cuda {
namespace {

// A part of the trainer's life that one rank does.
struct Member {
    int device = 0;
    RankPlace place;
    std::shared_ptr<Device> gpu;
    std::unique_ptr<Trainer> trainer;
};

class ManyGpuTrainer final : public Trainer {
  public:
    ManyGpuTrainer(const TrainSpec& spec, const Preparation& preparation)
        : spec_(spec), workers_(static_cast<int>(spec.devices.size())) {
        check_devices(spec.devices);
        const int count = static_cast<int>(spec.devices.size());
        const NcclId id = make_nccl_id();
        const auto links = make_thread_links(count, spec.ranks.timeout);
        for (int rank = 0; rank < count; ++rank) {
            Member& member = members_.emplace_back();
            member.device = spec.devices[static_cast<std::size_t>(rank)];
            member.place = {rank, count, nullptr, links[static_cast<std::size_t>(rank)], spec.ranks.timeout};
        }
        try {
            on_all([&](Member& member) {
                member.gpu = std::make_shared<Device>();
                member.gpu->index = member.device;
                member.place.collective = make_nccl_collective(id, member.place.rank, count);
                member.trainer = make_rank_trainer(spec_, member.gpu, member.place, Launching::graphs,
                                                   member.place.rank == 0 ? preparation : quiet(preparation));
            });
        } catch (...) {
            release();
            throw;
        }
    }
    ~ManyGpuTrainer() override { release(); }
    ManyGpuTrainer(const ManyGpuTrainer&) = delete;
    ManyGpuTrainer& operator=(const ManyGpuTrainer&) = delete;

    void step(int n) override {
        on_all([n](Member& member) { member.trainer->step(n); });
    }
    void set(const Command& command) override {
        for (Member& member : members_) member.trainer->set(command);
    }
    Snapshot snapshot() override {
        Snapshot out;
        on_all([&](Member& member) {
            Snapshot own = member.trainer->snapshot();
            if (member.place.rank == 0) out = std::move(own);
        });
        return out;
    }
    int steps_done() const override { return first().steps_done(); }
    int steps_per_call() const override { return first().steps_per_call(); }
    const std::optional<NonFinite>& stopped(int index) const override { return first().stopped(index); }
    const TrainSpec& spec() const override { return spec_; }
    std::string note() const override { return first().note(); }
    void save(const std::filesystem::path& dir) const override {
        on_all([&](const Member& member) { member.trainer->save(dir); });
    }
    void load(const std::filesystem::path& path) override {
        on_all([&](Member& member) { member.trainer->load(path); });
    }

  private:
    const Trainer& first() const { return *members_.front().trainer; }
    static Preparation quiet(const Preparation& preparation) {
        return {.tell = {}, .stop = preparation.stop};
    }

    // Where one rank fails, the others do not wait for it: their GPUs may be inside a collective that never ends.
    template <class Work>
    void on_all(const Work& work) const {
        if (broken_) throw Error(ErrorKind::failed, "GPUs", "a rank has failed before");
        int failed_rank = 0;
        std::mutex mutex;
        const auto rank_work = [&](int rank) {
            Member& member = members_[static_cast<std::size_t>(rank)];
            check(cudaSetDevice(member.device), "cudaSetDevice");
            try {
                work(member);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!broken_) failed_rank = rank;
                broken_ = true;
                throw;
            }
        };
        try {
            workers_.run(rank_work, [&](const std::exception& error) {
                members_.front().place.link->fail(error.what());
                for (const Member& member : members_)
                    if (member.place.collective) member.place.collective->abort();
            });
        } catch (const Error& error) {
            throw with_rank(error, failed_rank);
        }
    }
    // What any GPU would say needs no rank.
    Error with_rank(const Error& error, int rank) const {
        if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::input ||
            error.where().starts_with("rank "))
            return error;
        return {error.kind(),
                fmt::format("rank {} (GPU {})", rank, members_[static_cast<std::size_t>(rank)].device),
                error.what()};
    }
    // On the threads whose devices they belong to; nothing waits for the others.
    void release() {
        const auto nothing = [](const std::exception&) {};
        workers_.run(
            [&](int rank) {
                Member& member = members_[static_cast<std::size_t>(rank)];
                cudaSetDevice(member.device);
                if (broken_ && member.place.collective) member.place.collective->abort();
                member.trainer.reset();
                member.place.collective.reset();
                member.gpu.reset();
            },
            nothing);
    }

    const TrainSpec spec_;
    mutable bool broken_ = false;
    mutable std::vector<Member> members_;
    mutable Workers workers_;
};

}  // namespace

std::unique_ptr<Trainer> make_many_gpu_trainer(const TrainSpec& spec, const Preparation& preparation) {
    return std::make_unique<ManyGpuTrainer>(spec, preparation);
}

}  // namespace fp8lab::cuda
