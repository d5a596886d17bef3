// Products in which each row of the result is computed by itself: its bytes depend neither on the number of rows nor on
// threads, vectors of the machine or addresses. So a token has the same values whether it is computed alone or among
// others, which BLAS does not promise. For few rows they are as fast as BLAS, for many slower.
//
// An element is a dot product in FP32: element k in lane k % 16 of 16 partial sums; of each four lanes a b c d the sum (a + c)
// + (b + d), and of the four sums the same. No product and sum are contracted. In double it is dot() of loops.h.
#pragma once

#include <cstddef>

#include "core/nn/matrix.h"

namespace fp8lab {

// out[i] = sum over k < n of a[k] rows[i * stride + k], i < count.
void dot_rows(const float* a, const float* rows, std::size_t stride, std::size_t n, std::size_t count,
              float* out);
void dot_rows(const double* a, const double* rows, std::size_t stride, std::size_t n, std::size_t count,
              double* out);

// As multiply_nt() of matrix.h: a (M, K), b (N, K), out = a b^T, resized. `out` is neither a nor b.
template <class T>
void multiply_rows(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out);

}  // namespace fp8lab
