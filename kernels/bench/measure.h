// Timing on the device: events around the work, alternating with the ceiling, random data, medians.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "kernels/device/device.h"

namespace fp8lab::cuda {

struct Job {
    Timed line;                             // name, bytes and flop; the times are filled in
    std::function<void(cudaStream_t)> run;  // one launch
};

// Writes median, quartiles and number of `ms` to the line; without values the line is unchanged.
void summarise(Timed& line, std::vector<double> ms);

// Times all jobs alternately (time_turns()), `repeats` samples of at least 0.2 ms each. The times are those of one
// launch.
std::vector<Timed> time_in_turns(std::vector<Job> jobs, int repeats, cudaStream_t stream);

// Bench of `bench gemm`: BF16 at 8192^3 first, the ceiling; then BF16 and every FP8 mode at (m, n, k),
// refusals in words.
std::vector<Timed> time_products(std::array<int, 3> mnk, int repeats);

// Bench of `bench cast`: every case of cases.h and transformer_cases.h on random matrices of (rows, cols), multiples of 16. First
// line: the ceiling, a copy of 1 GiB by the faster of cudaMemcpyAsync and a kernel of ours. Each measurement
// moves at least 2 GiB through buffers larger than the caches, alternating with both copies. Throws
// Error{backend} where the memory of the GPU is too small.
std::vector<Timed> time_casts(std::array<int, 2> shape, int repeats);

// E4M3 products of 256 x 256 outputs over k = 256 ... 65536 with and without fast accumulation, U(0,1) and
// N(0,1).
std::vector<AccumulationError> accumulation_errors();

}  // namespace fp8lab::cuda
