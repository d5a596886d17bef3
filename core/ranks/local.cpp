#include "core/ranks/local.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ranks/codes.h"

namespace fp8lab {
namespace {

template <class T>
std::span<T> at(std::conditional_t<std::is_const_v<T>, const void*, void*> memory, std::size_t n) {
    return {static_cast<T*>(memory), n};
}

class Local final : public Collective {
  public:
    Local(int ranks, std::chrono::milliseconds timeout)
        : timeout_(timeout), present_(static_cast<std::size_t>(ranks)) {
        if (ranks < 1) throw usage_error("ranks", "at least one");
    }
    int ranks() const override { return static_cast<int>(present_.size()); }

    void reduce_scatter(const RankSum& sum, std::span<const RankBuffers> buffers, std::size_t n) override {
        meet("a reduce-scatter", buffers, timeout_, [&] { add(sum, n); });
    }

    void all_gather(std::span<const RankBuffers> buffers, std::size_t bytes) override {
        meet("an all-gather", buffers, timeout_, [&] {
            for (const RankBuffers& to : present_)
                for (std::size_t r = 0; r < present_.size(); ++r)
                    std::memmove(static_cast<std::byte*>(to.out) + r * bytes, present_[r].in, bytes);
        });
    }

    void all_reduce_max(std::span<const RankValues> values, std::size_t n) override {
        std::vector<RankBuffers> buffers;
        for (const RankValues& v : values) buffers.push_back({v.rank, v.values, v.values});
        meet("an all-reduce", buffers, timeout_, [&] {
            const auto largest = at<float>(present_[0].out, n);
            for (std::size_t r = 1; r < present_.size(); ++r) {
                const auto other = at<float>(present_[r].out, n);
                for (std::size_t i = 0; i < n; ++i)
                    if (other[i] > largest[i] || std::isnan(other[i])) largest[i] = other[i];
            }
            for (std::size_t r = 1; r < present_.size(); ++r)
                std::ranges::copy(largest, at<float>(present_[r].out, n).begin());
        });
    }

    void barrier(std::span<const int> driven, std::chrono::milliseconds timeout) override {
        std::vector<RankBuffers> buffers;
        for (const int rank : driven) buffers.push_back({rank, nullptr, nullptr});
        meet("a barrier", buffers, timeout, [] {});
    }

    void abort() override {
        const std::lock_guard lock(mutex_);
        end("another rank has ended");
    }

  private:
    void add(const RankSum& sum, std::size_t n) {
        std::vector<std::vector<float>> values(present_.size(), std::vector<float>(n * present_.size()));
        std::vector<std::span<const float>> views;
        for (std::size_t r = 0; r < present_.size(); ++r) {
            read_codes(sum.sent(), present_[r].in, values[r]);
            views.emplace_back(values[r]);
        }
        std::vector<float> total(n * present_.size());
        add_ranks(sum, views, total);
        for (std::size_t r = 0; r < present_.size(); ++r)
            write_codes(sum.kept(), std::span(total).subspan(r * n, n),
                        {.overflow = default_overflow(sum.kept())}, present_[r].out);
    }

    // The last caller computes, the others wait for it.
    void meet(const char* what, std::span<const RankBuffers> buffers, std::chrono::milliseconds timeout,
              const std::function<void()>& compute) {
        std::unique_lock lock(mutex_);
        refuse_after_end();
        for (const RankBuffers& one : buffers) {
            const auto rank = static_cast<std::size_t>(one.rank);
            if (one.rank < 0 || rank >= present_.size() || here_.size() == present_.size() ||
                std::ranges::find(here_, one.rank) != here_.end())
                throw usage_error(what, fmt::format("rank {} is named twice or is not in 0..{}", one.rank,
                                                    present_.size() - 1));
            present_[rank] = one;
            here_.push_back(one.rank);
        }
        const std::size_t call = calls_;
        if (here_.size() == present_.size()) {
            compute();
            here_.clear();
            ++calls_;
            all_here_.notify_all();
            return;
        }
        if (!all_here_.wait_for(lock, timeout, [&] { return calls_ != call || !ended_.empty(); }))
            end(fmt::format("rank {} did not reach {} within {} s", fmt::join(missing(), ", "), what,
                            std::chrono::duration<double>(timeout).count()));
        if (calls_ == call) refuse_after_end();
    }

    std::vector<int> missing() const {
        std::vector<int> out;
        for (int rank = 0; rank < ranks(); ++rank)
            if (std::ranges::find(here_, rank) == here_.end()) out.push_back(rank);
        return out;
    }

    void end(std::string why) {
        if (ended_.empty()) ended_ = std::move(why);
        all_here_.notify_all();
    }
    void refuse_after_end() const {
        if (!ended_.empty()) throw Error(ErrorKind::failed, "ranks", ended_);
    }

    const std::chrono::milliseconds timeout_;
    std::mutex mutex_;
    std::condition_variable all_here_;
    std::vector<RankBuffers> present_;  // by rank, of the call that is under way
    std::vector<int> here_;             // the ranks that have come
    std::size_t calls_ = 0;             // that are done
    std::string ended_;                 // why; empty: it has not
};

}  // namespace

std::unique_ptr<Collective> make_local_collective(int ranks, std::chrono::milliseconds timeout) {
    return std::make_unique<Local>(ranks, timeout);
}

}  // namespace fp8lab
