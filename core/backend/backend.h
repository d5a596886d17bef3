// A backend holds tensors and runs GEMMs. cpu_backend() always works. cuda_backend() looks for libcuda.so.1,
// then loads libfp8lab-cuda.so from the folder of the executable or ../lib/fp8lab; where that fails it
// returns the reason as a sentence.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/gemm_grid.h"
#include "core/backend/grid_plan.h"
#include "core/backend/layer_probe.h"
#include "core/base/provenance.h"
#include "core/base/result.h"
#include "core/formats/self_test.h"
#include "core/nn/trainer.h"
#include "core/trainer/preparation.h"

namespace fp8lab {

class TokenEngine;   // token_engine.h
struct ServedModel;  //
struct InferCase;    // infer_case.h
struct InferTime;    //

struct DeviceInfo {
    std::string name;  // "AMD EPYC, 2 threads, AVX3"
    Provenance provenance = Provenance::cpu_emulated;
    std::vector<std::pair<std::string, std::string>> facts = {};  // for doctor: {"driver", "580.159"}, ...
    double memory_bytes = 0;                                      // of a GPU; 0: does not apply
};

// A feature that was tried on the device at start, and the result.
struct Capability {
    std::string name;  // "FP8 row scales (OUTER_VEC)"
    bool available = false;
    std::string refusal;  // the library's message with its status; empty where available
};

// One line of a bench: time, bytes or operations, and the kernel.
struct Timed {
    std::string name;
    double median_ms = 0, q1_ms = 0, q3_ms = 0;  // q: quartiles
    int repeats = 0;
    double bytes = 0, flop = 0;  // bytes moved, operations done; 0: does not apply
    std::string kernel;          // the name that a profiler shows; empty: not known
    std::string refusal;         // why there is no time
};

// The error of an FP8 product against float64 over the same FP8 values.
struct AccumulationError {
    std::string data;  // "uniform" (same sign), "normal"
    int k = 0;
    bool fast = false;                 // cuBLASLt's fast accumulation
    double rel_rms = 0, rel_bias = 0;  // ||D - R|| / ||R||, mean(D - R) / mean |R|
};

struct BlockTimes {  // of one arm
    std::string recipe, attention;
    double median_ms = 0, q1_ms = 0, q3_ms = 0;
    std::vector<std::pair<std::string, double>> parts;  // ms of each part alone: ArmCost::parts
    double memory_bytes = 0;
};

// An exchange of several GPUs: "reduce_scatter", "all_gather" or "all_reduce_max" of a tensor of so many bytes. The slowest rank
// counts.
struct CollectiveTime {
    std::string op, type;
    double bytes = 0, median_ms = 0, q1_ms = 0, q3_ms = 0;
    int repeats = 0;
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual DeviceInfo device() const = 0;
    virtual int devices() const { return 0; }  // GPUs of this machine
    // Throws Error{backend} when the memory of the device is too small, with the size that was needed and one
    // that would fit; Cancelled when `preparation` asks to stop.
    virtual std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec, const Preparation& preparation) = 0;
    std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec) { return make_trainer(spec, {}); }
    virtual std::vector<Capability> capabilities() { return {}; }
    // The self-checks of the codec; a device may add its own.
    virtual std::vector<SelfCheck> self_checks(bool full);
    // The first line is the ceiling of this device; all lines are measured alternately. Throw Error{backend}
    // where the device has no such bench.
    virtual std::vector<Timed> time_products(std::array<int, 3> mnk, int repeats);
    virtual std::vector<Timed> time_casts(std::array<int, 2> shape, int repeats);
    virtual std::vector<AccumulationError> accumulation_errors();
    virtual std::vector<CollectiveTime> time_collectives(const std::vector<int>& devices,
                                                         const std::vector<double>& bytes, int repeats);
    // Times the blocks of a transformer alone, forward, backward and update, for each arm of the spec. Their input
    // and the gradient of their output are given; there is no embedding, head, loss or clipping. The arms alternate.
    virtual std::vector<BlockTimes> time_blocks(const TrainSpec& spec, int repeats);
    // Measures the grid of gemm_grid.h; the caller sets `command` and `date`. What does not fit into the memory
    // of the GPU is in `skipped`. `progress` may be empty.
    virtual GemmGrid measure_grid(const GridOptions& options, const GridProgress& progress);
    // Times one layer, for lab L9: after half a second of load its three products in BF16 and FP8 and its casts,
    // alternately. Algorithms come from the cache or from a short contest; the cache is not written. `progress` may
    // be empty. Throws Error{backend} where the memory of the GPU is too small, with the size that was needed, and
    // usage_error for a shape or recipe that cannot be measured. One call at a time.
    virtual LayerTimes measure_layer(const LayerProbe& probe, const LayerProgress& progress);
    // A trained transformer on the device. Throws Error{backend} where the device has none or its memory is too small, and
    // usage_error for a model that its kernels do not take, with the reason.
    virtual std::unique_ptr<TokenEngine> make_token_engine(const ServedModel& model);
    // Times the case on random data. Throws as above.
    virtual InferTime time_infer(const InferCase& of, int repeats);
    // The device memory in bytes that each arm of a training takes. Builds the training, reads the sizes and frees
    // it. Throws as make_trainer(), and Error{backend} where the device has no memory of its own.
    virtual std::vector<double> allocated_bytes(const TrainSpec& spec);
};

// The index of the GPU that this process uses (--device). Call it once, before the first backend is made.
void set_gpu(int device);
int gpu();

std::unique_ptr<Backend> cpu_backend();
Result<std::unique_ptr<Backend>> cuda_backend(int device = gpu());
// Why cuda_backend() cannot work, as far as this can be found without loading CUDA (no driver, no
// libfp8lab-cuda.so). Takes microseconds and no memory. Empty: no reason is known.
std::string gpu_obstacle();

// --backend auto|cpu|cuda. "auto" takes CUDA where it works. Throws Error{backend} with the reason where
// "cuda" is requested and does not work; it never falls back silently. `reason`: why "auto" did not take the
// GPU; else empty.
struct ChosenBackend {
    std::unique_ptr<Backend> backend;
    std::string reason;
};
ChosenBackend choose_backend(std::string_view name, int device = gpu());

}  // namespace fp8lab
