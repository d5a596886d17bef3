// Inputs of GEMMs: rows of a source, each in the registers of a team of threads, cast to BF16 or E4M3.
#include "kernels/layers/norm_rows.cuh"
#include "kernels/prefill/launch.h"

namespace fp8lab::cuda {
namespace {

using Bf16 = __nv_bfloat16;

// ---- sources: what a thread reads for 8 values of a row, and the values
template <class T>
struct NormRows {
    static constexpr bool kNorm = true;
    using Raw = Packed<T>;
    const T* x;
    int step, cols;
    const float* gain;
    __device__ Raw fetch(int row, int c) const {
        return fetch8(x +
                      (static_cast<std::size_t>(row) * static_cast<std::size_t>(step) +
                       static_cast<std::size_t>(step - 1)) *
                          static_cast<std::size_t>(cols) +
                      c);
    }
    __device__ void values(const Raw& raw, Eight& v) const { unpack(raw, v); }
};
struct HeldRows {
    static constexpr bool kNorm = false;
    using Raw = Packed<Bf16>;
    const Bf16* x;
    int cols;
    __device__ Raw fetch(int row, int c) const {
        return fetch8(x + static_cast<std::size_t>(row) * static_cast<std::size_t>(cols) + c);
    }
    __device__ void values(const Raw& raw, Eight& v) const { unpack(raw, v); }
};
template <class T>
struct GatedRows {
    static constexpr bool kNorm = false;
    struct Raw {
        Packed<T> gate, up;
    };
    const T* gate_up;
    int cols;
    __device__ Raw fetch(int row, int c) const {
        const T* const at = gate_up + 2 * static_cast<std::size_t>(row) * static_cast<std::size_t>(cols) + c;
        return {fetch8(at), fetch8(at + cols)};
    }
    __device__ void values(const Raw& raw, Eight& v) const {
        Eight g;
        unpack(raw.gate, g);
        unpack(raw.up, v);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] *= g[j] * fast_inverse(1 + fast_exp2(-kLog2E * g[j]));
        round_results<Bf16>(true, v);
    }
};
// Partial results of attention (merge_rows()).
struct MergedRows {
    static constexpr bool kNorm = false;
    struct Raw {
        const float* head;  // of the first range
        int at;
    };
    const float* partials;
    int cols, head_size, splits;
    __device__ Raw fetch(int row, int c) const {
        const auto head = static_cast<std::size_t>(row) * static_cast<std::size_t>(cols / head_size) +
                          static_cast<std::size_t>(c / head_size);
        return {partials + head * static_cast<std::size_t>(splits * partial_width(head_size)), c % head_size};
    }
    __device__ void values(const Raw& raw, Eight& v) const {
        const int width = partial_width(head_size);
        float top = -INFINITY, total = 0;
        for (int i = 0; i < splits; ++i) top = fmaxf(top, raw.head[i * width + head_size]);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] = 0;
        for (int i = 0; i < splits; ++i) {
            const float* const from = raw.head + i * width;
            const float of = from[head_size + 1];
            if (of == 0) continue;  // a range without positions has left nothing else
            const float factor = fast_exp2(from[head_size] - top);
            total = fmaf(factor, of, total);
            Eight sums;
            load8(from + raw.at, sums);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) v[j] = fmaf(factor, sums[j], v[j]);
        }
        const float inverse = 1 / total;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] *= inverse;
        round_results<Bf16>(true, v);
    }
};

// The largest of the team, for all of its threads, as team_sum().
template <class Team>
__device__ inline float team_largest(float value, float* slots) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        value = larger(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    if constexpr (Team::kThreads > 32) {
        constexpr int kWarps = Team::kThreads / 32;
        if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
        __syncthreads();
        const float* const mine = slots + Team::number() * kWarps;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) value = larger(value, mine[w]);
    }
    return value;
}

__device__ inline float scale_of(float amax) { return amax > 0 && isfinite(amax) ? 448.0F / amax : 1.0F; }

enum class Doing : int { cast, measure };

template <class Team>
__device__ inline void store_row(const RowTarget& to, int row, float scale, const Eight (&v)[Team::kEights]) {
    const std::size_t at = static_cast<std::size_t>(row) * static_cast<std::size_t>(to.cols);
#pragma unroll
    for (int k = 0; k < Team::kEights; ++k) {
        const int c = Team::column(k);
        if (c >= to.cols) continue;
        if (to.as == PassWeights::bf16) {
            store8(static_cast<Bf16*>(to.out) + at + c, v[k]);
            continue;
        }
        const uint2 codes = {
            fp8_quad<__NV_E4M3>(v[k][0] * scale, v[k][1] * scale, v[k][2] * scale, v[k][3] * scale),
            fp8_quad<__NV_E4M3>(v[k][4] * scale, v[k][5] * scale, v[k][6] * scale, v[k][7] * scale)};
        *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(to.out) + at + c) = codes;
    }
}

