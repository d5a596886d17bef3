#include "kernels/ranks/workers.h"

#include <utility>

namespace fp8lab::cuda {

Workers::Workers(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this, i] { serve(i); });
}

Workers::~Workers() {
    const std::unique_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
}

void Workers::run(const std::function<void(int)>& work, const Failed& failed) {
    std::unique_lock lock(mutex_);
    work_ = &work;
    failed_ = &failed;
    left_ = threads_.size();
    ++call_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return left_ == 0; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Workers::serve(int index) {
    std::size_t served = 0;
    for (;;) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || call_ != served; });
        if (ends_) return;
        served = call_;
        lock.unlock();
        std::exception_ptr thrown;
        try {
            (*work_)(index);
        } catch (const std::exception& error) {
            thrown = std::current_exception();
            lock.lock();
            const bool first = !failure_;
            if (first) failure_ = thrown;
            lock.unlock();
            if (first) (*failed_)(index, error);
        }
        lock.lock();
        if (--left_ == 0) changed_.notify_all();
    }
}

}  // namespace fp8lab::cuda
