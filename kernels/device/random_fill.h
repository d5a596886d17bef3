// Random operands for timing. Zeros are not used, because products of zeros run faster than those of real
// data.
#pragma once

#include <cstdint>

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

// Values of both signs with magnitudes spread over a few binades around 1.
void fill_random(void* out, Element element, std::size_t bytes, std::uint32_t seed, cudaStream_t stream);
// The same in FP16; and random bytes, which are FP4 of both signs. No types of a training step.
void fill_random_fp16(void* out, std::size_t bytes, std::uint32_t seed, cudaStream_t stream);
void fill_random_bytes(void* out, std::size_t bytes, std::uint32_t seed, cudaStream_t stream);

}  // namespace fp8lab::cuda
