// What comes before the layers of a token: its embedding, and its place in the cache.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fp8lab::cuda {

struct TokenStart {
    const std::int32_t* tokens = nullptr;  // (capacity): those of the positions
    std::int32_t *next = nullptr,          // the position of the token that begins; counted on
        *length = nullptr;                 // DecodeModel::length: that position
    const float* embedding = nullptr;      // (vocabulary, d)
    int d = 0;
    float* stream = nullptr;  // (d): the embedding of the token
};
// One launch, of one sequence.
void start_token(const TokenStart& start, cudaStream_t stream);

}  // namespace fp8lab::cuda
