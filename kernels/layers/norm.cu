// The residual stream and its norms, a row in the registers of a team of threads.
#include <string>

#include "core/base/error.h"
#include "core/nn/ops/rms_norm.h"
#include "kernels/layers/norm_rows.cuh"

namespace fp8lab::cuda {
namespace {

// What a thread reads of a row.
template <class T, int kEights>
struct ForwardParts {
    Packed<T> x[kEights], y[kEights];
};
template <class T, int kEights>
struct BackwardParts {
    Packed<T> dy[kEights], x[kEights], stream[kEights];
    float inverse;
};

// A block takes a row for each of its teams; where it casts to FP8, a strip, and the next row's loads are on their way while
// one is worked on.
template <class T, class Team, class Out>
__global__ void __launch_bounds__(Team::kBlock, kToFp8<Out> ? 2 : 0)
    measure_kernel(NormForward how, Shape s, [[maybe_unused]] TileTarget target) {
    constexpr int kEights = Team::kEights, kRows = kToFp8<Out> ? kCastRows : Team::kTeams;
    using Cast = CastOfNorm<Out, Team::kWidest>;
    __shared__ float slots[Team::kBlock / 32];
    [[maybe_unused]] __shared__ __align__(16) std::uint32_t codes[Cast::kWords];
    wait_for_the_kernel_before();
    const int first = static_cast<int>(blockIdx.x) * kRows;
    const auto fetch = [&](int row) {
        ForwardParts<T, kEights> parts = {};
        if (row >= s.rows) return parts;
        const std::size_t at = static_cast<std::size_t>(row) * s.padded_cols;
#pragma unroll
        for (int k = 0; k < kEights; ++k) {
            const int c = Team::column(k);
            if (c >= s.cols) continue;
            parts.x[k] = fetch8(static_cast<const T*>(how.x) + at + c);
            if (how.y) parts.y[k] = fetch8(static_cast<const T*>(how.y) + at + c);
        }
        return parts;
    };
    ForwardParts<T, kEights> next = fetch(first + Team::number());
    Cast cast(target, s, codes);
#pragma unroll 1
    for (int i = 0; i < kRows; i += Team::kTeams) {
        const int in_strip = i + Team::number(), row = first + in_strip;
        const bool real = row < s.rows;  // all threads meet in the sum
        const ForwardParts<T, kEights> parts = next;
        if (i + Team::kTeams < kRows) next = fetch(row + Team::kTeams);
        Eight v[kEights];
        float squares = 0;
#pragma unroll
        for (int k = 0; k < kEights; ++k) {
            const int c = Team::column(k);
            if (c >= s.cols) continue;
            unpack(parts.x[k], v[k]);
            if (how.y) {
                Eight w;
                unpack(parts.y[k], w);
#pragma unroll
                for (int j = 0; j < kThreadCols; ++j) v[k][j] += w[j];
                round_results<T>(how.round, v[k]);
                if (real)
                    store8(static_cast<T*>(how.sum) + static_cast<std::size_t>(row) * s.padded_cols + c,
                           v[k]);
            }
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) squares = fmaf(v[k][j], v[k][j], squares);
        }
        squares = team_sum<Team>(squares, slots);
        const float inverse =
            1 / sqrtf(squares / static_cast<float>(s.cols) + static_cast<float>(kRmsEpsilon));
        if (real && threadIdx.x % Team::kThreads == 0) how.inverse_rms[row] = inverse;
        if constexpr (kCasts<Out>) {
#pragma unroll
            for (int k = 0; k < kEights; ++k) {
                const int c = Team::column(k);
                if (c >= s.cols) continue;
                Eight gain;
                load8(how.gain + c, gain);
#pragma unroll
                for (int j = 0; j < kThreadCols; ++j) v[k][j] = real ? v[k][j] * inverse * gain[j] : 0.0F;
                round_results<T>(how.round, v[k]);
                cast.add(v[k], first, in_strip, c);
            }
        }
    }
    if constexpr (kCasts<Out>) {
        cast.store_columns(first);
        cast.finish();
    }
}

// A block takes a strip of rows, its teams every kTeams-th of them. In BF16, where registers are left, the next row's
// loads are on their way while one is worked on.
template <class T, class Team, class Out>
__global__ void __launch_bounds__(Team::kBlock, 512 / Team::kBlock)
    backward_kernel(NormBackward how, Shape s, int strip, [[maybe_unused]] TileTarget target) {
    constexpr int kEights = Team::kEights, kTeams = Team::kTeams;
    constexpr bool kAhead = !std::is_same_v<T, float> && kEights < 3, kKeepsGain = kEights < 4;
    using Cast = CastOfNorm<Out, Team::kWidest>;
    using Parts = BackwardParts<T, kEights>;
    __shared__ float slots[2][Team::kBlock / 32];
    // First the codes of a strip, then the sums of the teams: as many words.
    __shared__ __align__(16) std::uint32_t words[kTeams > 1 ? kTeams * Team::kWidest : 1];
    static_assert(!kCasts<Out> || Cast::kWords == kTeams * Team::kWidest);
    wait_for_the_kernel_before();
    if (how.counters && blockIdx.x == 0 && threadIdx.x < 64) how.counters[threadIdx.x] = 0;
    const int first = static_cast<int>(blockIdx.x) * strip, end = min(first + strip, s.rows);
    const auto fetch = [&](int row) {
        Parts parts = {};
        if (row >= end) return parts;
        const std::size_t at = static_cast<std::size_t>(row) * s.padded_cols;
#pragma unroll
        for (int k = 0; k < kEights; ++k) {
            const int c = Team::column(k);
            if (c >= s.cols) continue;
            parts.dy[k] = fetch8(static_cast<const T*>(how.dy) + at + c);
            parts.x[k] = fetch8(static_cast<const T*>(how.x) + at + c);
            if (how.dstream) parts.stream[k] = fetch8(static_cast<const T*>(how.dstream) + at + c);
        }
        parts.inverse = how.inverse_rms[row];
        return parts;
    };
    [[maybe_unused]] Parts next;
    if constexpr (kAhead) next = fetch(first + Team::number());
    Eight kept[kKeepsGain ? kEights : 1], sums[kEights] = {};
    if constexpr (kKeepsGain) {
#pragma unroll
        for (int k = 0; k < kEights; ++k)
            if (Team::column(k) < s.cols) load8(how.gain + Team::column(k), kept[k]);
    }
    const auto gain_of = [&](int k, Eight& gain) {
        if constexpr (kKeepsGain) {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) gain[j] = kept[k][j];
        } else {
            load8(how.gain + Team::column(k), gain);
        }
    };
    Cast cast(target, s, words);
#pragma unroll 1
    for (int i = 0; i < strip; i += kTeams) {  // as often in every team
        const int row = first + i + Team::number();
        const bool real = row < end;
        Parts parts;
        if constexpr (kAhead) {
            parts = next;
            next = fetch(row + kTeams);
        } else {
            parts = fetch(row);
        }
        float dot = 0;
#pragma unroll
        for (int k = 0; k < kEights; ++k) {
            if (Team::column(k) >= s.cols) continue;
            Eight dy, x, gain;
            unpack(parts.dy[k], dy);
            unpack(parts.x[k], x);
            gain_of(k, gain);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                const float term = dy[j] * (x[j] * parts.inverse);
                if (real) sums[k][j] += term;
                dot = fmaf(term, gain[j], dot);
            }
        }
        const float mean = team_sum<Team>(dot, slots[i / kTeams % 2]) / static_cast<float>(s.cols),
                    of_x = -(parts.inverse * parts.inverse) * mean;
#pragma unroll
        for (int k = 0; k < kEights; ++k) {
            const int c = Team::column(k);
            if (c >= s.cols || (!real && !kCasts<Out>)) continue;
            Eight dy, x, gain, v = {};
            unpack(parts.dy[k], dy);
            unpack(parts.x[k], x);
            gain_of(k, gain);
            if (how.dstream) unpack(parts.stream[k], v);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j)
                v[j] = fmaf(dy[j], gain[j] * parts.inverse, fmaf(x[j], of_x, v[j]));
            round_results<T>(how.round, v);
            if (real) store8(static_cast<T*>(how.out) + static_cast<std::size_t>(row) * s.padded_cols + c, v);
            if constexpr (kCasts<Out>) {
                if (!real)
#pragma unroll
                    for (int j = 0; j < kThreadCols; ++j) v[j] = 0;
                cast.add(v, first + i / kCastRows * kCastRows, i % kCastRows + Team::number(), c);
            }
        }
        if constexpr (kCasts<Out>)
            if ((i + kTeams) % kCastRows == 0) cast.store_columns(first + i / kCastRows * kCastRows);
    }
    if constexpr (kCasts<Out>) cast.finish();
    float* const out = how.gain_partials + static_cast<std::size_t>(blockIdx.x) * s.padded_cols;
    if constexpr (kTeams == 1) {
#pragma unroll
        for (int k = 0; k < kEights; ++k)
            if (Team::column(k) < s.cols) store8(out + Team::column(k), sums[k]);
    } else {
        auto* const of_teams = reinterpret_cast<float*>(words);
#pragma unroll
        for (int k = 0; k < kEights; ++k)
            store8(of_teams + Team::number() * Team::kWidest + Team::column(k), sums[k]);
        __syncthreads();
        for (int c = static_cast<int>(threadIdx.x); c < s.cols; c += Team::kBlock) {
            float sum = 0;
#pragma unroll
            for (int t = 0; t < kTeams; ++t) sum += of_teams[t * Team::kWidest + c];
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

void check_row(Shape s) {
    if (s.cols % 16 != 0 || s.cols != s.padded_cols || s.cols > kWidestNorm)
        throw Error(ErrorKind::backend, "norm",
                    "rows are a multiple of 16 wide, and " + std::to_string(kWidestNorm) + " at most");
}

// What the kernels cast to; nothing where there is no cast.
TileTarget target_of(const CastTarget* cast, Element element, Shape s) {
    if (!cast) return {};
    if (!casts_with_norm(element, cast->element, s) || !cast->state || cast->scaling != ScaleMode::tensor ||
        cast->stats_partials || (cast->element == Element::bf16 && cast->scaled))
        throw Error(ErrorKind::backend, "norm",
                    "the cast with a norm is from BF16 to FP8 with one scale, of rows " +
                        std::to_string(kWidestCastNorm) +
                        " wide at most, or to BF16 without a scale, and without statistics");
    return {cast->rows, cast->columns, cast->state, nullptr, nullptr, nullptr, cast->scaled, cast->scale_inv};
}

// Whether the kernels that cast to FP8 are compiled for this type and team.
template <class T, class Team>
constexpr bool kMayCastToFp8 = std::is_same_v<T, __nv_bfloat16>&& Team::kWidest <= kWidestCastNorm;

}  // namespace

bool casts_with_norm(Element from, Element to, Shape shape) {
    return from == Element::bf16 &&
           (to == Element::bf16 || (bytes_of(to) == 1 && shape.cols <= kWidestCastNorm));
}

void add_and_measure(const NormForward& how, Shape shape, cudaStream_t stream, const CastTarget* cast) {
    check_row(shape);
    const TileTarget target = target_of(cast, how.element, shape);
    if (cast && cast->element == Element::e5m2) throw Error(ErrorKind::backend, "norm", kForwardIsE4m3);
    with_team(how.element, shape.cols, [&]<class T, class Team>() {
        const auto run = [&]<class Out>(Out) {
            constexpr int kRows = kToFp8<Out> ? kCastRows : Team::kTeams;
            const int rows = kCasts<Out> ? shape.padded_rows : shape.rows;
            launch("add_and_measure", measure_kernel<T, Team, Out>,
                   dim3(static_cast<unsigned>((rows + kRows - 1) / kRows)), Team::kBlock, stream, how, shape,
                   target);
        };
        if constexpr (std::is_same_v<T, __nv_bfloat16>)
            if (cast && cast->element == Element::bf16) return run(ToBf16());
        if constexpr (kMayCastToFp8<T, Team>)
            if (cast) return run(ToFp8<__NV_E4M3>());
        run(NotCast());
    });
}

int norm_partials(Shape shape) { return strips_of(shape.rows, shape.cols); }

void norm_backward(const NormBackward& how, Shape shape, cudaStream_t stream, const CastTarget* cast) {
    check_row(shape);
    const TileTarget target = target_of(cast, how.element, shape);
    if (cast && cast->element == Element::bf16)
        throw Error(ErrorKind::backend, "norm", "the gradient of the stream is in BF16 already");
    with_team(how.element, shape.cols, [&]<class T, class Team>() {
        const auto run = [&]<class Out>(Out) {
            launch("norm_backward", backward_kernel<T, Team, Out>,
                   dim3(static_cast<unsigned>(norm_partials(shape))), Team::kBlock, stream, how, shape,
                   rows_of_strip(shape.rows, shape.cols), target);
        };
        if constexpr (kMayCastToFp8<T, Team>)
            if (cast)
                return cast->element == Element::e4m3 ? run(ToFp8<__NV_E4M3>()) : run(ToFp8<__NV_E5M2>());
        run(NotCast());
    });
}

void sum_strips(const float* partials, int strips, int count, int padded, float* out, cudaStream_t stream) {
    constexpr int kThreadsOfBlock = 64;
    launch("sum_strips", sum_strips_kernel,
           dim3(static_cast<unsigned>((count + kThreadsOfBlock - 1) / kThreadsOfBlock)), kThreadsOfBlock,
           stream, partials, strips, count, padded, out);
}

}  // namespace fp8lab::cuda
