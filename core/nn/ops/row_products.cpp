// Compiled for every vector target of the machine family (this file is included again by foreach_target.h).
#include "core/nn/ops/row_products.h"

#include <algorithm>
#include <cstring>

#include "core/nn/ops/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/nn/ops/row_products.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fp8lab::HWY_NAMESPACE {

typedef float Sixteen __attribute__((vector_size(kLanes * sizeof(float))));

// The dot products of one vector with `together` others, so that many chains of sums run beside each other.
template <std::size_t together>
HWY_INLINE void sum_lanes(const float* a, const float* rows, std::size_t stride, std::size_t n,
                          Sixteen (&sums)[together]) {
    Sixteen x, y;
    const std::size_t whole = n - n % kLanes, rest = (n - whole) * sizeof(float);
    for (std::size_t k = 0; k < whole; k += kLanes) {
        std::memcpy(&x, a + k, sizeof x);
        for (std::size_t i = 0; i < together; ++i) {
            std::memcpy(&y, rows + i * stride + k, sizeof y);
            sums[i] += x * y;
        }
    }
    if (rest == 0) return;
    x = Sixteen{}, y = Sixteen{};
    std::memcpy(&x, a + whole, rest);
    for (std::size_t i = 0; i < together; ++i) {
        std::memcpy(&y, rows + i * stride + whole, rest);
        sums[i] += x * y;
    }
}

HWY_INLINE void dot_one(const float* a, const float* row, std::size_t n, float* out) {
    Sixteen sums[1] = {};
    sum_lanes(a, row, 0, n, sums);
    float lane[kLanes], block[4];
    std::memcpy(lane, sums, sizeof lane);
    for (std::size_t i = 0; i < 4; ++i)
        block[i] = (lane[4 * i] + lane[4 * i + 2]) + (lane[4 * i + 1] + lane[4 * i + 3]);
    *out = (block[0] + block[2]) + (block[1] + block[3]);
}

// As dot_one(), of four rows, where there are vectors of four.
HWY_INLINE void dot_four(const float* a, const float* rows, std::size_t stride, std::size_t n, float* out) {
#if HWY_TARGET == HWY_SCALAR
    for (std::size_t i = 0; i < 4; ++i) dot_one(a, rows + i * stride, n, out + i);
#else
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::CappedTag<float, kLanes> d;
    const hn::Repartition<double, decltype(d)> pairs;
    const hn::FixedTag<float, 4> four;
    Sixteen sums[4] = {};
    sum_lanes(a, rows, stride, n, sums);
    alignas(sizeof(Sixteen)) float lanes[4][kLanes], blocks[kLanes];
    std::memcpy(lanes, sums, sizeof lanes);
    // Of each four lanes: v0[0] + v0[2], v1[0] + v1[2], v0[1] + v0[3], v1[1] + v1[3].
    const auto fold = [&](std::size_t row, std::size_t at) {
        const auto v0 = hn::Load(d, lanes[row] + at), v1 = hn::Load(d, lanes[row + 1] + at);
        return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, v0, v1), hn::InterleaveUpper(d, v0, v1)));
    };
    for (std::size_t at = 0; at < kLanes; at += hn::Lanes(d)) {
        const auto low = fold(0, at), high = fold(2, at);
        hn::Store(hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                          hn::BitCast(d, hn::InterleaveUpper(pairs, low, high))),
                  d, blocks + at);
    }
    const auto block = [&](std::size_t i) { return hn::Load(four, blocks + 4 * i); };
    hn::StoreU(hn::Add(hn::Add(block(0), block(2)), hn::Add(block(1), block(3))), four, out);
#endif
}

void dot_rows_float(const float* a, const float* rows, std::size_t stride, std::size_t n, std::size_t count,
                    float* out) {
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) dot_four(a, rows + i * stride, stride, n, out + i);
    for (; i < count; ++i) dot_one(a, rows + i * stride, n, out + i);
}

