// Scans of the Workbench: on a thread of its own where there is a window, else in the caller's.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/inspect/against.h"
#include "core/inspect/scan.h"
#include "core/threads/worker.h"
#include "core/verify/verify.h"
#include "labs/table/computed.h"

namespace fp8lab::workbench {

struct ScanRequest {
    std::string file, compare;  // paths, one per line; compare may be empty
    bool is_original = false;   // `compare`: not an earlier state, but what the model was quantised from
    std::string mx_rule = "up", cast_as = "name";
    std::string uses = {};        // JSON, {"blocks.1.qkv.weight": "w"}: of single tensors; empty: none
    bool unscaled_codes = false;  // codes without a scale are taken as values
    bool operator==(const ScanRequest&) const = default;
};

struct ScanState {
    Scanned scanned;
    // Against an original: as scanned.rows; null: no weight, not yet, or the original has none of the weights.
    std::shared_ptr<const TensorStore> original = {};
    std::vector<std::shared_ptr<const Verified>> verified = {};
    std::vector<std::optional<AgainstOriginal>> against = {};
    std::shared_ptr<const std::vector<std::string>> missing =
        {};  // in the original, not in the model; null: not yet
    bool done = false, cancelled = false;
};

// The scan of the present request. Without a window a new one is done before refresh() returns; in a window it is on a
// thread, and refresh() takes the newest state.
class Scans final : public table::Part {
  public:
    explicit Scans(std::function<ScanRequest()> request)
        : Part("", table::When::shown), request_(std::move(request)) {}
    ~Scans() override { stop(); }
    const ScanState& operator*() const { return state_; }
    const ScanState* operator->() const { return &state_; }
    const std::optional<ScanRequest>& asked() const { return asked_; }

    bool busy() const override { return running_; }
    void start_worker(std::function<void()> wake) override;
    // The files are opened before it returns, so that what was there stays where that fails: throws input_error. What an
    // earlier request has measured of the same files is not read again. Throws what the scan threw.
    void refresh(bool shown, bool in_window) override;
    void again() { asked_.reset(); }  // at the next refresh()
    void cancel();                    // what was measured stays
    void prefer(std::size_t tensor);  // is cast next

  private:
    struct Work;
    void start(const ScanRequest& request);
    void stop();
    void work(Work& work, const std::stop_token& token);
    void publish(const Work& work, bool done, bool cancelled);

    std::function<ScanRequest()> request_;
    std::optional<ScanRequest> asked_;
    ScanState state_;
    std::shared_ptr<ScanCache> cache_ = std::make_shared<ScanCache>();
    std::function<void()> wake_;
    bool in_window_ = false;
    std::atomic<bool> running_ = false;
    std::atomic<std::ptrdiff_t> preferred_ = -1;
    std::mutex mutex_;  // of the two below
    std::optional<ScanState> newest_;
    std::exception_ptr failure_;
    std::optional<Worker> worker_;
};

}  // namespace fp8lab::workbench
