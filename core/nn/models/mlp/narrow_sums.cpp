#include "core/nn/models/mlp/narrow_sums.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kSumLanes = 16;
typedef float SumLanes __attribute__((vector_size(kSumLanes * sizeof(float))));
typedef std::uint32_t SumBits __attribute__((vector_size(kSumLanes * sizeof(std::uint32_t))));

// sums[c] += factor * row[c], rounded; both are padded to a multiple of the lanes.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void add_rounded(float factor, const float* row, float* sums, std::size_t n, unsigned dropped) {
    const std::uint32_t half = (1U << (dropped - 1)) - 1, mask = ~((1U << dropped) - 1);
    for (std::size_t c = 0; c < n; c += kSumLanes) {
        SumLanes sum{}, x{};
        std::memcpy(&sum, sums + c, sizeof sum);
        std::memcpy(&x, row + c, sizeof x);
        sum += factor * x;
        SumBits bits{};
        std::memcpy(&bits, &sum, sizeof bits);
        const SumBits rounded = (bits + half + ((bits >> dropped) & 1U)) & mask;
        // A NaN with all bits set would become a zero.
        bits = (sum == sum) ? rounded : bits;
        std::memcpy(sums + c, &bits, sizeof bits);
    }
}

// left(r, k): the factor of row k of `right` (K, C) in row r of the output.
template <class Left>
void multiply_rounded(std::size_t rows, const Matrix<float>& right, const Left& left, Matrix<float>& out,
                      int bits) {
    const std::size_t cols = right.cols, padded = (cols + kSumLanes - 1) / kSumLanes * kSumLanes;
    std::vector<float> wide(right.rows * padded);
    for (std::size_t k = 0; k < right.rows; ++k)
        std::ranges::copy(right.row(k), wide.begin() + static_cast<std::ptrdiff_t>(k * padded));
    out.resize(rows, cols);
    constexpr std::size_t kGrain = 200'000;  // multiply-adds of one part
    parallel_for(rows, kGrain / std::max<std::size_t>(right.values.size(), 1) + 1,
                 [&](std::size_t begin, std::size_t end) {
                     std::vector<float> sums(padded);
                     for (std::size_t r = begin; r < end; ++r) {
                         std::ranges::fill(sums, 0.0F);
                         for (std::size_t k = 0; k < right.rows; ++k)
                             add_rounded(left(r, k), wide.data() + k * padded, sums.data(), padded,
                                         static_cast<unsigned>(23 - bits));
                         std::copy_n(sums.begin(), cols, out.row(r).begin());
                     }
                 });
}

Matrix<float> transposed(const Matrix<float>& m) {
    Matrix<float> out(m.cols, m.rows);
    for (std::size_t r = 0; r < m.rows; ++r)
        for (std::size_t c = 0; c < m.cols; ++c) out.values[c * m.rows + r] = m.values[r * m.cols + c];
    return out;
}

}  // namespace

void multiply_nt(const Matrix<float>& a, const Matrix<float>& b, Matrix<float>& out, int bits) {
    if (bits == 0) return multiply_nt(a, b, out);
    multiply_rounded(
        a.rows, transposed(b), [&](std::size_t r, std::size_t k) { return a.values[r * a.cols + k]; }, out,
        bits);
}

void multiply_nn(const Matrix<float>& a, const Matrix<float>& b, Matrix<float>& out, int bits) {
    if (bits == 0) return multiply_nn(a, b, out);
    multiply_rounded(
        a.rows, b, [&](std::size_t r, std::size_t k) { return a.values[r * a.cols + k]; }, out, bits);
}

void multiply_tn(const Matrix<float>& a, const Matrix<float>& b, Matrix<float>& out, int bits) {
    if (bits == 0) return multiply_tn(a, b, out);
    multiply_rounded(
        a.cols, b, [&](std::size_t r, std::size_t k) { return a.values[k * a.cols + r]; }, out, bits);
}

}  // namespace fp8lab
