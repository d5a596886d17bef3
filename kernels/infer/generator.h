// The TokenEngine of this GPU: a trained transformer whose tokens are read by decode.h, one CUDA graph a token.
#pragma once

#include <memory>

#include "core/backend/token_engine.h"

namespace fp8lab::cuda {

// On the current GPU. The embedding stays in FP32; a tied head is a copy of it in the format of the weights. Throws usage_error
// for what the kernel does not take: another model than a transformer, act=clamp, and as plan_decode(); Error{backend} where
// the memory of the GPU is too small.
std::unique_ptr<TokenEngine> make_generator(const ServedModel& model);

}  // namespace fp8lab::cuda
