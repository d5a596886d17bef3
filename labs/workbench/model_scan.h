// Scans of the Workbench: on a thread of its own where there is a window, else in the caller's.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/inspect/scan.h"

namespace fp8lab::workbench {

struct ScanRequest {
    std::string file, compare;  // paths, one per line; compare may be empty
    std::string mx_rule = "up", cast_as = "name";
    std::string uses = {};        // JSON, {"blocks.1.qkv.weight": "w"}: of single tensors; empty: none
    bool unscaled_codes = false;  // codes without a scale are taken as values
    bool operator==(const ScanRequest&) const = default;
};

struct ScanState {
    Scanned scanned;
    bool done = false, cancelled = false;
};

class ScanRun {
  public:
    ~ScanRun() { stop(); }
    // Without it start() returns when all is done.
    void set_wake(std::function<void()> wake);
    // The files are opened before it returns, so that what was there stays where that fails: throws input_error. What an
    // earlier request has measured of the same files is not read again.
    void start(const ScanRequest& request);
    void cancel();                    // what was measured stays
    void prefer(std::size_t tensor);  // is cast next
    bool running() const { return running_; }
    // The newest state, once. Throws what the scan threw.
    std::optional<ScanState> take();

  private:
    struct Work;
    void stop();
    void work(Work& work, const std::stop_token& token);
    void publish(const Work& work, bool done, bool cancelled);

    std::shared_ptr<ScanCache> cache_ = std::make_shared<ScanCache>();
    std::function<void()> wake_;
    bool in_window_ = false;
    std::atomic<bool> running_ = false;
    std::atomic<std::ptrdiff_t> preferred_ = -1;
    std::mutex mutex_;  // of state_ and failure_
    std::optional<ScanState> state_;
    std::exception_ptr failure_;
    std::jthread worker_;
};

}  // namespace fp8lab::workbench
