#include "core/nn/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/nn/gemm.h"
#include "core/nn/ops/gate_rows.h"
#include "core/nn/ops/loops.h"

namespace fp8lab {
namespace {

// The rows of one head in a matrix of tokens, and the rows of its probabilities.
template <class M>
auto head_part(M& tokens, const AttentionShape& shape, std::size_t sequence, std::size_t head) {
    return MatrixPart<std::remove_reference_t<decltype(tokens.values[0])>>{
        tokens.values.data() + sequence * shape.context * tokens.cols + head * shape.head_size, tokens.cols};
}
template <class M>
auto score_part(M& scores, const AttentionShape& shape, std::size_t sequence, std::size_t head) {
    return MatrixPart<std::remove_reference_t<decltype(scores.values[0])>>{
        scores.values.data() + (sequence * shape.heads + head) * shape.context * shape.context,
        shape.context};
}

// Long contexts are computed in tiles, and those above the diagonal are left out. Tiles depend on the shape
// alone, so the bytes do not depend on the number of threads.
constexpr std::size_t kTile = 64;

template <class Body>
void for_tiles(std::size_t context, const Body& body) {
    for (std::size_t first = 0; first < context; first += kTile)
        body(first, std::min(kTile, context - first));
}

// body(sequence, head) for the heads of all sequences, each by one thread, which is the only one that BLAS uses.
template <class Body>
void for_heads(const AttentionShape& shape, std::size_t heads, const Body& body) {
    const std::size_t work = shape.context * shape.context * (shape.heads / heads);
    parallel_for(shape.sequences * heads, loop_grain(work), [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) body(i / heads, i % heads);
    });
}

// scores = factor * a b^T up to the diagonal, then finish(values of row t, its number of positions, rows of
// `scores`); 0 above. a is of the query heads, b of the heads of keys.
template <class T, class Finish>
void causal_scores(const Matrix<T>& a, const Matrix<T>& b, const AttentionShape& shape, T factor,
                   Matrix<T>& scores, const Finish& finish) {
    scores.resize(shape.sequences * shape.heads * shape.context, shape.context);
    for_heads(shape, shape.heads, [&](std::size_t sequence, std::size_t head) {
        const auto left = head_part(a, shape, sequence, head);
        const auto right = head_part(b, shape, sequence, head / shape.group());
        const auto out = score_part(scores, shape, sequence, head);
        for_tiles(shape.context, [&](std::size_t first, std::size_t rows) {
            const std::size_t end = first + rows;
            gemm(rows, end, shape.head_size, factor, {left.below(first)}, {right, true}, T{0},
                 out.below(first));
            for (std::size_t t = first; t < end; ++t) {
                finish(out.row(t), t + 1, (sequence * shape.heads + head) * shape.context + t);
                std::fill(out.row(t) + t + 1, out.row(t) + shape.context, T{0});
            }
        });
    });
}

// out = factor * scores b: a row for each query.
template <class T>
void mix_over_keys(const Matrix<T>& scores, const Matrix<T>& b, const AttentionShape& shape, T factor,
                   Matrix<T>& out) {
    out.resize(shape.rows(), shape.query_cols());
    for_heads(shape, shape.heads, [&](std::size_t sequence, std::size_t head) {
        const auto left = score_part(scores, shape, sequence, head);
        const auto right = head_part(b, shape, sequence, head / shape.group());
        const auto to = head_part(out, shape, sequence, head);
        for_tiles(shape.context, [&](std::size_t first, std::size_t rows) {
            gemm(rows, shape.head_size, first + rows, factor, {left.below(first)}, {right}, T{0},
                 to.below(first));
        });
    });
}

// out = factor * scores^T b, summed over the heads of a group: a row for each key.
template <class T>
void mix_over_queries(const Matrix<T>& scores, const Matrix<T>& b, const AttentionShape& shape, T factor,
                      Matrix<T>& out) {
    out.resize(shape.rows(), shape.key_cols());
    for_heads(shape, shape.kv_heads, [&](std::size_t sequence, std::size_t kv_head) {
        const auto to = head_part(out, shape, sequence, kv_head);
        for (std::size_t i = 0; i < shape.group(); ++i) {
            const std::size_t head = kv_head * shape.group() + i;
            const auto left = score_part(scores, shape, sequence, head);
            const auto right = head_part(b, shape, sequence, head);
            for_tiles(shape.context, [&](std::size_t first, std::size_t rows) {
                gemm(rows, shape.head_size, shape.context - first, factor, {left.below(first, first), true},
                     {right.below(first)}, i == 0 ? T{0} : T{1}, to.below(first));
            });
        }
    });
}

template <class T>
T score_factor(const AttentionShape& shape) {
    return T{1} / std::sqrt(static_cast<T>(shape.head_size));
}

}  // namespace

