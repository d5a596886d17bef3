// What cuBLASLt takes on this GPU: tried, not assumed.
#pragma once

#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "kernels/gemm.h"

namespace fp8lab::cuda {

// Every mode as a small product that really runs, those that GemmPlan builds on and those that only other
// cards have (MXFP8, NVFP4, FP8 outputs, FP8 operands that lie otherwise).
std::vector<Capability> probe_capabilities(const Lt& lt, cudaStream_t stream);

// Why one product does not run here, or empty. Runs it, over 256 x 256 matrices.
std::string refusal_of(const Lt& lt, const GemmSpec& spec, cudaStream_t stream);

}  // namespace fp8lab::cuda
