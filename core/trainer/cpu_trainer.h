// The trainer on the CPU: GEMMs in FP32, the casts of every recipe emulated bit-exactly.
#pragma once

#include <memory>

#include "core/nn/trainer.h"

namespace fp8lab {

// Throws input_error for the files of task npy, usage_error for a spec without arms, Error{failed} where the memory does
// not suffice (core/nn/memory/cpu_memory.h): before anything is allocated.
std::unique_ptr<Trainer> make_cpu_trainer(const TrainSpec& spec);

}  // namespace fp8lab