template <class T>
void attention_probabilities(const Matrix<T>& q, const Matrix<T>& k, const AttentionShape& shape,
                             Matrix<T>& p) {
    causal_scores(q, k, shape, score_factor<T>(shape), p, [&](T* row, std::size_t positions, std::size_t) {
        // Masked up to whole vectors: e^-inf is 0, and a remainder would take longer.
        const std::size_t n = std::min((positions + kLanes - 1) / kLanes * kLanes, shape.context);
        std::fill(row + positions, row + n, -std::numeric_limits<T>::infinity());
        const T top = largest(row, n);
        exponential_row(row, n, top);
        const T share = T{1} / sum(row, n);
        for (std::size_t i = 0; i < n; ++i) row[i] *= share;
    });
}

template <class T>
void attention_output(const Matrix<T>& p, const Matrix<T>& v, const AttentionShape& shape, Matrix<T>& out) {
    mix_over_keys(p, v, shape, T{1}, out);
}

template <class T>
void attention_value_gradient(const Matrix<T>& p, const Matrix<T>& dout, const AttentionShape& shape,
                              Matrix<T>& dv) {
    mix_over_queries(p, dout, shape, T{1}, dv);
}

template <class T>
void attention_score_gradient(const Matrix<T>& p, const Matrix<T>& dout, const Matrix<T>& v,
                              const AttentionShape& shape, Matrix<T>& ds) {
    causal_scores(dout, v, shape, T{1}, ds, [&p](T* row, std::size_t n, std::size_t r) {
        const T* const weight = p.row(r).data();
        const T mean = dot(row, weight, n);
        for (std::size_t i = 0; i < n; ++i) row[i] = weight[i] * (row[i] - mean);
    });
}

template <class T>
void attention_query_gradient(const Matrix<T>& ds, const Matrix<T>& k, const AttentionShape& shape,
                              Matrix<T>& dq) {
    mix_over_keys(ds, k, shape, score_factor<T>(shape), dq);
}

template <class T>
void attention_key_gradient(const Matrix<T>& ds, const Matrix<T>& q, const AttentionShape& shape,
                            Matrix<T>& dk) {
    mix_over_queries(ds, q, shape, score_factor<T>(shape), dk);
}

#define FP8LAB_ATTENTION(T)                                                                                \
    template void attention_probabilities(const Matrix<T>&, const Matrix<T>&, const AttentionShape&,       \
                                          Matrix<T>&);                                                     \
    template void attention_output(const Matrix<T>&, const Matrix<T>&, const AttentionShape&, Matrix<T>&); \
    template void attention_value_gradient(const Matrix<T>&, const Matrix<T>&, const AttentionShape&,      \
                                           Matrix<T>&);                                                    \
    template void attention_score_gradient(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&,           \
                                           const AttentionShape&, Matrix<T>&);                             \
    template void attention_query_gradient(const Matrix<T>&, const Matrix<T>&, const AttentionShape&,      \
                                           Matrix<T>&);                                                    \
    template void attention_key_gradient(const Matrix<T>&, const Matrix<T>&, const AttentionShape&,        \
                                         Matrix<T>&);
FP8LAB_ATTENTION(float)
FP8LAB_ATTENTION(double)
#undef FP8LAB_ATTENTION

}  // namespace fp8lab
