// A fixed set of worker threads for data-parallel loops. Results never depend on the number of threads: every
// index writes its own place, reductions are combined in index order by the caller.
#pragma once

#include <cstddef>
#include <functional>

namespace fp8lab {

// Number of threads that parallel_for uses, this thread included; also BLAS's. Default: the machine's cores.
void set_threads(int count);
int threads();

// Calls body(begin, end) over disjoint ranges that cover [0, count); `grain` elements a range at least. Runs
// in the calling thread when there is one range only. The first exception of a body is rethrown here.
void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t, std::size_t)>& body);

// From now on the calling thread gets the processor only as others leave it: for work beside a window's
// frames.
void give_way();

}  // namespace fp8lab
