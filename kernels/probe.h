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

// Why an FP8 product with many scales does not run here, or empty. Runs it over small integers and scales
// that are powers of two, and says so as well where its numbers are not the exact ones: a GPU that reads its
// scales elsewhere than gemm.h has them is not used. k: a multiple of 128.
std::string refusal_of(const Lt& lt, const GemmSpec& spec, cudaStream_t stream);

}  // namespace fp8lab::cuda