// The gains of a thread's columns. Where registers are left they are on their way with the row.
template <class Source, class Team>
class Gains {
  public:
    __device__ Gains(const Source& source, int cols) : source_(source), cols_(cols) {
        if constexpr (kHeld)
#pragma unroll
            for (int k = 0; k < Team::kEights; ++k)
                if (Team::column(k) < cols) load8(source.gain + Team::column(k), held_[k]);
    }
    __device__ void normalise(Eight (&v)[Team::kEights], float* slots) const {
        float squares = 0;
#pragma unroll
        for (int k = 0; k < Team::kEights; ++k)
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) squares = fmaf(v[k][j], v[k][j], squares);
        squares = team_sum<Team>(squares, slots);
        const float inverse = 1 / sqrtf(squares / static_cast<float>(cols_) + 1e-6F);
#pragma unroll
        for (int k = 0; k < Team::kEights; ++k) {
            const int c = Team::column(k);
            if (c >= cols_) continue;
            Eight gain;
            if constexpr (!kHeld) load8(source_.gain + c, gain);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j)
                v[k][j] = v[k][j] * inverse * (kHeld ? held_[kHeld ? k : 0][j] : gain[j]);
        }
    }

  private:
    static constexpr bool kHeld = Team::kEights <= 2;
    const Source& source_;
    const int cols_;
    Eight held_[kHeld ? Team::kEights : 1];
};
template <class Source, class Team>
__global__ void __launch_bounds__(Team::kBlock, Team::kEights <= 4 ? 1024 / Team::kBlock : 1)
    row_kernel(const Source source, const RowTarget to, Doing doing) {
    constexpr int kEights = Team::kEights;
    __shared__ float slots[2][Team::kBlock / 32];
    wait_for_the_kernel_before();
    const int row = static_cast<int>(blockIdx.x) * Team::kTeams + Team::number();
    const bool real = row < to.rows;
    typename Source::Raw raw[kEights];
#pragma unroll
    for (int k = 0; k < kEights; ++k)
        if (real && Team::column(k) < to.cols) raw[k] = source.fetch(row, Team::column(k));
    Eight v[kEights] = {};
    if constexpr (Source::kNorm) {
        const Gains<Source, Team> gains(source, to.cols);
#pragma unroll
        for (int k = 0; k < kEights; ++k)
            if (real && Team::column(k) < to.cols) source.values(raw[k], v[k]);
        gains.normalise(v, slots[0]);
    } else {
#pragma unroll
        for (int k = 0; k < kEights; ++k)
            if (real && Team::column(k) < to.cols) source.values(raw[k], v[k]);
    }
    float amax = 0;
    if (to.as != PassWeights::bf16 && (to.as == PassWeights::e4m3_row || doing == Doing::measure)) {
#pragma unroll
        for (int k = 0; k < kEights; ++k)
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) amax = larger(amax, v[k][j]);
        amax = team_largest<Team>(amax, slots[1]);
    }
    const bool first = threadIdx.x % Team::kThreads == 0;
    if (doing == Doing::measure) {
        if (first && amax > 0) atomicMax(to.amax, __float_as_uint(amax));
        return;
    }
    if (row >= to.padded_rows) return;
    const bool of_all = to.as == PassWeights::e4m3_tensor;
    const float scale = scale_of(of_all ? __uint_as_float(*to.amax) : amax);
    if (to.as != PassWeights::bf16 && first && (!of_all || row == 0))
        to.scale_inv[of_all ? 0 : row] = 1 / scale;
    store_row<Team>(to, row, scale, v);
}

template <class Source, class Team>
void launch_rows(const char* name, const Source& source, const RowTarget& to, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>((to.padded_rows + Team::kTeams - 1) / Team::kTeams);
    if (to.as == PassWeights::e4m3_tensor)
        launch(name, row_kernel<Source, Team>, dim3(blocks), Team::kBlock, stream, source, to,
               Doing::measure);
    launch(name, row_kernel<Source, Team>, dim3(blocks), Team::kBlock, stream, source, to, Doing::cast);
}
template <class Source>
void with_rows(const char* name, const Source& source, const RowTarget& to, cudaStream_t stream) {
    const auto run = [&]<class T>() { launch_rows<Source, T>(name, source, to, stream); };
    if (to.cols <= Team<32, 2>::kWidest) return run.template operator()<Team<32, 2>>();
    if (to.cols <= Team<128, 2>::kWidest) return run.template operator()<Team<128, 2>>();
    if (to.cols <= Team<256, 2>::kWidest) return run.template operator()<Team<256, 2>>();
    if (to.cols <= Team<512, 2, 512>::kWidest) return run.template operator()<Team<512, 2, 512>>();
    if (to.cols <= Team<512, 4, 512>::kWidest) return run.template operator()<Team<512, 4, 512>>();
    static_assert(kMostServedWidth == Team<512, 8, 512>::kWidest);
    run.template operator()<Team<512, 8, 512>>();
}

}  // namespace

void norm_rows(const void* x, Element element, int step, const float* gain, const RowTarget& target,
               cudaStream_t stream) {
    if (element == Element::f32)
        with_rows("norm_rows", NormRows<float>{static_cast<const float*>(x), step, target.cols, gain}, target,
                  stream);
    else
        with_rows("norm_rows", NormRows<Bf16>{static_cast<const Bf16*>(x), step, target.cols, gain}, target,
                  stream);
}
void gate_rows(const void* gate_up, Element element, const RowTarget& target, cudaStream_t stream) {
    if (element == Element::f32)
        with_rows("gate_rows", GatedRows<float>{static_cast<const float*>(gate_up), target.cols}, target,
                  stream);
    else
        with_rows("gate_rows", GatedRows<Bf16>{static_cast<const Bf16*>(gate_up), target.cols}, target,
                  stream);
}
void cast_rows(const void* x, const RowTarget& target, cudaStream_t stream) {
    with_rows("cast_rows", HeldRows{static_cast<const Bf16*>(x), target.cols}, target, stream);
}
void merge_rows(const ServedAttention& a, const RowTarget& target, cudaStream_t stream) {
    with_rows("merge_rows", MergedRows{a.partials, target.cols, a.head_size, a.splits}, target, stream);
}

}  // namespace fp8lab::cuda
