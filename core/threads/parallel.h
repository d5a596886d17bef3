// A fixed set of worker threads for data-parallel loops. A body may write only to places of its own indices,
// and callers combine partial sums in the order of the indices; then a result does not depend on how the loop
// is split.
#pragma once

#include <cstddef>
#include <functional>

namespace fp8lab {

// Number of threads that parallel_for and BLAS use, including the calling thread. Default: the machine's
// cores.
void set_threads(int count);
int threads();

// Calls body(begin, end) for disjoint ranges that cover [0, count), with at least `grain` elements per range.
// A single range runs in the calling thread. The first exception of a body is rethrown here.
void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t, std::size_t)>& body);

// Lowers the priority of the calling thread: for work that runs beside the frames of a window.
void lower_priority();

}  // namespace fp8lab
