// The loss of the next token: a row's maximum and sum in one read of its logits; the cast of their gradient.
#include "core/nn/ops/exponential.h"
#include "kernels/casts/tile.cuh"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {
namespace {

constexpr float kNegativeInfinity = -__builtin_huge_valf();

// ---- eight logits as they lie in memory
template <class T>
__device__ inline Packed<T> as_packed(const Eight& v) {
    if constexpr (std::is_same_v<T, float>)
        return {make_float4(v[0], v[1], v[2], v[3]), make_float4(v[4], v[5], v[6], v[7])};
    else
        return pack8(v);
}
template <class T>
__device__ inline Packed<T> all_are(float x) {
    return as_packed<T>({x, x, x, x, x, x, x, x});
}
// The last `count` of them become -Inf.
template <class T>
__device__ inline Packed<T> without_last(const Packed<T>& from, int count) {
    Eight v;
    unpack(from, v);
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j)
        if (j >= kThreadCols - count) v[j] = kNegativeInfinity;
    return as_packed<T>(v);
}
// NaN ignored.
__device__ inline float largest_of(const Packed<float>& eight) {
    Eight v;
    unpack(eight, v);
    float most = v[0];
#pragma unroll
    for (int j = 1; j < kThreadCols; ++j) most = fmaxf(most, v[j]);
    return most;
}
__device__ inline float largest_of(const Packed<__nv_bfloat16>& eight) {
    const auto pair = [](const std::uint32_t& word) {
        return *reinterpret_cast<const __nv_bfloat162*>(&word);
    };
    const __nv_bfloat162 most = __hmax2(__hmax2(pair(eight.words.x), pair(eight.words.y)),
                                        __hmax2(pair(eight.words.z), pair(eight.words.w)));
    return fmaxf(__low2float(most), __high2float(most));
}

// e^(x - shift), of x = shift 1: sums are scaled again and again by it.
template <class T>
__device__ inline float shifted_exponential(float x, float shift) {
    if constexpr (kFastMath<T>) return fast_exp2((x - shift) * kLog2E);
    return exponential(x - shift);
}
// The largest of the logits so far, and the sum of e^(y - top). NaN is ignored in `top` and kept in `sum`.
template <class T>
struct Softmax {
    float top = kNegativeInfinity, sum = 0;
    // Before anything finite was seen there is nothing to shift by.
    static __device__ float shift(float top) { return top == kNegativeInfinity ? 0.0F : top; }
    // The largest logit is now `now`.
    __device__ void raise(float now) {
        sum *= shifted_exponential<T>(top, shift(now));
        top = now;
    }
    __device__ void add(float other_top, float other_sum) {
        raise(fmaxf(top, other_top));
        sum += other_sum * shifted_exponential<T>(other_top, shift(top));
    }
};

// A team of threads a row.
template <class T, int kTeam, int kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock)
    token_rows_kernel(const T* logits, TokenRing ring, Shape s, float2* row_stats, double* row_loss,
                      std::uint8_t* correct) {
    constexpr int kTeams = kThreadsOfBlock / kTeam, kAhead = 4;
    wait_for_the_kernel_before();
    const int row = static_cast<int>(blockIdx.x) * kTeams + static_cast<int>(threadIdx.x) / kTeam,
              lane = static_cast<int>(threadIdx.x) % kTeam;
    if (row >= s.rows) return;  // a whole team, which is a warp where a block has several
    const T* const y = logits + static_cast<std::size_t>(row) * s.padded_cols;
    const int eights = (s.cols + kThreadCols - 1) / kThreadCols;
    // The next loads are on their way while these are worked on.
    Packed<T> raw[kAhead];
    const auto fetch = [&](int eight) {
        if (eight >= eights) return all_are<T>(kNegativeInfinity);
        const Packed<T> eight_of_row = fetch8(y + eight * kThreadCols);
        const int behind = (eight + 1) * kThreadCols - s.cols;
        return behind > 0 ? without_last<T>(eight_of_row, behind) : eight_of_row;
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) raw[k] = fetch(lane + k * kTeam);
    const TokenBatchView batch = batch_of(ring);
    const int target = batch.targets[row], aim = max(target, 0), of_aim = aim / kThreadCols;
    const Packed<T> of_target = fetch8(y + of_aim * kThreadCols);
    Softmax<T> all;
    int first_eight = 0;  // the first eight that holds the thread's largest logit
    for (int first = lane; first < eights; first += kTeam * kAhead) {
        float top = all.top;
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            const float most = largest_of(raw[k]);
            if (most > top) first_eight = first + k * kTeam;
            top = fmaxf(top, most);
        }
        all.raise(top);
        const float by = all.shift(top);
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            Eight v;
            unpack(raw[k], v);
            raw[k] = fetch(first + (k + kAhead) * kTeam);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) all.sum += shifted_exponential<T>(v[j], by);
        }
    }
    // The target is the row's choice unless an earlier logit is as large or a later one is larger.
    Eight beside;
    unpack(of_target, beside);
    float score = beside[0];
