#include "core/nn/ops/cached_attention.h"

#include <algorithm>
#include <cmath>

#include "core/nn/ops/gate_rows.h"
#include "core/nn/ops/loops.h"
#include "core/nn/ops/row_products.h"

namespace fp8lab {
namespace {

// body(sequence, head) for the heads of all sequences.
template <class Body>
void for_heads(const CachedShape& shape, const Body& body) {
    constexpr std::size_t kWork = 1'000'000;  // multiply-adds: less is not worth waking a thread
    const std::size_t work = std::max<std::size_t>(shape.tokens * shape.end() * shape.head_size, 1);
    const std::size_t grain = std::max<std::size_t>(kWork / work, 1);
    parallel_for(shape.sequences * shape.heads, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) body(i / shape.heads, i % shape.heads);
    });
}

// The cached rows of the sequence, from the columns of the query head on.
template <class T>
const T* cached_head(const Matrix<T>& cache, const CachedShape& shape, std::size_t sequence,
                     std::size_t head) {
    return cache.row(sequence * shape.context).data() +
           head / (shape.heads / shape.kv_heads) * shape.head_size;
}

}  // namespace

template <class T>
void cached_probabilities(const Matrix<T>& q, const Matrix<T>& k, const CachedShape& shape, Matrix<T>& p) {
    const T factor = T{1} / std::sqrt(static_cast<T>(shape.head_size));
    p.resize(shape.sequences * shape.heads * shape.tokens, shape.end());
    for_heads(shape, [&](std::size_t sequence, std::size_t head) {
        const T* const keys = cached_head(k, shape, sequence, head);
        for (std::size_t t = 0; t < shape.tokens; ++t) {
            const T* const query = q.row(sequence * shape.tokens + t).data() + head * shape.head_size;
            T* const row = p.row((sequence * shape.heads + head) * shape.tokens + t).data();
            const std::size_t n = shape.first + t + 1;
            dot_rows(query, keys, k.cols, shape.head_size, n, row);
            for (std::size_t i = 0; i < n; ++i) row[i] *= factor;
            exponential_row(row, n, largest(row, n));
            const T share = T{1} / sum(row, n);
            for (std::size_t i = 0; i < n; ++i) row[i] *= share;
            std::fill(row + n, row + shape.end(), T{0});
        }
    });
}

template <class T>
void cached_output(const Matrix<T>& p, const Matrix<T>& v, const CachedShape& shape, Matrix<T>& out) {
    out.resize(shape.sequences * shape.tokens, shape.heads * shape.head_size);
    for_heads(shape, [&](std::size_t sequence, std::size_t head) {
        const T* const values = cached_head(v, shape, sequence, head);
        for (std::size_t t = 0; t < shape.tokens; ++t) {
            const T* const row = p.row((sequence * shape.heads + head) * shape.tokens + t).data();
            T* const to = out.row(sequence * shape.tokens + t).data() + head * shape.head_size;
            const std::size_t n = shape.first + t + 1, whole = shape.head_size - shape.head_size % kLanes;
            for (std::size_t c = 0; c < whole; c += kLanes) {
                Lanes<T> sum = Lanes<T>::Zero();
                for (std::size_t i = 0; i < n; ++i) sum += row[i] * LanesAt<T>(values + i * v.cols + c);
                Eigen::Map<Lanes<T>> lanes(to + c);
                lanes = sum;
            }
            for (std::size_t c = whole; c < shape.head_size; ++c) {
                T sum = 0;
                for (std::size_t i = 0; i < n; ++i) sum += row[i] * values[i * v.cols + c];
                to[c] = sum;
            }
        }
    });
}

#define FP8LAB_CACHED(T)                                                                                    \
    template void cached_probabilities(const Matrix<T>&, const Matrix<T>&, const CachedShape&, Matrix<T>&); \
    template void cached_output(const Matrix<T>&, const Matrix<T>&, const CachedShape&, Matrix<T>&);
FP8LAB_CACHED(float)
FP8LAB_CACHED(double)
#undef FP8LAB_CACHED

}  // namespace fp8lab
