#include "kernels/trainer/many_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "core/base/error.h"
#include "kernels/ranks/devices.h"
#include "kernels/ranks/nccl.h"
#include "kernels/ranks/tcp_link.h"
#include "kernels/ranks/thread_link.h"
#include "kernels/ranks/workers.h"
#include "kernels/trainer/trainer.h"

namespace fp8lab::cuda {
namespace {

// A rank of this process, its GPU and its trainer.
struct Member {
    int device = 0;
    RankPlace place;
    std::shared_ptr<Device> gpu;
    std::unique_ptr<Trainer> trainer;
};

class ManyGpuTrainer final : public Trainer {
  public:
    ManyGpuTrainer(const TrainSpec& spec, const Preparation& preparation)
        : spec_(spec), workers_(spec.ranks.process ? 1 : spec.ranks.count) {
        make_members();
        try {
            const NcclId id = shared_id();
            on_all([&](Member& member) {
                member.gpu = std::make_shared<Device>();
                member.gpu->index = member.device;
            });
            on_all([&](Member& member) {
                member.place.link->all_gather({},
                                              "the start of NCCL");  // from here on ranks wait for each other
                member.place.collective = make_nccl_collective(id, member.place);
                member.trainer = make_rank_trainer(spec_, member.gpu, member.place, Launching::graphs,
                                                   member.place.rank == 0 ? preparation : quiet(preparation));
            });
        } catch (const std::exception& error) {
            members_.front().place.link->fail(error.what());
            release();
            throw;
        }
    }
    ~ManyGpuTrainer() override {
        meet_at_the_end();
        release();
    }
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
            if (&member == &members_.front()) out = std::move(own);
        });
        return out;
    }
    unsigned of_any_rank(unsigned flags) override {
        if (!spec_.ranks.process) return flags;
        const std::string mine(reinterpret_cast<const char*>(&flags), sizeof flags);
        const Breaks breaks(broken_);
        for (const std::string& one :
             members_.front().place.link->all_gather(mine, fmt::format("the end of step {}", steps_done()))) {
            unsigned theirs = 0;
            if (one.size() == sizeof theirs) std::memcpy(&theirs, one.data(), sizeof theirs);
            flags |= theirs;
        }
        return flags;
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
    // A call that throws leaves the trainer broken.
    class Breaks {
      public:
        explicit Breaks(bool& broken) : broken_(broken) {}
        ~Breaks() { broken_ = broken_ || std::uncaught_exceptions() > before_; }
        Breaks(const Breaks&) = delete;
        Breaks& operator=(const Breaks&) = delete;

      private:
        bool& broken_;
        const int before_ = std::uncaught_exceptions();
    };
    // A process that ends early would look like one that has failed.
    void meet_at_the_end() noexcept {
        if (broken_ || !spec_.ranks.process) return;
        try {
            members_.front().place.link->all_gather({}, "the end");
        } catch (const std::exception&) {  // it has ended otherwise: there is nothing left to lose
        }
    }
    void make_members() {
        const int count = spec_.ranks.count;
        const auto timeout = spec_.ranks.timeout;
        if (const auto& own = spec_.ranks.process) {
            check_devices({own->device});
            const std::string run = fmt::format("version {} {}", FP8LAB_VERSION, command_line(spec_));
            members_.push_back(
                {own->device,
                 {own->rank, count, nullptr, make_tcp_link(*own, count, run, timeout), timeout},
                 {},
                 {}});
            return;
        }
        check_devices(spec_.devices);
        const auto links = make_thread_links(count, timeout);
        for (int rank = 0; rank < count; ++rank) {
            const auto at = static_cast<std::size_t>(rank);
            members_.push_back({spec_.devices[at], {rank, count, nullptr, links[at], timeout}, {}, {}});
        }
    }
    // Rank 0 makes it.
    NcclId shared_id() const {
        const RankPlace& own = members_.front().place;
        std::string bytes;
        NcclId id{};
        if (own.rank == 0) {
            id = make_nccl_id();
            bytes.assign(id.begin(), id.end());
        } else {
            nccl_text();  // a rank without NCCL says so
        }
        if (!spec_.ranks.process) return id;
        const std::string told = own.link->all_gather(bytes, "the start of NCCL")[0];
        if (told.size() == id.size()) std::ranges::copy(told, id.begin());
        return id;
    }
    const Trainer& first() const { return *members_.front().trainer; }
    static Preparation quiet(const Preparation& preparation) {
        return {.tell = {}, .stop = preparation.stop};
    }

    // Where one rank fails, the others do not wait for it: their GPUs may be inside a collective that never ends.
    template <class Work>
    void on_all(const Work& work) const {
        if (broken_) throw Error(ErrorKind::failed, "GPUs", "a rank has failed before");
        const Member* failed = nullptr;  // the first
        const auto rank_work = [&](int index) {
            Member& member = members_[static_cast<std::size_t>(index)];
            check(cudaSetDevice(member.device), "cudaSetDevice");
            work(member);
        };
        try {
            workers_.run(rank_work, [&](int index, const std::exception& error) {
                broken_ = true;
                failed = &members_[static_cast<std::size_t>(index)];
                const auto* const own = dynamic_cast<const Error*>(&error);
                failed->place.link->fail(own ? with_rank(*own, *failed).what() : error.what());
                for (const Member& each : members_)
                    if (each.place.collective) each.place.collective->abort();
            });
        } catch (const Error& error) {
            throw with_rank(error, *failed);
        }
    }
    // What any GPU would say needs no rank.
    static Error with_rank(const Error& error, const Member& member) {
        const bool says_rank = error.where().starts_with("rank ") || error.where() == "ranks";
        if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::input || says_rank) return error;
        return {error.kind(), fmt::format("rank {} (GPU {})", member.place.rank, member.device),
                error.what()};
    }
    // On the threads whose devices they belong to; nothing waits for the others.
    void release() {
        const auto nothing = [](int, const std::exception&) {};
        workers_.run(
            [&](int index) {
                Member& member = members_[static_cast<std::size_t>(index)];
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
