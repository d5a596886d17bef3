// A training on several GPUs: a rank, a thread and a trainer for each GPU of this process.
#pragma once

#include <memory>
#include <vector>

#include "core/nn/trainer.h"
#include "core/trainer/preparation.h"

namespace fp8lab::cuda {

// On the GPUs of spec.devices. Throws as make_rank_trainer(), Error{backend} without NCCL, and for GPUs that do not fit together.
// A call that fails on one GPU fails on all, with one error that names the rank; then the trainer is good for nothing more.
std::unique_ptr<Trainer> make_many_gpu_trainer(const TrainSpec& spec, const Preparation& preparation);

}  // namespace fp8lab::cuda
