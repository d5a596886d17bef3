#include "core/threads/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/threads/ask.h"

namespace fp8lab {

namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

thread_local const AskBetween* t_ask = nullptr;  // nullptr: loops run to their ends

// Runs a range of a loop of `count` indices, in parts where there is an AskBetween.
void run_range(const Body& body, std::size_t begin, std::size_t end, std::size_t count, std::size_t grain) {
    if (t_ask == nullptr) return body(begin, end);
    constexpr std::size_t kParts = 64;
    const std::size_t part = std::max<std::size_t>(count / grain / kParts, 1) * grain;
    for (std::size_t next = begin; begin < end; begin = next) {
        next = end - begin < part + grain ? end : begin + part;
        (*t_ask)();
        body(begin, next);
    }
}

// One loop at a time; ranges are handed out by a counter. A nested or concurrent loop runs in its caller.
class Pool {
  public:
    ~Pool() { start_workers(1); }

    int size() const { return size_; }

    void lower_priority_of_workers() {
        const Alone alone(busy_);
        const int size = size_;
        start_workers(1);
        yields_ = true;
        start_workers(size);
    }

    void resize(int count) {
        const Alone alone(busy_);
        start_workers(count);
    }

    void run(std::size_t count, std::size_t grain, const Body& body) {
        const std::size_t whole = std::max<std::size_t>(grain, 1), grains = count / whole;
        const int size = size_;  // it may change until the loop is ours: then there are more ranges, or fewer
        const std::size_t ranges = std::min(grains, static_cast<std::size_t>(size) * 4);
        // Not a mutex: the thread of a nested loop has it already.
        if (ranges < 2 || size < 2 || busy_.exchange(true)) return run_range(body, 0, count, count, whole);
        {
            std::lock_guard lock{mutex_};
            body_ = &body, count_ = count, grain_ = whole, ranges_ = ranges, ask_ = t_ask;
            next_ = 0, pending_ = ranges, failure_ = nullptr;
            ++generation_;
        }
        work_.notify_all();
        take_ranges();
        std::unique_lock lock{mutex_};
        done_.wait(lock, [&] { return pending_ == 0 && serving_ == 0; });
        body_ = nullptr;
        const std::exception_ptr failure = std::exchange(failure_, nullptr);
        lock.unlock();
        busy_ = false;
        if (failure) std::rethrow_exception(failure);
    }

  private:
    // As a loop that runs: those that begin meanwhile run in their callers.
    class Alone {
      public:
        explicit Alone(std::atomic<bool>& busy) : busy_(busy) {
            while (busy_.exchange(true)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ~Alone() { busy_ = false; }
        Alone(const Alone&) = delete;
        Alone& operator=(const Alone&) = delete;

      private:
        std::atomic<bool>& busy_;
    };

    void start_workers(int count) {
        {
            std::lock_guard lock{mutex_};
            stopping_ = true;
        }
        work_.notify_all();
        workers_.clear();  // joins
        stopping_ = false;
        size_ = std::max(count, 1);
        for (int i = 1; i < size_; ++i) workers_.emplace_back([this] { serve(); });
    }

    std::size_t begin_of(std::size_t range) const {
        return range == ranges_ ? count_ : count_ / grain_ * range / ranges_ * grain_;
    }

    void serve() {
        if (yields_) lower_priority();
        std::unique_lock lock{mutex_};
        long seen = generation_;
        for (;;) {
            work_.wait(lock, [&] { return stopping_ || generation_ != seen; });
            if (stopping_) return;
            seen = generation_;
            if (!body_) continue;
            ++serving_;
            t_ask = ask_;
            lock.unlock();
            take_ranges();
            lock.lock();
            if (--serving_ == 0) done_.notify_all();
        }
    }

    void take_ranges() {
        for (std::size_t range = next_++; range < ranges_; range = next_++) {
            std::exception_ptr failure;
            try {
                run_range(*body_, begin_of(range), begin_of(range + 1), count_, grain_);
            } catch (...) {
                failure = std::current_exception();
            }
            std::lock_guard lock{mutex_};
            if (failure && !failure_) failure_ = failure;
            if (--pending_ == 0) done_.notify_all();
        }
    }

    std::atomic<bool> busy_ = false;  // a loop runs
    std::mutex mutex_;
    std::condition_variable work_, done_;
    const Body* body_ = nullptr;
    const AskBetween* ask_ = nullptr;  // of the loop's caller
    std::size_t count_ = 0, grain_ = 1, ranges_ = 0, pending_ = 0;
    std::atomic<std::size_t> next_ = 0;
    int serving_ = 0;
    long generation_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::atomic<int> size_ = 1;
    bool yields_ = false;                // written while there are no workers
    std::vector<std::jthread> workers_;  // changed by who has busy_
};

// The one process-wide object of the code base: threads are a property of the process.
Pool& pool() {
    static Pool instance;
    static std::once_flag once;
    std::call_once(once, [] { instance.resize(static_cast<int>(std::thread::hardware_concurrency())); });
    return instance;
}

}  // namespace

AskBetween::AskBetween(std::function<void()> ask)
    : ask_(std::move(ask)), outer_(std::exchange(t_ask, ask_ ? this : nullptr)) {}
AskBetween::~AskBetween() { t_ask = outer_; }

void ask_between() {
    if (t_ask != nullptr) (*t_ask)();
}

void set_threads(int count) { pool().resize(count); }
void lower_priority_of_workers() { pool().lower_priority_of_workers(); }
int threads() { return pool().size(); }
void parallel_for(std::size_t count, std::size_t grain, const Body& body) {
    if (count > 0) pool().run(count, grain, body);
}

void lower_priority() {
    constexpr int kNice = 10;  // a tenth of a full thread's share
    // On Linux this is the priority of the calling thread. If it is refused, the work is done anyway.
    static_cast<void>(nice(kNice));
}

}  // namespace fp8lab