// The sums of dot_one() for `together` rows of a and 16 rows of b, element k of which is panel[16 k ...]: each element of the
// result has a lane of its own, so that nothing is added across lanes.
template <std::size_t together>
HWY_INLINE void sums_of_lane(const float* a, std::size_t stride, std::size_t n, const float* panel,
                             std::size_t lane, Sixteen (&sums)[together]) {
    Sixteen b;
    for (std::size_t r = 0; r < together; ++r) sums[r] = Sixteen{};
    for (std::size_t k = lane; k < n; k += kLanes) {
        std::memcpy(&b, panel + k * kLanes, sizeof b);
        for (std::size_t r = 0; r < together; ++r) sums[r] += a[r * stride + k] * b;
    }
}
template <std::size_t together>
HWY_INLINE void sums_of_block(const float* a, std::size_t stride, std::size_t n, const float* panel,
                              std::size_t block, Sixteen (&sums)[together]) {
    Sixteen odd[together], more[together];
    sums_of_lane(a, stride, n, panel, 4 * block, sums);
    sums_of_lane(a, stride, n, panel, 4 * block + 2, more);
    for (std::size_t r = 0; r < together; ++r) sums[r] += more[r];
    sums_of_lane(a, stride, n, panel, 4 * block + 1, odd);
    sums_of_lane(a, stride, n, panel, 4 * block + 3, more);
    for (std::size_t r = 0; r < together; ++r) sums[r] += odd[r] + more[r];
}
template <std::size_t together>
HWY_INLINE void rows_of_panel(const float* a, std::size_t stride, std::size_t n, const float* panel,
                              std::size_t count, float* out, std::size_t out_stride) {
    Sixteen sums[together], odd[together], more[together];
    sums_of_block(a, stride, n, panel, 0, sums);
    sums_of_block(a, stride, n, panel, 2, more);
    for (std::size_t r = 0; r < together; ++r) sums[r] += more[r];
    sums_of_block(a, stride, n, panel, 1, odd);
    sums_of_block(a, stride, n, panel, 3, more);
    for (std::size_t r = 0; r < together; ++r) {
        sums[r] += odd[r] + more[r];
        std::memcpy(out + r * out_stride, &sums[r], count * sizeof(float));
    }
}

void multiply_panel_float(const float* a, std::size_t stride, std::size_t rows, std::size_t n,
                          const float* panel, std::size_t count, float* out, std::size_t out_stride) {
    std::size_t r = 0;
    for (; r + 4 <= rows; r += 4)
        rows_of_panel<4>(a + r * stride, stride, n, panel, count, out + r * out_stride, out_stride);
    for (; r < rows; ++r)
        rows_of_panel<1>(a + r * stride, stride, n, panel, count, out + r * out_stride, out_stride);
}

}  // namespace fp8lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fp8lab {

HWY_EXPORT(dot_rows_float);
HWY_EXPORT(multiply_panel_float);

namespace {

constexpr std::size_t kAtOnce = kLanes;  // rows of b that stay in the cache while those of a pass

// out(r, first + i) of all rows r, i < count.
void multiply_some(const Matrix<double>& a, const Matrix<double>& b, std::size_t first, std::size_t count,
                   Matrix<double>& out) {
    for (std::size_t r = 0; r < a.rows; ++r)
        dot_rows(a.row(r).data(), b.values.data() + first * b.cols, b.cols, a.cols, count,
                 out.row(r).data() + first);
}
void multiply_some(const Matrix<float>& a, const Matrix<float>& b, std::size_t first, std::size_t count,
                   Matrix<float>& out) {
    constexpr std::size_t kFew = 8;  // rows that are not worth a transposed copy of those of b
    if (a.rows < kFew) {
        for (std::size_t r = 0; r < a.rows; ++r)
            dot_rows(a.row(r).data(), b.values.data() + first * b.cols, b.cols, a.cols, count,
                     out.row(r).data() + first);
        return;
    }
    thread_local std::vector<float> panel;
    panel.assign(a.cols * kLanes, 0);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t k = 0; k < a.cols; ++k) panel[k * kLanes + i] = b.values[(first + i) * b.cols + k];
    HWY_DYNAMIC_DISPATCH(multiply_panel_float)
    (a.values.data(), a.cols, a.rows, a.cols, panel.data(), count, out.values.data() + first, out.cols);
}

}  // namespace

void dot_rows(const float* a, const float* rows, std::size_t stride, std::size_t n, std::size_t count,
              float* out) {
    HWY_DYNAMIC_DISPATCH(dot_rows_float)(a, rows, stride, n, count, out);
}

void dot_rows(const double* a, const double* rows, std::size_t stride, std::size_t n, std::size_t count,
              double* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = dot(a, rows + i * stride, n);
}

template <class T>
void multiply_rows(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& out) {
    constexpr std::size_t kWork = 2'000'000;  // multiply-adds: less is not worth waking a thread
    out.resize(a.rows, b.rows);
    const std::size_t work = std::max<std::size_t>(a.rows * a.cols, 1);
    const std::size_t grain = (kWork / work + kAtOnce) / kAtOnce * kAtOnce;
    parallel_for(b.rows, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t first = begin; first < end; first += kAtOnce)
            multiply_some(a, b, first, std::min(kAtOnce, end - first), out);
    });
}

template void multiply_rows(const Matrix<float>&, const Matrix<float>&, Matrix<float>&);
template void multiply_rows(const Matrix<double>&, const Matrix<double>&, Matrix<double>&);

}  // namespace fp8lab
#endif  // HWY_ONCE
