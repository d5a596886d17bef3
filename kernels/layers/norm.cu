// The residual stream and its norms, a row in the registers of a team of threads.
#include <string>

#include "core/base/error.h"
#include "core/nn/ops/rms_norm.h"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {
namespace {

template <class T, int kTeam, int kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock)
    measure_kernel(const T* x, const T* y, Shape s, bool round, T* sum, float* inverse_rms) {
    constexpr int kTeams = kThreadsOfBlock / kTeam;
    __shared__ float slots[kThreadsOfBlock / 32];
    wait_for_the_kernel_before();
    const int row = static_cast<int>(blockIdx.x) * kTeams + static_cast<int>(threadIdx.x) / kTeam,
              lane = static_cast<int>(threadIdx.x) % kTeam;
    const bool real = row < s.rows;  // all threads meet in the sum
    const std::size_t at = static_cast<std::size_t>(real ? row : 0) * s.padded_cols;
    Packed<T> first[kRowEights], second[kRowEights];
#pragma unroll
    for (int k = 0; k < kRowEights; ++k) {
        const int c = (k * kTeam + lane) * kThreadCols;
        if (c >= s.cols) continue;
        first[k] = fetch8(x + at + c);
        if (y) second[k] = fetch8(y + at + c);
    }
    float squares = 0;
#pragma unroll
    for (int k = 0; k < kRowEights; ++k) {
        const int c = (k * kTeam + lane) * kThreadCols;
        if (c >= s.cols) continue;
        Eight v;
        unpack(first[k], v);
        if (y) {
            Eight w;
            unpack(second[k], w);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) v[j] += w[j];
            round_results<T>(round, v);
            if (real) store8(sum + at + c, v);
        }
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) squares = fmaf(v[j], v[j], squares);
    }
    squares = team_sum<kTeam>(squares, slots);
    if (real && lane == 0)
        inverse_rms[row] = 1 / sqrtf(squares / static_cast<float>(s.cols) + static_cast<float>(kRmsEpsilon));
}

// What a thread reads of a row.
template <class T>
struct RowParts {
    Packed<T> dy[kRowEights], x[kRowEights], stream[kRowEights];
    float inverse;
};

// A block takes a strip of rows, its teams every kTeams-th of them; in BF16 the next row's loads are on their way while
// one is worked on.
template <class T, int kTeam, int kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock, 512 / kThreadsOfBlock)
    backward_kernel(NormBackward how, Shape s, int strip) {
    constexpr int kTeams = kThreadsOfBlock / kTeam, kWidest = widest_row(kTeam);
    __shared__ float slots[2][kThreadsOfBlock / 32];
    wait_for_the_kernel_before();
    const int team = static_cast<int>(threadIdx.x) / kTeam, lane = static_cast<int>(threadIdx.x) % kTeam;
    const auto column = [&](int k) { return (k * kTeam + lane) * kThreadCols; };
    const int first = static_cast<int>(blockIdx.x) * strip, end = min(first + strip, s.rows);
    const auto fetch = [&](int row) {
        RowParts<T> parts = {};
        if (row >= end) return parts;
        const std::size_t at = static_cast<std::size_t>(row) * s.padded_cols;
#pragma unroll
        for (int k = 0; k < kRowEights; ++k) {
            if (column(k) >= s.cols) continue;
            parts.dy[k] = fetch8(static_cast<const T*>(how.dy) + at + column(k));
            parts.x[k] = fetch8(static_cast<const T*>(how.x) + at + column(k));
            if (how.dstream) parts.stream[k] = fetch8(static_cast<const T*>(how.dstream) + at + column(k));
        }
        parts.inverse = how.inverse_rms[row];
        return parts;
    };
    constexpr bool kAhead = !std::is_same_v<T, float>;  // whose registers are full without
    RowParts<T> next;
    if constexpr (kAhead) next = fetch(first + team);
    Eight gain[kRowEights], sums[kRowEights] = {};
#pragma unroll
    for (int k = 0; k < kRowEights; ++k)
        if (column(k) < s.cols) load8(how.gain + column(k), gain[k]);
    for (int i = 0; i < strip; i += kTeams) {  // as often in every team
        const int row = first + i + team;
        const bool real = row < end;
        const RowParts<T> parts = kAhead ? next : fetch(row);
        if constexpr (kAhead) next = fetch(row + kTeams);
        Eight dn[kRowEights], unit[kRowEights];
        float dot = 0;
#pragma unroll
        for (int k = 0; k < kRowEights; ++k) {
            if (column(k) >= s.cols) continue;
            unpack(parts.dy[k], dn[k]);
            unpack(parts.x[k], unit[k]);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                unit[k][j] *= parts.inverse;
                if (real) sums[k][j] += dn[k][j] * unit[k][j];
                dn[k][j] *= gain[k][j];
                dot = fmaf(dn[k][j], unit[k][j], dot);
            }
        }
        const float mean = team_sum<kTeam>(dot, slots[i / kTeams % 2]) / static_cast<float>(s.cols);
        if (!real) continue;
#pragma unroll
        for (int k = 0; k < kRowEights; ++k) {
            if (column(k) >= s.cols) continue;
            Eight v = {};
            if (how.dstream) unpack(parts.stream[k], v);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                const float dx = parts.inverse * (dn[k][j] - unit[k][j] * mean);
                v[j] = how.dstream ? v[j] + dx : dx;
            }
            round_results<T>(how.round, v);
            store8(static_cast<T*>(how.out) + static_cast<std::size_t>(row) * s.padded_cols + column(k), v);
        }
    }
    float* const out = how.gain_partials + static_cast<std::size_t>(blockIdx.x) * s.padded_cols;
    if constexpr (kTeams == 1) {
#pragma unroll
        for (int k = 0; k < kRowEights; ++k)
            if (column(k) < s.cols) store8(out + column(k), sums[k]);
    } else {
        __shared__ __align__(16) float of_teams[kTeams][kWidest];
#pragma unroll
        for (int k = 0; k < kRowEights; ++k) store8(&of_teams[team][column(k)], sums[k]);
        __syncthreads();
        for (int c = static_cast<int>(threadIdx.x); c < s.cols; c += kThreadsOfBlock) {
            float sum = 0;
#pragma unroll
            for (int t = 0; t < kTeams; ++t) sum += of_teams[t][c];
            out[c] = sum;
        }
    }
}

