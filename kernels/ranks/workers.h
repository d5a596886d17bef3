// A thread for each rank of this process, which lives as long as its GPU is used.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fp8lab::cuda {

class Workers {
  public:
    explicit Workers(int count);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Calls work(i) in every thread i at once and returns when all are done. `failed`, called with i in the thread of the first
    // that throws, has to end the others' work. Throws what that one has thrown.
    using Failed = std::function<void(int, const std::exception&)>;
    void run(const std::function<void(int)>& work, const Failed& failed);

  private:
    void serve(int index);

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void(int)>* work_ = nullptr;
    const Failed* failed_ = nullptr;
    std::size_t call_ = 0, left_ = 0;
    bool ends_ = false;
    std::exception_ptr failure_;  // the first
    std::vector<std::jthread> threads_;
};

}  // namespace fp8lab::cuda
