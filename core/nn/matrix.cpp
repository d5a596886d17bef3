#include "core/nn/matrix.h"

#include <Eigen/Core>
#include <algorithm>

#include "core/nn/gemm.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
Eigen::Map<const RowMajor<T>> view(const Matrix<T>& m) {
    return {m.values.data(), static_cast<Eigen::Index>(m.rows), static_cast<Eigen::Index>(m.cols)};
}
template <class T>
Eigen::Map<RowMajor<T>> view(Matrix<T>& m) {
    return {m.values.data(), static_cast<Eigen::Index>(m.rows), static_cast<Eigen::Index>(m.cols)};
}

// A product is cut into parts by its shape alone, and each part is computed by one thread. OpenBLAS's own
// threads would cut it by their number, and which of its kernels sums an element decides the last bits.
constexpr std::size_t kPart = 2'000'000;  // multiply-adds: less is not worth waking a thread
constexpr std::size_t kNarrowest = 128;   // rows or columns: every part packs the other operand again
constexpr std::size_t kMostParts = 16, kPacket = 16;
// Beyond these parts a product is cut further where a part would keep a core longer than about 0.2 s, since a signal is
// heard between parts (core/threads/ask.h).
constexpr std::size_t kLongest = 4'000'000'000, kNarrowestLong = 32;

// Calls part(first, count) for parts of the `length` rows or columns of a product.
template <class Part>
void in_parts(std::size_t length, std::size_t multiply_adds, const Part& part) {
    const std::size_t most = std::max(std::min({kMostParts, multiply_adds / kPart, length / kNarrowest}),
                                      std::min(multiply_adds / kLongest, length / kNarrowestLong));
    const std::size_t packets = length / kPacket, parts = std::max<std::size_t>(most, 1);
    const auto end_of = [&](std::size_t i) { return i == parts ? length : packets * i / parts * kPacket; };
    parallel_for(parts, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const BlasUse use;
            const std::size_t first = end_of(i);
            part(static_cast<Eigen::Index>(first), static_cast<Eigen::Index>(end_of(i + 1) - first));
        }
    });
}

// Along the longer side of the output.
template <class Left, class Right, class T>
void multiply(const Left& a, const Right& b, Matrix<T>& out) {
    out.resize(static_cast<std::size_t>(a.rows()), static_cast<std::size_t>(b.cols()));
    const std::size_t multiply_adds = out.values.size() * static_cast<std::size_t>(a.cols());
    auto product = view(out);
    if (out.rows >= out.cols)
        in_parts(out.rows, multiply_adds, [&](Eigen::Index first, Eigen::Index count) {
            product.middleRows(first, count).noalias() = a.middleRows(first, count) * b;
        });
    else
        in_parts(out.cols, multiply_adds, [&](Eigen::Index first, Eigen::Index count) {
            product.middleCols(first, count).noalias() = a * b.middleCols(first, count);
        });
}

}  // namespace

template <class T>
void multiply_nt(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out) {
    multiply(view(a), view(b).transpose(), out);
}

template <class T>
void multiply_nn(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out) {
    multiply(view(a), view(b), out);
}

template <class T>
void multiply_tn(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out) {
    multiply(view(a).transpose(), view(b), out);
}

template void multiply_nt(const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template void multiply_nn(const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template void multiply_tn(const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template void multiply_nt(const Matrix<double>&, const Matrix<double>&, Matrix<double>&);
template void multiply_nn(const Matrix<double>&, const Matrix<double>&, Matrix<double>&);
template void multiply_tn(const Matrix<double>&, const Matrix<double>&, Matrix<double>&);

}  // namespace fp8lab
