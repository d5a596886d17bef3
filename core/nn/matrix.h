// A dense row-major matrix and the three products of a linear layer (numerics.md 3.1). float uses OpenBLAS's
// sgemm, double (the reference of the gradient tests) dgemm, through the same code. The bytes of a product do
// not depend on the number of threads. A product may be given up between its parts (core/threads/ask.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fp8lab {

template <class T>
struct Matrix {
    std::size_t rows = 0, cols = 0;
    std::vector<T> values;  // row-major, rows * cols

    Matrix() = default;
    Matrix(std::size_t row_count, std::size_t col_count)
        : rows(row_count), cols(col_count), values(row_count * col_count) {}
    // Values are unspecified afterwards. With an unchanged shape no memory is allocated.
    void resize(std::size_t row_count, std::size_t col_count) {
        rows = row_count;
        cols = col_count;
        values.resize(row_count * col_count);
    }
    std::span<T> row(std::size_t r) { return std::span(values).subspan(r * cols, cols); }
    std::span<const T> row(std::size_t r) const { return std::span(values).subspan(r * cols, cols); }
};

// The products resize `out` and accumulate in T.
template <class T>
void multiply_nt(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out);  // a (M, K), b (N, K): a b^T, fprop
template <class T>
void multiply_nn(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out);  // a (M, N), b (N, K): a b, dgrad
template <class T>
void multiply_tn(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out);  // a (M, N), b (M, K): a^T b, wgrad

}  // namespace fp8lab