__global__ void sum_strips_kernel(const float* partials, int strips, int count, int padded, float* out) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count) return;
    float sum = 0;
#pragma unroll 16
    for (int strip = 0; strip < strips; ++strip)
        sum += partials[static_cast<std::size_t>(strip) * padded + i];
    out[i] = sum;
}

constexpr int kTeamsOfBlock = 8;  // at most: strips are multiples of it
constexpr int up(int n, int to) { return (n + to - 1) / to * to; }

// At most 256 strips: two blocks a multiprocessor of the largest GPUs, and few partial sums. Warps need no more than a
// few rows each to be busy; of wider rows every block is needed.
int rows_of_strip(Shape s) {
    constexpr int kMostStrips = 256;
    const int least = s.cols <= widest_row(32) ? 4 * kTeamsOfBlock : kTeamsOfBlock;
    const int rows = up((s.rows + kMostStrips - 1) / kMostStrips, kTeamsOfBlock);
    return rows < least ? least : rows;
}

static_assert(widest_row(512) == kWidestNorm);
void check_row(Shape s) {
    if (s.cols % 16 != 0 || s.cols != s.padded_cols || s.cols > kWidestNorm)
        throw Error(ErrorKind::backend, "norm",
                    "rows are a multiple of 16 wide, and " + std::to_string(kWidestNorm) + " at most");
}

}  // namespace

void add_and_measure(const void* x, const void* y, Element element, Shape shape, bool round, void* sum,
                     float* inverse_rms, cudaStream_t stream) {
    check_row(shape);
    with_team(element, shape.cols, [&]<class T, int kTeam, int kThreadsOfBlock>() {
        constexpr int kTeams = kThreadsOfBlock / kTeam;
        launch("add_and_measure", measure_kernel<T, kTeam, kThreadsOfBlock>,
               dim3(static_cast<unsigned>((shape.rows + kTeams - 1) / kTeams)), kThreadsOfBlock, stream,
               static_cast<const T*>(x), static_cast<const T*>(y), shape, round, static_cast<T*>(sum),
               inverse_rms);
    });
}

int norm_partials(Shape shape) {
    const int strip = rows_of_strip(shape);
    return (shape.rows + strip - 1) / strip;
}

void norm_backward(const NormBackward& how, Shape shape, cudaStream_t stream) {
    check_row(shape);
    with_team(how.element, shape.cols, [&]<class T, int kTeam, int kThreadsOfBlock>() {
        launch("norm_backward", backward_kernel<T, kTeam, kThreadsOfBlock>,
               dim3(static_cast<unsigned>(norm_partials(shape))), kThreadsOfBlock, stream, how, shape,
               rows_of_strip(shape));
    });
}

void sum_strips(const float* partials, int strips, int count, int padded, float* out, cudaStream_t stream) {
    constexpr int kThreadsOfBlock = 64;
    launch("sum_strips", sum_strips_kernel,
           dim3(static_cast<unsigned>((count + kThreadsOfBlock - 1) / kThreadsOfBlock)), kThreadsOfBlock,
           stream, partials, strips, count, padded, out);
}

}  // namespace fp8lab::cuda
