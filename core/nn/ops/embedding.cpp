#include "core/nn/ops/embedding.h"

#include <algorithm>

#include "core/nn/ops/loops.h"

namespace fp8lab {

template <class T>
void gather(const Matrix<T>& table, std::span<const int> tokens, Matrix<T>& out) {
    out.resize(tokens.size(), table.cols);
    parallel_for(tokens.size(), loop_grain(table.cols), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r)
            std::ranges::copy(table.row(static_cast<std::size_t>(tokens[r])), out.row(r).begin());
    });
}

template <class T>
void gather_backward(const Matrix<T>& dout, std::span<const int> tokens, std::size_t vocabulary,
                     Matrix<T>& dtable) {
    dtable.resize(vocabulary, dout.cols);
    std::ranges::fill(dtable.values, T{0});
    for_column_strips(tokens.size(), dout.cols, [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = 0; r < tokens.size(); ++r) {
            const T* const gradient = dout.row(r).data();
            T* const sum = dtable.row(static_cast<std::size_t>(tokens[r])).data();
            for (std::size_t c = begin; c < end; ++c) sum[c] += gradient[c];
        }
    });
}

template void gather(const Matrix<float>&, std::span<const int>, Matrix<float>&);
template void gather(const Matrix<double>&, std::span<const int>, Matrix<double>&);
template void gather_backward(const Matrix<float>&, std::span<const int>, std::size_t, Matrix<float>&);
template void gather_backward(const Matrix<double>&, std::span<const int>, std::size_t, Matrix<double>&);

}  // namespace fp8lab
