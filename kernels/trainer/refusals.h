// What only the CPU computes.
#pragma once

#include <vector>

#include "core/nn/train_spec.h"
#include "kernels/gemm/engine.h"

namespace fp8lab::cuda {

// Throw Error{backend}. engines: of the arms.
EngineChoice engine_or_refusal(const TrainSpec& spec, const Recipe& recipe, const Refusal& refusal);
void refuse_model(const TrainSpec& spec);
void refuse_accumulation(const TrainSpec& spec);
// --init-from and --teacher.
void refuse_files(const TrainSpec& spec);
void refuse_faults(const TrainSpec& spec);
void refuse_ranks(const TrainSpec& spec, const std::vector<Engine>& engines);

}  // namespace fp8lab::cuda
