// The trainer on the GPU. A CUDA graph has one step of an arm, or several where steps are short; they then
// overlap. The arms of a comparison run alternately on one stream.
#pragma once

#include <memory>

#include "core/nn/trainer.h"
#include "core/trainer/preparation.h"
#include "kernels/gemm/engine.h"
#include "kernels/gemm/gemm.h"
#include "kernels/ranks/place.h"

namespace fp8lab::cuda {

// Everything of a device that trainers share.
struct Device {
    int index = 0;
    Stream stream;
    Lt lt;
};

// Throws usage_error and input_error as make_cpu_trainer(), Error{backend} where the memory of the GPU is too
// small (with the size that is needed and the largest batch that would fit) or cuBLASLt refuses a product,
// Cancelled when `preparation` asks to stop. A later change of recipe uses `preparation` too.
enum class Launching { graphs, one_by_one };  // one_by_one: no graphs, for tests and checkers
std::unique_ptr<Trainer> make_cuda_trainer(const TrainSpec& spec, std::shared_ptr<Device> device,
                                           Launching launching = Launching::graphs,
                                           const Preparation& preparation = {});
// One rank of several on its GPU; `spec` is that of all ranks. All ranks make the same calls; records are those of all
// ranks, in each of them. Throws Error{failed} too, where another rank does not answer in time.
std::unique_ptr<Trainer> make_rank_trainer(const TrainSpec& spec, std::shared_ptr<Device> device,
                                           const RankPlace& place, Launching launching = Launching::graphs,
                                           const Preparation& preparation = {});

// Device memory in bytes that each arm of such a training takes. Throws as make_cuda_trainer().
std::vector<double> allocated_bytes(const TrainSpec& spec, std::shared_ptr<Device> device);

}  // namespace fp8lab::cuda
