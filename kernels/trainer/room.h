// Whether a training fits into the memory that is free on the current device.
#pragma once

#include <vector>

#include "core/nn/trainer.h"
#include "kernels/gemm/engine.h"

namespace fp8lab::cuda {

// `engines`: of the arms of `spec`. Throws Error{backend, "GPU memory"} where the arms need more than is free; it names a
// batch that would fit: the wanted one, halved until it does. Nothing is allocated.
void check_room(const TrainSpec& spec, const std::vector<Engine>& engines);

}  // namespace fp8lab::cuda
