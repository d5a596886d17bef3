// Logs of the tab "A run", read on a thread of its own where there is a window, else in the caller's.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/run/read_run.h"
#include "core/threads/worker.h"
#include "labs/table/computed.h"

namespace fp8lab::workbench {

struct RunRequest {
    std::string files;  // paths, one per line; empty: no run
    RunSelection selection = {};
    bool operator==(const RunRequest& other) const {
        return files == other.files && selection.arm == other.selection.arm &&
               selection.rank == other.selection.rank;
    }
};

struct RunState {
    std::shared_ptr<const RunLog> log;  // what is read so far; null: no run
    bool partial = false;               // `log` is a part of what its files have, and the rest is being read
    ReadProgress progress;
    bool done = false, cancelled = false;
    std::string problem;  // in a window: why it could not be read, or not further
};

// The run of the present request. Without a window it is read before refresh() returns; in a window refresh() takes the
// newest state. A file that grows is read on, once a second, until another run is asked for; that is not busy().
class RunReads final : public table::Part {
  public:
    explicit RunReads(std::function<RunRequest()> request)
        : Part("", table::When::shown), request_(std::move(request)) {}
    ~RunReads() override { stop(); }
    const RunState& operator*() const { return state_; }
    const RunState* operator->() const { return &state_; }

    bool busy() const override { return running_; }
    void start_worker(std::function<void()> wake) override;
    // In a window a file that cannot be read is told in RunState::problem, and the run before stays. Without one throws
    // input_error.
    void refresh(bool shown, bool in_window) override;
    void again() { asked_.reset(); }  // at the next refresh()
    void cancel();                    // what was read stays

  private:
    void start(const RunRequest& request);
    void stop();
    void work(RunReader& reader, const std::stop_token& token);
    bool follow(RunReader& reader, const std::stop_token& token);
    struct Told {
        bool rows = true;  // with a copy of the log; else only how far it is read
        bool done = false, cancelled = false;
        std::string problem = {};
    };
    void publish(RunReader& reader, const Told& told);

    std::function<RunRequest()> request_;
    std::optional<RunRequest> asked_;
    RunState state_;
    std::function<void()> wake_;
    bool in_window_ = false;
    std::atomic<bool> running_ = false;
    std::atomic<bool> dropped_ = false;  // nobody waits for what the worker reads
    std::mutex mutex_;                   // of newest_
    std::optional<RunState> newest_;
    std::optional<Worker> worker_;
};

}  // namespace fp8lab::workbench
