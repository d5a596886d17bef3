#include "labs/workbench/model_run_reads.h"

#include <chrono>
#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/threads/ask.h"

namespace fp8lab::workbench {
namespace {

using RunClock = std::chrono::steady_clock;

std::vector<std::filesystem::path> paths_in(const std::string& lines) {
    std::vector<std::filesystem::path> out;
    for (std::size_t at = 0; at <= lines.size();) {
        const std::size_t end = std::min(lines.find('\n', at), lines.size());
        if (end > at) out.emplace_back(lines.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

}  // namespace

void RunReads::start_worker(std::function<void()> wake) {
    wake_ = std::move(wake);
    in_window_ = true;
}

void RunReads::refresh(bool, bool) {
    if (const RunRequest wanted = request_(); asked_ != wanted) {
        asked_ = wanted;
        try {
            start(wanted);
        } catch (const Error& error) {
            if (!in_window_) throw;
            state_.problem = error.what();
        }
    }
    const std::lock_guard lock{mutex_};
    if (!newest_) return;
    // Nothing of it is there yet, or nothing could be read: what was shown stays.
    if (!newest_->log && (!newest_->done || !newest_->problem.empty()))
        newest_->log = state_.log, newest_->partial = state_.partial;
    state_ = std::move(*std::exchange(newest_, std::nullopt));
}

void RunReads::start(const RunRequest& request) {
    const auto paths = paths_in(request.files);
    if (paths.empty()) {
        stop();
        state_ = {};
        return;
    }
    auto reader = std::make_shared<RunReader>(paths, request.selection);
    stop();
    state_.problem.clear();
    state_.done = state_.cancelled = false;
    state_.progress = reader->progress();
    running_ = true;
    dropped_ = false;
    if (!in_window_) return work(*reader, {});
    worker_.emplace([this, reader, read = false](const std::stop_token& token) mutable {
        bool goes_on = true;
        if (std::exchange(read, true))
            goes_on = follow(*reader, token);
        else
            work(*reader, token);
        return goes_on ? Worker::Clock::now() + std::chrono::seconds(1) : Worker::kAsleep;
    });
}

void RunReads::cancel() {
    if (worker_) worker_->stop();
}

void RunReads::stop() {
    dropped_ = true;
    worker_.reset();
    running_ = false;
    const std::lock_guard lock{mutex_};
    newest_.reset();
}

void RunReads::work(RunReader& reader, const std::stop_token& token) {
    // A state with rows is a copy of the log, and everything is computed of it. So the next one comes when the log is
    // twice as long: all of them together cost as much as the last.
    std::uint64_t next_bytes = 0;
    RunClock::time_point next{};
    const auto show = [&](const ReadProgress& at) {
        if (!in_window_) return;
        const bool rows = at.bytes_read >= next_bytes && RunClock::now() >= next;
        publish(reader, {.rows = rows});
        if (!rows) return;
        next_bytes = 2 * at.bytes_read;
        next = RunClock::now() + std::chrono::seconds(1);
    };
    const AskBetween ask([&] {
        if (token.stop_requested() || interrupted()) throw Cancelled();
    });
    try {
        reader.read(show);
        publish(reader, {.done = true});
    } catch (const Cancelled&) {
        if (!dropped_) publish(reader, {.done = true, .cancelled = true});
    } catch (const Error& error) {
        running_ = false;
        if (!in_window_) throw;
        publish(reader, {.done = true, .problem = error.what()});
    }
    running_ = false;
    if (wake_) wake_();
}

// Reads what was appended. False: a file cannot be read any more.
bool RunReads::follow(RunReader& reader, const std::stop_token& token) {
    const AskBetween ask([&] {
        if (token.stop_requested()) throw Cancelled();
    });
    try {
        const std::uint64_t before = reader.progress().bytes_read;
        reader.read();
        if (reader.progress().bytes_read == before) return true;
        publish(reader, {.done = true});
        if (wake_) wake_();
        return true;
    } catch (const Cancelled&) {
        return false;
    } catch (const Error& error) {
        publish(reader, {.done = true, .problem = error.what()});
        if (wake_) wake_();
        return false;
    }
}

void RunReads::publish(RunReader& reader, const Told& told) {
    RunState state{.log = nullptr,
                   .progress = reader.progress(),
                   .done = told.done,
                   .cancelled = told.cancelled,
                   .problem = told.problem};
    const bool read_all = told.done && !told.cancelled && told.problem.empty();
    if (told.rows && (!reader.log().tensors.empty() || read_all))  // after Cancel the reader reads no more
        state.log = told.cancelled ? std::make_shared<const RunLog>(reader.take())
                                   : std::make_shared<const RunLog>(reader.log());
    state.partial = state.log && !told.done;
    {
        const std::lock_guard lock{mutex_};
        if (!state.log && newest_ && !told.done)  // which nobody has taken yet
            state.log = newest_->log, state.partial = newest_->partial;
        newest_ = std::move(state);
    }
    if (!told.done && wake_) wake_();
}

}  // namespace fp8lab::workbench
