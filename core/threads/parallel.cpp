#include "core/threads/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fp8lab {

namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

// One loop at a time; ranges are handed out by a counter. A nested or concurrent loop runs in its caller.
class Pool {
  public:
    ~Pool() { resize(1); }

    int size() const { return size_; }

    void lower_priority_of_workers() {
        const int size = size_;
        resize(1);
        yields_ = true;
        resize(size);
    }

    void resize(int count) {
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

    void run(std::size_t count, std::size_t grain, const Body& body) {
        const std::size_t whole = std::max<std::size_t>(grain, 1), grains = count / whole;
        const std::size_t ranges = std::min(grains, static_cast<std::size_t>(size_) * 4);
        // Not a mutex: the thread of a nested loop has it already.
        if (ranges < 2 || size_ < 2 || busy_.exchange(true)) return body(0, count);
        {
            std::lock_guard lock{mutex_};
            body_ = &body, count_ = count, grain_ = whole, ranges_ = ranges;
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
                (*body_)(begin_of(range), begin_of(range + 1));
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
    std::size_t count_ = 0, grain_ = 1, ranges_ = 0, pending_ = 0;
    std::atomic<std::size_t> next_ = 0;
    int serving_ = 0;
    long generation_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    int size_ = 1;
    bool yields_ = false;  // written while there are no workers
    std::vector<std::jthread> workers_;
};

// The one process-wide object of the code base: threads are a property of the process.
Pool& pool() {
    static Pool instance;
    static std::once_flag once;
    std::call_once(once, [] { instance.resize(static_cast<int>(std::thread::hardware_concurrency())); });
    return instance;
}

}  // namespace

void set_threads(int count) { pool().resize(count); }
void lower_priority_of_workers() { pool().lower_priority_of_workers(); }
int threads() { return pool().size(); }
void parallel_for(std::size_t count, std::size_t grain, const Body& body) {
    if (count > 0) pool().run(count, grain, body);
}

void lower_priority() {
    constexpr int kNice = 10;  // a tenth of a full thread's share
    // Of the calling thread, on Linux. Where it is refused the work is done all the same.
    static_cast<void>(nice(kNice));
}

}  // namespace fp8lab
