// The time of a data-parallel step, from the recorded parts of one GPU's step and times of NCCL. Times in ms, sizes in bytes.
//
// Compute: the GEMMs, casts, optimiser and bookkeeping of a step of 4096-16384-4096 with 8,192 rows, as recorded, one by one;
// times rows / 8,192 but for the optimiser. Forward has 2/5 of GEMMs and casts, backward 3/5: two, and three products of
// the same size, one of which is the wgrad of layer 1.
//
// A collective of S bytes (of the whole tensor) on N GPUs, n1 = min(N, 8) on a node and n2 = N / 8 nodes:
//   alpha + S (n1 - 1) / n1 / beta, and beyond a node + alpha2 ceil(log2 n2) + (S / n1) (n2 - 1) / n2 / beta2
// alpha and beta are fitted to recorded times; alpha2 = 10 us and beta2 = 50 GB/s per GPU (400 Gb/s) are assumptions. The
// logarithm is that of NCCL's PAT algorithm, the hierarchical sum that of rings on each node and between them.
//
// What shows: the reduce-scatter of dW1 as a whole, of dW2 what the wgrad of W1 does not hide; the optimiser on 1/N of the
// weights; the all-gather of W1 as a whole, of W2 what layer 1 of the next forward pass does not hide. Without sharding an all-reduce takes
// twice the reduce-scatter, the optimiser all weights, and nothing is gathered.
//
// The slowest of N GPUs adds jitter * compute * B(N), the expected largest of N standard normal numbers: B(N) =
// Phi^-1(1 - 0.625 / (N + 0.25)), Blom, "Statistical Estimates and Transformed Beta-Variables", 1958.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/backend/recording.h"
#include "labs/gpus/model_recorded.h"

namespace fp8lab::gpus {

inline constexpr int kNode = 8;  // GPUs
inline constexpr int kRecordedRows = 8192;
inline constexpr double kLayer = 4096.0 * 16384, kWeights = 2 * kLayer;  // elements
inline constexpr int kMostGpus = 16384;

// t = alpha + S (N - 1) / N / beta; `worst_pct`: the largest distance of a recorded time of 8 MB or more from the line.
struct Fit {
    double alpha_ms = 0, beta_gbs = 0, worst_pct = 0;
};
// A straight line through (S (N - 1) / N, t), by least squares. Fewer than two sizes: all 0.
Fit fit_of(const RecordedComm& comm, std::string_view op);

struct Links {
    Fit gather[2], reduce_scatter[2];  // of 2 GPUs, and of 4, which stands for more
    const Fit& of(const Fit (&fits)[2], int gpus) const { return fits[gpus > 2 ? 1 : 0]; }
    bool known() const { return gather[0].beta_gbs > 0 && gather[1].beta_gbs > 0; }
};
// Of this GPU; where it was measured several times, the last.
Links links_of(const Recorded& recorded, std::string_view gpu);

// Beyond a node: none (all GPUs are on NVLink), or a network.
struct Network {
    bool nvlink_only = false;
    double alpha_ms = 0.01, beta_gbs = 50;
    bool operator==(const Network&) const = default;
};

double collective_ms(const Fit& fit, const Network& network, int gpus, double bytes);
double blom(int gpus);

// Of one GPU with kRecordedRows rows.
struct Parts {
    double gemm = 0, casts = 0, optimiser = 0, bookkeeping = 0;
    bool known() const { return gemm > 0; }
};
Parts parts_of(const Recording& recording, std::string_view recipe);

struct StepSpec {
    int gpus = 4, rows = kRecordedRows;
    double gather_bytes = 1, sum_bytes = 2;  // per element that travels
    bool sharded = true, overlap = true;
    Network network = {};
    double jitter_pct = 1;
    bool operator==(const StepSpec&) const = default;
};

struct StepTimes {
    double forward = 0, backward = 0;
    double gradients = 0, weights = 0;              // the collective of one layer
    double gradients_shown = 0, weights_shown = 0;  // of both layers, while no GEMM runs
    double optimiser = 0, bookkeeping = 0, jitter = 0;
    double shown() const { return gradients_shown + weights_shown; }
    double total() const {
        return forward + backward + gradients_shown + optimiser + weights_shown + bookkeeping + jitter;
    }
};
StepTimes step_of(const Parts& parts, const Links& links, const StepSpec& spec);

// The speed of N GPUs in per cent of N times that of one with as many rows.
double efficiency_pct(const Parts& parts, const Links& links, const StepSpec& spec);

}  // namespace fp8lab::gpus
