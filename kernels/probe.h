// What cuBLASLt takes on this GPU: tried, not assumed.
#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "kernels/gemm.h"

namespace fp8lab::cuda {

std::vector<Capability> probe_capabilities(const Lt& lt, cudaStream_t stream);

}  // namespace fp8lab::cuda
