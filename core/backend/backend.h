// A backend is where tensors live and GEMMs run. cpu_backend() always works; cuda_backend() loads
// libfp8lab-cuda.so from beside the executable or ../lib/fp8lab, after looking for libcuda.so.1, and
// otherwise keeps the reason as a sentence.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/provenance.h"
#include "core/base/result.h"
#include "core/formats/self_test.h"
#include "core/nn/preparation.h"
#include "core/nn/trainer.h"

namespace fp8lab {

struct DeviceInfo {
    std::string name;  // "AMD EPYC, 2 threads, AVX3"
    Provenance provenance = Provenance::cpu_emulated;
    std::vector<std::pair<std::string, std::string>> facts = {};  // for doctor: {"driver", "580.159"}, ...
};

// What a device was asked for at start and what it answered.
struct Capability {
    std::string name;  // "FP8 row scales (OUTER_VEC)"
    bool available = false;
    std::string refusal;  // in the library's words, with its status; empty where available
};

// One line of a bench on a device: how long, how many bytes or operations, and by which kernel.
struct Timed {
    std::string name;
    double median_ms = 0, q1_ms = 0, q3_ms = 0;  // q: quartiles
    int repeats = 0;
    double bytes = 0, flop = 0;  // moved, done; 0: does not apply
    std::string kernel;          // its name as the profiler sees it; empty: not known
    std::string refusal;         // why there is no time
};

// The error of an FP8 product against float64 over the same FP8 values.
struct AccumulationError {
    std::string data;  // "uniform" (same sign), "normal"
    int k = 0;
    bool fast = false;                 // cuBLASLt's fast accumulation
    double rel_rms = 0, rel_bias = 0;  // ||D - R|| / ||R||, mean(D - R) / mean |R|
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual DeviceInfo device() const = 0;
    // Throws Error{backend} when the device cannot hold it: how much was needed and what would fit; Abandoned
    // when `preparation` asks to stop.
    virtual std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec, const Preparation& preparation) = 0;
    std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec) { return make_trainer(spec, {}); }
    virtual std::vector<Capability> capabilities() { return {}; }
    virtual std::vector<SelfCheck> self_checks(
        bool full);  // the codec's, unless the device has more to check
    // The first line is the ceiling of this device, measured in turns with the others. Throw Error{backend}
    // on a device that has no such bench.
    virtual std::vector<Timed> time_products(std::array<int, 3> mnk, int repeats);
    virtual std::vector<Timed> time_casts(std::array<int, 2> shape, int repeats);
    virtual std::vector<AccumulationError> accumulation_errors();
};

// Which GPU of several this process uses: --device. As with set_threads(), once, before the first backend is
// made.
void set_gpu(int device);
int gpu();

std::unique_ptr<Backend> cpu_backend();
Result<std::unique_ptr<Backend>> cuda_backend(int device = gpu());
// Why cuda_backend() cannot work, as far as that shows without loading CUDA (no driver, no library of ours):
// a matter of microseconds and no memory. Empty: nothing is known to be in its way.
std::string gpu_obstacle();

// --backend auto|cpu|cuda. auto takes CUDA where it is usable. Throws Error{backend} with the reason when
// "cuda" is asked for and not usable: never a silent fallback. `reason` says why auto did not take the GPU
// (empty if it did).
struct ChosenBackend {
    std::unique_ptr<Backend> backend;
    std::string reason;
};
ChosenBackend choose_backend(std::string_view name, int device = gpu());

}  // namespace fp8lab
