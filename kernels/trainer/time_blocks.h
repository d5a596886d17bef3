// The blocks of a transformer alone: Backend::time_blocks().
#pragma once

#include <memory>
#include <vector>

#include "core/backend/backend.h"
#include "kernels/trainer/trainer.h"

namespace fp8lab::cuda {

std::vector<BlockTimes> time_blocks(const TrainSpec& spec, std::shared_ptr<Device> device, int repeats);

}  // namespace fp8lab::cuda
