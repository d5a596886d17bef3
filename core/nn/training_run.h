// A Trainer on its own thread, and nothing else: commands in by value, drained at step boundaries; snapshots
// out through Latest<Snapshot>. Training never waits for the reader: until a snapshot has been taken the
// deltas go on collecting. An exception becomes Failed{message} and the application lives.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/latest.h"
#include "core/nn/preparation.h"
#include "core/nn/trainer.h"

namespace fp8lab {

enum class RunState { idle, preparing, running, paused, done, failed };

class TrainingRun {
  public:
    struct Status {
        RunState state = RunState::idle;
        std::string message;          // failed: why; paused by a non-finite value: arm, step and tensor
        std::string preparing;        // what the trainer is building; empty where it trains or rests
        double steps_per_second = 0;  // over the last second
        double blocked_ms = 0;        // total time the worker waited for this interface; ~0 by construction
    };

    // `make` runs on the worker thread; the trainer may keep what it is given. `wake` is called (from the
    // worker) when a snapshot waits or `preparing` has changed; may be empty.
    using Make = std::function<std::unique_ptr<Trainer>(const Preparation&)>;
    explicit TrainingRun(Make make, std::function<void()> wake = {});
    ~TrainingRun();  // stops and joins: at most one step, or what lies between two begin()s of a preparation

    void start();  // idle/paused -> running
    void pause();
    void single_step();                         // runs one step, then pauses
    void run_to(int step);                      // runs until `step` steps are done, then pauses
    void limit_speed(double steps_per_second);  // 0: as fast as it goes
    void send(Command command);
    void save(std::filesystem::path dir);  // at the next step boundary

    // Newest snapshot, at most once each; asks for the next one. Never blocks on a step.
    std::optional<Snapshot> take();
    Status status() const;

  private:
    struct Shared;
    class Worker;
    std::unique_ptr<Shared> shared_;
    std::jthread worker_;
};

}  // namespace fp8lab
