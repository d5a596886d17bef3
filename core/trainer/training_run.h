// Runs a Trainer beside its owner (core/threads/worker.h). Commands are passed by value and applied between steps; snapshots
// are returned through Latest<Snapshot>. Training does not wait for the reader: records collect until the
// next snapshot is taken. An exception of the trainer becomes RunState::failed with a message. A pause or the end of
// the run does not wait for a step on the CPU: it gives the step up, and the step is done again when the run goes on.
// The last step of a training has no next one, so its evaluation is not given up by a pause.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/error.h"
#include "core/nn/trainer.h"
#include "core/threads/latest.h"
#include "core/threads/worker.h"
#include "core/trainer/preparation.h"

namespace fp8lab {

enum class RunState { idle, preparing, running, paused, done, failed };

class TrainingRun {
  public:
    struct Status {
        RunState state = RunState::idle;
        std::string message;  // failed: why; paused by a non-finite value: arm, step and tensor
        ErrorKind kind = ErrorKind::failed;  // failed: of the exception
        std::string preparing;               // what the trainer builds at the moment; else empty
        bool stepping = false;               // running: for single steps
        double steps_per_second = 0;         // over the last second
        double blocked_ms = 0;               // total time that the worker waited for this interface; about 0
    };

    // `make` runs on the worker thread; the trainer may keep its argument. `wake` is called on that thread when a
    // snapshot can be taken or `preparing` has changed. It means that there is a window, whose frames come first: the
    // thread then has a lower priority. Empty: there is none.
    using Make = std::function<std::unique_ptr<Trainer>(const Preparation&)>;
    explicit TrainingRun(Make make, std::function<void()> wake = {});
    ~TrainingRun();  // stops and joins; waits for at most one part of a step or of a preparation; on a GPU for a step

    void start();  // idle/paused -> running
    void pause();
    // Runs one step, then pauses. Called while a step is under way: one step more than was asked for so far, so that no
    // call is lost.
    void single_step();
    // Runs until `step` steps are done, then pauses; where so many are done already it does nothing.
    void run_to(int step);
    void limit_speed(double steps_per_second);  // 0: no limit
    void send(Command command);
    void save(std::filesystem::path dir);  // at the next step boundary

    // The newest snapshot, each at most once; requests the next one. Does not wait for a step.
    std::optional<Snapshot> take();
    Status status() const;

  private:
    struct Shared;
    class Turns;
    void change(const std::function<void()>& edit);
    void run(int until, bool single);
    std::unique_ptr<Shared> shared_;
    Worker worker_;  // ends before what it shares
};

}  // namespace fp8lab
