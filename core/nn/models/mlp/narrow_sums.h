// The three products of a linear layer with an accumulator that keeps fewer bits than FP32: what a narrow accumulator of a
// tensor core does to a training, made large enough to be seen in a small network.
#pragma once

#include "core/nn/matrix.h"

namespace fp8lab {

// out (M, N) = sum over k of a(m, k) b(k, n), k ascending from a sum of 0. After each addition, which is FP32's, the sum is
// rounded to nearest even to `bits` stored mantissa bits, 1 to 22; its exponent stays that of FP32. With bits = 0 they are the
// products of matrix.h.
void multiply_nt(const Matrix<float>& a, const Matrix<float>& b, Matrix<float>& out, int bits);
void multiply_nn(const Matrix<float>& a, const Matrix<float>& b, Matrix<float>& out, int bits);
void multiply_tn(const Matrix<float>& a, const Matrix<float>& b, Matrix<float>& out, int bits);

// The reference in double adds in double.
inline void multiply_nt(const Matrix<double>& a, const Matrix<double>& b, Matrix<double>& out, int) {
    multiply_nt(a, b, out);
}
inline void multiply_nn(const Matrix<double>& a, const Matrix<double>& b, Matrix<double>& out, int) {
    multiply_nn(a, b, out);
}
inline void multiply_tn(const Matrix<double>& a, const Matrix<double>& b, Matrix<double>& out, int) {
    multiply_tn(a, b, out);
}

}  // namespace fp8lab
