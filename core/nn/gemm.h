// Products of parts of matrices, and who computes them: OpenBLAS, or Eigen where there is none. The one place that knows
// (core/nn/gemm): an option of the build, FP8LAB_OPENBLAS, takes one of the two.
//
// OpenBLAS and memory: OpenBLAS keeps a buffer of 128 MiB for each thread that computes at the same time. Where there is
// no memory for a buffer it asks again without end, so the memory is allocated here first.
#pragma once

#include <cstddef>

namespace fp8lab {

// While an object of this class exists, its thread may multiply: by gemm(), or by Eigen, whose products go to OpenBLAS as
// well. The first object allocates the buffers of threads() threads, or of as many as there is memory for; further
// threads wait for a buffer. Throws std::bad_alloc where there is not the memory for one. Without OpenBLAS it does nothing.
class BlasUse {
  public:
    BlasUse();
    ~BlasUse();
    BlasUse(const BlasUse&) = delete;
    BlasUse& operator=(const BlasUse&) = delete;
};

// A part of a row-major matrix.
template <class T>
struct MatrixPart {
    T* values;
    std::size_t stride;  // elements from row to row

    MatrixPart below(std::size_t row, std::size_t col = 0) const {
        return {values + row * stride + col, stride};
    }
    T* row(std::size_t r) const { return values + r * stride; }
};

// One side of a product, as it is in memory or transposed.
template <class T>
struct GemmSide {
    MatrixPart<const T> part;
    bool transposed = false;
};

// out (rows, cols) = factor * left right + keep * out, where left is (rows, depth) and right (depth, cols). With keep = 0
// the former values of `out` are not read. Uses one thread.
void gemm(std::size_t rows, std::size_t cols, std::size_t depth, float factor, GemmSide<float> left,
          GemmSide<float> right, float keep, MatrixPart<float> out);
void gemm(std::size_t rows, std::size_t cols, std::size_t depth, double factor, GemmSide<double> left,
          GemmSide<double> right, double keep, MatrixPart<double> out);

}  // namespace fp8lab
