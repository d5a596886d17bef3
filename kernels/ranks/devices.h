// The GPUs of a training on several.
#pragma once

#include <vector>

namespace fp8lab::cuda {

// Throws usage_error("--devices", ...): one is not there, is named twice, or does not run the kernels that the first runs.
void check_devices(const std::vector<int>& devices);

}  // namespace fp8lab::cuda
