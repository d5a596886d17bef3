#include "core/nn/ops/rope.h"

#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/nn/ops/loops.h"

namespace fp8lab {
namespace {

// `turn` is 1 or -1, the sign of the angle. Row r is at position first + r % tokens.
template <class T>
void rotate_rows(Matrix<T>& x, const RotaryTable<T>& table, T turn, std::size_t first, std::size_t tokens) {
    const std::size_t head_size = table.head_size(), half = head_size / 2;
    parallel_for(x.rows, loop_grain(x.cols), [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            const T* const cos = table.cos().row(first + r % tokens).data();
            const T* const sin = table.sin().row(first + r % tokens).data();
            T* const row = x.row(r).data();
            for (std::size_t head = 0; head + head_size <= x.cols; head += head_size) {
                T* const low = row + head;
                T* const high = low + half;
                for (std::size_t i = 0; i < half; ++i) {
                    const T a = low[i], b = high[i], s = turn * sin[i];
                    low[i] = a * cos[i] - b * s;
                    high[i] = a * s + b * cos[i];
                }
            }
        }
    });
}

}  // namespace

template <class T>
RotaryTable<T>::RotaryTable(std::size_t context, std::size_t head_size, double base)
    : cos_(context, head_size / 2), sin_(context, head_size / 2) {
    if (head_size == 0 || head_size % 2 != 0)
        throw usage_error("head size", std::to_string(head_size) +
                                           " cannot be rotated in halves; it must be even and not 0");
    for (std::size_t t = 0; t < context; ++t)
        for (std::size_t i = 0; i < cos_.cols; ++i) {
            const double angle = static_cast<double>(t) * std::pow(base, -2.0 * static_cast<double>(i) /
                                                                             static_cast<double>(head_size));
            cos_.row(t)[i] = static_cast<T>(std::cos(angle));
            sin_.row(t)[i] = static_cast<T>(std::sin(angle));
        }
}

template <class T>
void rotate(Matrix<T>& x, const RotaryTable<T>& table) {
    rotate_rows(x, table, T{1}, 0, table.context());
}

template <class T>
void rotate_from(Matrix<T>& x, const RotaryTable<T>& table, std::size_t first, std::size_t tokens) {
    rotate_rows(x, table, T{1}, first, tokens);
}

template <class T>
void rotate_back(Matrix<T>& x, const RotaryTable<T>& table) {
    rotate_rows(x, table, T{-1}, 0, table.context());
}

template class RotaryTable<float>;
template class RotaryTable<double>;
template void rotate(Matrix<float>&, const RotaryTable<float>&);
template void rotate(Matrix<double>&, const RotaryTable<double>&);
template void rotate_from(Matrix<float>&, const RotaryTable<float>&, std::size_t, std::size_t);
template void rotate_from(Matrix<double>&, const RotaryTable<double>&, std::size_t, std::size_t);
template void rotate_back(Matrix<float>&, const RotaryTable<float>&);
template void rotate_back(Matrix<double>&, const RotaryTable<double>&);

}  // namespace fp8lab
