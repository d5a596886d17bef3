// The arguments that all launches of a step share.
#pragma once

#include "kernels/mlp/arm.h"

namespace fp8lab::cuda {

// One running step. `main` has the products, the casts and the update of the first layer; `side` has
// bookkeeping, the cast of the next step's batch and the updates of the other layers. Both may be the same
// stream.
struct MlpArm::Step : StepContext {
    Events& events;
    bool first, last;  // the first or last step of a launch
    bool other_x;      // the first layer's x is in the other slot; never in the last step, for view()
    std::size_t used = 0;

    Step(const StepContext& context, Events& all, bool is_first, bool is_last, bool in_other)
        : StepContext(context), events(all), first(is_first), last(is_last), other_x(in_other) {}

    Step next_beside() const {  // the part of the next step that this step's side stream does
        return {{side, side, arm + 1, with_stats, mark, 0, false}, events, false, false, !other_x};
    }
    void record(Event& event) const { event.record(side); }
    void wait(const Event& event) const {
        if (main != side) check(cudaStreamWaitEvent(main, event.get()), "cudaStreamWaitEvent");
    }
    // The next work on `side` waits for all work that `main` has so far.
    void fork() {
        if (main == side) return;
        Event& event = events.forks[used++];
        event.record(main);
        check(cudaStreamWaitEvent(side, event.get()), "cudaStreamWaitEvent");
    }
};

}  // namespace fp8lab::cuda
