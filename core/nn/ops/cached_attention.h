// The attention of new tokens whose sequences have earlier ones in a cache (core/nn/tokens/kv_state.h): as attention.h, but
// each query by itself, so that its bytes do not depend on how many tokens are new (row_products.h).
#pragma once

#include <cstddef>

#include "core/nn/matrix.h"

namespace fp8lab {

// `tokens` new ones per sequence at the positions first, first + 1, ... k, v: the cache, (sequences * context, kv_heads *
// head_size), which has the new tokens too. q, out: (sequences * tokens, heads * head_size). P: (sequences * heads *
// tokens, first + tokens), row (sequence * heads + head) * tokens + t; 0 behind the token's own position. Query head h reads
// head h / (heads / kv_heads) of the cache.
struct CachedShape {
    std::size_t sequences = 0, context = 0, first = 0, tokens = 0, heads = 0, kv_heads = 0, head_size = 0;

    std::size_t end() const { return first + tokens; }
};

// P = softmax(q k^T / sqrt(head_size)) over the positions up to the token's own; resized.
template <class T>
void cached_probabilities(const Matrix<T>& q, const Matrix<T>& k, const CachedShape& shape, Matrix<T>& p);

// out = P v, summed in the order of the positions; resized.
template <class T>
void cached_output(const Matrix<T>& p, const Matrix<T>& v, const CachedShape& shape, Matrix<T>& out);

}  // namespace fp8lab
