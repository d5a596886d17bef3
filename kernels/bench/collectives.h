// Times what ranks on GPUs exchange: Backend::time_collectives().
#pragma once

#include <vector>

#include "core/backend/backend.h"

namespace fp8lab::cuda {

std::vector<CollectiveTime> time_collectives(const std::vector<int>& devices,
                                             const std::vector<double>& bytes, int repeats);

}  // namespace fp8lab::cuda
