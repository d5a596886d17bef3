// Columns of a matrix as a matrix of their own: q, k and v in the output of the one GEMM that makes them, and
// their gradients back in its output gradient.
#pragma once

#include <cstddef>

#include "core/nn/matrix.h"

namespace fp8lab {

// part = whole[:, first .. first + count), resized.
template <class T>
void take_columns(const Matrix<T>& whole, std::size_t first, std::size_t count, Matrix<T>& part);

// whole[:, first .. first + part.cols) = part. `whole` has its shape already.
template <class T>
void put_columns(const Matrix<T>& part, std::size_t first, Matrix<T>& whole);

}  // namespace fp8lab
