// Causal scaled dot-product attention: Vaswani et al., "Attention Is All You Need", arXiv 1706.03762, section
// 3.2.1; heads in groups that share keys and values (GQA): Ainslie et al., arXiv 2305.13245.
//
// In pieces, so that the caller can cast or round what passes from one to the next. Query head h reads the
// keys and values of head h / (heads / kv_heads). Sums over the heads of a group are in the order of the heads;
// the bytes do not depend on the number of threads. Outputs are resized. No output may be an input.
//
// What is above the diagonal in P and dS is written as 0 and never read as anything else: the products skip or
// multiply these zeros. So a value in a later token changes nothing before it, if it is finite.
#pragma once

#include <cstddef>

#include "core/nn/matrix.h"

namespace fp8lab {

// q, out, dout, dq: (sequences * context, heads * head_size). k, v, dk, dv: (sequences * context, kv_heads *
// head_size). P, dS: (sequences * heads * context, context); row (sequence * heads + head) * context + t.
// kv_heads divides heads.
struct AttentionShape {
    std::size_t sequences = 0, context = 0, heads = 0, kv_heads = 0, head_size = 0;

    std::size_t rows() const { return sequences * context; }
    std::size_t query_cols() const { return heads * head_size; }
    std::size_t key_cols() const { return kv_heads * head_size; }
    std::size_t group() const { return heads / kv_heads; }  // query heads per head of keys
};

// P = softmax(q k^T / sqrt(head_size)) over the positions up to the row's own, shifted by the row's maximum.
template <class T>
void attention_probabilities(const Matrix<T>& q, const Matrix<T>& k, const AttentionShape& shape,
                             Matrix<T>& p);

template <class T>
void attention_output(const Matrix<T>& p, const Matrix<T>& v, const AttentionShape& shape,
                      Matrix<T>& out);  // P v

// P here is the operand of attention_output(): rounded or cast, where the forward pass did that.
template <class T>
void attention_value_gradient(const Matrix<T>& p, const Matrix<T>& dout, const AttentionShape& shape,
                              Matrix<T>& dv);  // P^T dout, summed over the heads of a group

// P here is the softmax's own result. dS is the gradient of the scores q k^T / sqrt(head_size): dS = P * (dP -
// rowsum(dP * P)), dP = dout v^T.
template <class T>
void attention_score_gradient(const Matrix<T>& p, const Matrix<T>& dout, const Matrix<T>& v,
                              const AttentionShape& shape, Matrix<T>& ds);

template <class T>
void attention_query_gradient(const Matrix<T>& ds, const Matrix<T>& k, const AttentionShape& shape,
                              Matrix<T>& dq);  // dS k / sqrt(head_size)
template <class T>
void attention_key_gradient(const Matrix<T>& ds, const Matrix<T>& q, const AttentionShape& shape,
                            Matrix<T>& dk);  // dS^T q / sqrt(head_size), summed over the heads of a group

}  // namespace fp8lab
