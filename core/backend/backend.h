// A backend is where tensors live and GEMMs run. cpu_backend() always works; cuda_backend() loads
// libfp8lab-cuda.so from beside the executable, after looking for libcuda.so.1, and otherwise keeps the
// reason as a sentence.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/provenance.h"
#include "core/base/result.h"
#include "core/nn/trainer.h"

namespace fp8lab {

struct DeviceInfo {
    std::string name;  // "AMD EPYC, 2 threads, AVX3"
    Provenance provenance = Provenance::cpu_emulated;
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual DeviceInfo device() const = 0;
    virtual std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec) = 0;
};

std::unique_ptr<Backend> cpu_backend();
Result<std::unique_ptr<Backend>> cuda_backend();

// --backend auto|cpu|cuda. auto takes CUDA where it is usable. Throws Error{backend} with the reason when
// "cuda" is asked for and not usable: never a silent fallback. `reason` says why auto did not take the GPU
// (empty if it did).
struct ChosenBackend {
    std::unique_ptr<Backend> backend;
    std::string reason;
};
ChosenBackend choose_backend(std::string_view name);

}  // namespace fp8lab
