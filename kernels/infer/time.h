// `bench infer`: the layers of a transformer at a full cache, timed.
#pragma once

#include "core/backend/infer_case.h"

namespace fp8lab::cuda {

// On the current GPU, with random weights, cache and input. Throws usage_error for what no launch takes, and Error{backend} where
// the memory of the GPU is too small.
InferTime time_infer(const InferCase& of, int repeats);

}  // namespace fp8lab::cuda
