// A fixed set of worker threads for data-parallel loops. How many ranges a loop is split into depends on the
// number of threads. So a body may write only to places of its own indices, and callers combine partial sums
// over pieces of a fixed size in the order of the indices; then no result depends on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace fp8lab {

// Number of threads that parallel_for uses, including the calling thread. Default: the machine's cores. Waits for the
// loop that runs; not to be called inside one.
void set_threads(int count);
int threads();

// Calls body(begin, end) for disjoint ranges that cover [0, count), with at least `grain` elements per range.
// A loop is cut only at multiples of `grain`, so that a body which works on packets of elements sees the same
// packets in every split. A single range runs in the calling thread, and so does a loop inside a loop that was
// split. The first exception of a body is rethrown here. Who may end a loop on its way: core/threads/ask.h.
void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t, std::size_t)>& body);

// Lowers the priority of the calling thread: for work that runs beside the frames of a window.
void lower_priority();

// Does so for the threads of parallel_for, the calling ones excepted, from now on. A window calls it at its start: then
// the loops of a training leave the processor to its frames. Waits as set_threads().
void lower_priority_of_workers();

}  // namespace fp8lab
