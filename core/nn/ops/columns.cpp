#include "core/nn/ops/columns.h"

#include <algorithm>

#include "core/nn/ops/loops.h"

namespace fp8lab {

template <class T>
void take_columns(const Matrix<T>& whole, std::size_t first, std::size_t count, Matrix<T>& part) {
    part.resize(whole.rows, count);
    parallel_for(whole.rows, loop_grain(count), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r)
            std::ranges::copy(whole.row(r).subspan(first, count), part.row(r).begin());
    });
}

template <class T>
void put_columns(const Matrix<T>& part, std::size_t first, Matrix<T>& whole) {
    parallel_for(part.rows, loop_grain(part.cols), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r)
            std::ranges::copy(part.row(r), whole.row(r).subspan(first).begin());
    });
}

template void take_columns(const Matrix<float>&, std::size_t, std::size_t, Matrix<float>&);
template void take_columns(const Matrix<double>&, std::size_t, std::size_t, Matrix<double>&);
template void put_columns(const Matrix<float>&, std::size_t, Matrix<float>&);
template void put_columns(const Matrix<double>&, std::size_t, Matrix<double>&);

}  // namespace fp8lab
