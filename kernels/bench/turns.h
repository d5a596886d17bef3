// Timing of several jobs that alternate, each for at least 0.2 ms per sample, so that a drift of the clock affects
// all of them; and the short contest that chooses an algorithm. There are no pauses, so that the GPU keeps the clocks
// of work.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/backend/gemm_grid.h"
#include "kernels/bench/ask.h"
#include "kernels/device/device.h"

namespace fp8lab::cuda {

struct Turn {
    GridTime* time = nullptr;  // receives median, quartiles and repeats
    std::function<void(cudaStream_t)> launch;
    double ms = 0;             // of one launch, roughly
    double* median = nullptr;  // instead of `time`: receives the median alone
};
// Called after every round, with the times so far filled in. Returns false to stop.
using AfterRound = std::function<bool(double done)>;

// All jobs have grid_samples() of the slowest. A job that stops before its third sample has no time. Returns false if
// stopped.
bool time_turns(const std::vector<Turn>& turns, int repeats, cudaStream_t stream, const AfterRound& after);

// The rough time of one launch: the mean of a few launches after a warm-up.
double rough_ms(const std::function<void(cudaStream_t)>& launch, cudaStream_t stream);

// Each candidate of the heuristic runs twice. The six best get five samples each, alternately, the three best of
// those 21 more, and the fastest is kept. Large products have fewer candidates and samples: a contest of the grid
// takes less than three seconds. Returns the time of the winner in ms; nothing where every candidate refuses, with
// the answer in `refused`.
std::optional<double> short_contest(LtProduct& product, const LtOperands& on, cudaStream_t stream,
                                    Answer& refused);
inline constexpr int kContestants = 16;

// One product and where its time goes. `wants_graph`: its time inside a CUDA graph too, where it is short enough
// for that to differ.
struct Entry {
    GridTime* time = nullptr;
    LtSpec spec;
    LtOperands on;
    std::optional<cublasLtMatmulAlgo_t> known;  // instead of a contest
    bool wants_graph = false;
    int count = 1;  // products in one launch: operand i is b_stride, d_stride further
    std::size_t b_stride = 0, d_stride = 0;  // bytes
};
// Fills in refusals and times of all entries, which alternate. Returns false if stopped.
bool time_entries(const std::vector<Entry>& entries, const Lt& lt, int repeats, cudaStream_t stream,
                  const AfterRound& after);

}  // namespace fp8lab::cuda
