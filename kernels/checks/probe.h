// Tests which products cuBLASLt supports on this GPU by running them.
#pragma once

#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "kernels/gemm/gemm.h"

namespace fp8lab::cuda {

// Runs a small product in every mode: those that GemmPlan uses and those that only other GPUs have (MXFP8,
// NVFP4, FP8 outputs, FP8 operands in other layouts).
std::vector<Capability> probe_capabilities(const Lt& lt, cudaStream_t stream);

// Why an FP8 product with many scales cannot be used here, or empty. Runs it with small integers and powers
// of two as scales; a result that is not exact is a reason too, because the GPU then reads the scales in
// another layout than that of gemm.h. k: a multiple of 128.
std::string refusal_of(const Lt& lt, const GemmSpec& spec, cudaStream_t stream);

}  // namespace fp8lab::cuda
