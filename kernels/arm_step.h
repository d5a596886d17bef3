// What every launch of a step is given.
#pragma once

#include "kernels/arm.h"

namespace fp8lab::cuda {

// One step on its way. Two streams, or one twice: the chain of products and casts with the first layer's
// update; beside it bookkeeping, the cast of the next step's batch and the updates of the other layers.
struct CudaArm::Step {
    cudaStream_t main, side;
    Events& events;
    ArmState* arm;
    bool first, last;  // of a launch: nothing is on its way; nothing follows
    bool other_x;      // the first layer's x is in the other slot; never in the last step, for view()
    bool with_stats;
    const Mark& mark;
    std::size_t used = 0;

    Step next_beside() const {  // the following step, as far as this one's side begins it
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
    // What `side` does next waits for what `main` has been given so far.
    void fork() {
        if (main == side) return;
        Event& event = events.forks[used++];
        event.record(main);
        check(cudaStreamWaitEvent(side, event.get()), "cudaStreamWaitEvent");
    }
};

}  // namespace fp8lab::cuda
