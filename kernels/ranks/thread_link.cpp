#include "kernels/ranks/thread_link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/error.h"

namespace fp8lab::cuda {
namespace {

struct Meeting {
    explicit Meeting(int ranks) : said(static_cast<std::size_t>(ranks)) {}
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::optional<std::string>> said;  // in the call that is under way
    std::string what;                              // of the first rank that is there
    std::vector<std::string> result;               // of the call before
    std::size_t calls = 0;                         // that are done
    std::string failure;
};

class ThreadLink final : public HostLink {
  public:
    ThreadLink(std::shared_ptr<Meeting> meeting, int rank, std::chrono::milliseconds timeout)
        : meeting_(std::move(meeting)), rank_(static_cast<std::size_t>(rank)), timeout_(timeout) {}

    std::vector<std::string> all_gather(std::string bytes, const std::string& what,
                                        Patience patience) override {
        const std::chrono::milliseconds most = patience.value_or(timeout_);
        Meeting& m = *meeting_;
        std::unique_lock lock(m.mutex);
        throw_failure();
        // All ranks make the same calls: results of different ones must never be mixed.
        if (missing().size() == m.said.size())
            m.what = what;
        else if (m.what != what) {
            end(fmt::format("rank {} is at {}, another at {}", rank_, what, m.what));
            throw_failure();
        }
        m.said[rank_] = std::move(bytes);
        const std::size_t call = m.calls;
        if (missing().empty()) {
            m.result.clear();
            for (auto& one : m.said) m.result.push_back(std::exchange(one, std::nullopt).value());
            ++m.calls;
            m.changed.notify_all();
            return m.result;
        }
        if (!m.changed.wait_for(lock, most, [&] { return m.calls != call || !m.failure.empty(); }))
            end(fmt::format("rank {} did not reach {} within {} s", fmt::join(missing(), ", "), what,
                            std::chrono::duration<double>(most).count()));
        if (m.calls == call) throw_failure();
        return m.result;  // the next call does not end before all have left this one
    }

    void check() override {
        const std::lock_guard lock(meeting_->mutex);
        throw_failure();
    }

    void fail(const std::string& reason) override {
        const std::lock_guard lock(meeting_->mutex);
        end(reason);
    }

  private:
    std::vector<std::size_t> missing() const {
        std::vector<std::size_t> out;
        for (std::size_t r = 0; r < meeting_->said.size(); ++r)
            if (!meeting_->said[r]) out.push_back(r);
        return out;
    }
    void end(std::string reason) {
        if (meeting_->failure.empty()) meeting_->failure = std::move(reason);
        meeting_->changed.notify_all();
    }
    void throw_failure() const {
        if (!meeting_->failure.empty()) throw Error(ErrorKind::failed, "ranks", meeting_->failure);
    }

    const std::shared_ptr<Meeting> meeting_;
    const std::size_t rank_;
    const std::chrono::milliseconds timeout_;
};

}  // namespace

std::vector<std::shared_ptr<HostLink>> make_thread_links(int ranks, std::chrono::milliseconds timeout) {
    const auto meeting = std::make_shared<Meeting>(ranks);
    std::vector<std::shared_ptr<HostLink>> links;
    for (int rank = 0; rank < ranks; ++rank)
        links.push_back(std::make_shared<ThreadLink>(meeting, rank, timeout));
    return links;
}

}  // namespace fp8lab::cuda
