// What the operations of this folder share: sums whose order is fixed, and how their loops are cut.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/threads/parallel.h"

namespace fp8lab {

// Indices per range of a parallel_for whose body has `work` elements per index: less than this many elements
// are not worth waking a thread.
inline std::size_t loop_grain(std::size_t work) {
    constexpr std::size_t kElements = 16384;
    return std::max<std::size_t>(kElements / std::max<std::size_t>(work, 1), 1);
}

// Calls body(begin, end) for strips of the columns of a matrix, for sums over its rows: each column is summed
// by one thread, in the order of the rows.
template <class Body>
void for_column_strips(std::size_t rows, std::size_t cols, const Body& body) {
    constexpr std::size_t kStrip = 64;
    parallel_for(
        (cols + kStrip - 1) / kStrip, loop_grain(rows * kStrip),
        [&](std::size_t first, std::size_t last) { body(first * kStrip, std::min(last * kStrip, cols)); });
}

// term(0) combined with ... term(n - 1), n > 0, in 16 partial results and then as a tree: an order that is fixed
// and that compilers vectorise.
template <class T, class Term, class Combine>
T reduce_in_lanes(std::size_t n, T start, const Term& term, const Combine& combine) {
    constexpr std::size_t kLanes = 16;
    std::array<T, kLanes> part;
    part.fill(start);
    const std::size_t whole = n - n % kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes)
        for (std::size_t l = 0; l < kLanes; ++l) part[l] = combine(part[l], term(i + l));
    for (std::size_t i = whole; i < n; ++i) part[i - whole] = combine(part[i - whole], term(i));
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) part[l] = combine(part[l], part[l + half]);
    return part[0];
}

template <class T, class Term>
T sum_in_lanes(std::size_t n, const Term& term) {
    return reduce_in_lanes(n, T{0}, term, [](T a, T b) { return a + b; });
}

// The largest of n > 0 values. A NaN may be passed over: what is computed from the values meets it again.
template <class T>
T largest(const T* values, std::size_t n) {
    return reduce_in_lanes(
        n, values[0], [values](std::size_t i) { return values[i]; }, [](T a, T b) { return a < b ? b : a; });
}

}  // namespace fp8lab