#pragma unroll
    for (int j = 1; j < kThreadCols; ++j)
        if (j == aim % kThreadCols) score = beside[j];
    bool beaten = all.top > score || (all.top == score && first_eight < of_aim);
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) beaten = beaten || (j < aim % kThreadCols && beside[j] >= score);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float top = __shfl_xor_sync(0xFFFFFFFFu, all.top, offset),
                    sum = __shfl_xor_sync(0xFFFFFFFFu, all.sum, offset);
        all.add(top, sum);
    }
    beaten = __any_sync(0xFFFFFFFFu, beaten);
    if constexpr (kTeam > 32) {
        static_assert(kTeams == 1);
        constexpr int kWarps = kTeam / 32;
        __shared__ float tops[kWarps], sums[kWarps];
        __shared__ bool beaten_in[kWarps];
        if (lane % 32 == 0)
            tops[lane / 32] = all.top, sums[lane / 32] = all.sum, beaten_in[lane / 32] = beaten;
        __syncthreads();
        if (lane != 0) return;
        for (int w = 1; w < kWarps; ++w) {
            all.add(tops[w], sums[w]);
            beaten = beaten || beaten_in[w];
        }
    }
    if (lane != 0) return;
    if (target < 0) {
        row_stats[row] = make_float2(0, 1);
        row_loss[row] = 0;
        correct[row] = 0;
        return;
    }
    row_stats[row] = make_float2(all.top, all.sum);
    const double loss =
        log(static_cast<double>(all.sum)) + (static_cast<double>(all.top) - static_cast<double>(score));
    row_loss[row] = loss / *batch.scored * ring.parts;
    correct[row] = !isnan(loss) && !beaten;
}

template <class T>
struct TokenGradient {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = kThreadRows;
    using Values = HeldAs<T>;
    struct Raw {
        Packed<T> y;
        float2 stats;
        std::int32_t target;
    };
    const T* logits;
    TokenRing ring;
    const float2* row_stats;
    bool round;
    const std::int32_t* targets = nullptr;
    float share = 0;
    __device__ void prepare(int) {
        const TokenBatchView batch = batch_of(ring);
        targets = batch.targets;
        share = static_cast<float>(ring.parts) / static_cast<float>(*batch.scored);
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        return {fetch8(address(r, c, s)), row_stats[r], targets[r]};
    }
    __device__ const T* address(int r, int c, Shape s) const {
        return logits + static_cast<std::size_t>(r) * s.padded_cols + c;
    }
    __device__ void values(const Raw& raw, int, int c, bool, Shape, Eight& v) const {
        unpack(raw.y, v);
        const int target = raw.target - c;
        const bool scored = raw.target >= 0, has_target = target >= 0 && target < kThreadCols;
        if constexpr (kFastMath<T>) {
            const float factor = fast_inverse(raw.stats.y) * share;
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) v[j] = shifted_exponential<T>(v[j], raw.stats.x) * factor;
        } else {
            const float inverse = 1.0F / raw.stats.y;
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                const float p = shifted_exponential<T>(v[j], raw.stats.x) * inverse;
                v[j] = (has_target && j == target ? p - 1.0F : p) * share;
            }
        }
        if (__any_sync(0xFFFFFFFFu, !scored || (kFastMath<T> && has_target))) {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                if (kFastMath<T> && has_target && j == target) v[j] -= share;
                if (!scored) v[j] = 0;
            }
        }
        round_if_f32<T>(round, v);
    }
};

}  // namespace

template <class T>
constexpr bool kMayBeLow<TokenGradient<T>> = false;
template <class T>
constexpr bool kPrefetches<TokenGradient<T>> = true;
template <>
constexpr int kBlocksAtOnce<TokenGradient<__nv_bfloat16>> = 4;
template <>
constexpr bool kOnlyCopied<TokenGradient<float>> = true;

void token_rows(const TokenLossSource& source, Shape shape, float2* row_stats, double* row_loss,
                std::uint8_t* correct, cudaStream_t stream) {
    // A warp a row: up to kNarrow logits, which are four reads of it; and of kManyRows, whose warps alone fill a GPU, up to
    // kMedium: wider rows are read faster by a block each (one H200, CUDA 13.0, 2026-11-24, 32,768 logits).
    constexpr int kNarrow = 1024, kManyRows = 4096, kMedium = 8192, kThreadsOfBlock = 128;
    with_type(source.element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        const auto run = [&]<int kTeam>() {
            constexpr int kTeams = kThreadsOfBlock / kTeam;
            launch("token_rows", token_rows_kernel<T, kTeam, kThreadsOfBlock>,
                   dim3(static_cast<unsigned>((shape.rows + kTeams - 1) / kTeams)), kThreadsOfBlock, stream,
                   static_cast<const T*>(source.logits), source.batch, shape, row_stats, row_loss, correct);
        };
        if (shape.cols <= kNarrow || (shape.cols <= kMedium && shape.rows >= kManyRows))
            run.template operator()<32>();
        else
            run.template operator()<kThreadsOfBlock>();
    });
}

void cast_token_gradient(const TokenLossSource& source, Shape shape, const CastTarget& target, Pass pass,
                         cudaStream_t stream) {
    with_type(source.element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(TokenGradient<T>{static_cast<const T*>(source.logits), source.batch, source.row_stats,
                                     source.round},
                    shape, target, pass, stream);
    });
}

}  // namespace fp8lab::cuda
