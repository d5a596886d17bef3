// What the operations of this folder share: reductions in a fixed order, and how loops are cut for threads.
#pragma once

#include <Eigen/Core>
#include <algorithm>
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

// Reductions keep kLanes partial results, element i in lane i % kLanes, and combine them at the end. The order
// is fixed, so the bytes depend neither on threads nor on addresses, and the lanes are vectors.
inline constexpr std::size_t kLanes = 16;
template <class T>
using Lanes = Eigen::Array<T, static_cast<int>(kLanes), 1>;
template <class T>
using LanesAt = Eigen::Map<const Lanes<T>>;  // unaligned

template <class T>
T sum(const T* a, std::size_t n) {
    Lanes<T> part = Lanes<T>::Zero();
    const std::size_t whole = n - n % kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes) part += LanesAt<T>(a + i);
    for (std::size_t i = whole; i < n; ++i) part[static_cast<Eigen::Index>(i - whole)] += a[i];
    return part.sum();
}

template <class T>
T dot(const T* a, const T* b, std::size_t n) {
    Lanes<T> part = Lanes<T>::Zero();
    const std::size_t whole = n - n % kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes) part += LanesAt<T>(a + i) * LanesAt<T>(b + i);
    for (std::size_t i = whole; i < n; ++i) part[static_cast<Eigen::Index>(i - whole)] += a[i] * b[i];
    return part.sum();
}

// The largest of n > 0 values. A NaN may be skipped, because the computation that follows meets it again.
template <class T>
T largest(const T* a, std::size_t n) {
    Lanes<T> part = Lanes<T>::Constant(a[0]);
    const std::size_t whole = n - n % kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes) part = part.max(LanesAt<T>(a + i));
    T top = part.maxCoeff();
    for (std::size_t i = whole; i < n; ++i) top = top < a[i] ? a[i] : top;
    return top;
}

}  // namespace fp8lab
