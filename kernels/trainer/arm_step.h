// The arguments that all launches of a step share.
#pragma once

#include "kernels/trainer/arm.h"

namespace fp8lab::cuda {

// One running step. `main` has the products, the casts and the update of the first layer; `side` has
// bookkeeping, the cast of the next step's batch and the updates of the other layers. Both may be the same
// stream.
struct CudaArm::Step {
    cudaStream_t main, side;
    Events& events;
    ArmState* arm;
    bool first, last;  // the first or last step of a launch
    bool other_x;      // the first layer's x is in the other slot; never in the last step, for view()
    bool with_stats;
    const Mark& mark;
    std::size_t used = 0;

    Step next_beside() const {  // the part of the next step that this step's side stream does
        return {.main = side,
                .side = side,
                .events = events,
                .arm = arm + 1,
                .first = false,
                .last = false,
                .other_x = !other_x,
                .with_stats = with_stats,
                .mark = mark};
    }
    void tell(Part part) const {
        if (mark) mark(part);
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
