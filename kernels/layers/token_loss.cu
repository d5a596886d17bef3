// The loss of the next token: a row's maximum and sum in one read of its logits; the cast of their gradient.
#include "core/nn/ops/exponential.h"
#include "kernels/casts/tile.cuh"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {
namespace {

constexpr float kNegativeInfinity = -__builtin_huge_valf();

// e^(x - shift), of x = shift 1: sums are scaled again and again by it.
template <class T>
__device__ inline float shifted_exponential(float x, float shift) {
    if constexpr (kFastMath<T>) return fast_exp2((x - shift) * kLog2E);
    return exponential(x - shift);
}

// Of the logits seen so far, NaN ignored in `top` and kept in `sum`: the largest, and the sum of e^(y - top).
template <class T>
struct Softmax {
    float top = kNegativeInfinity, sum = 0;
    // Before anything finite was seen there is nothing to shift by.
    static __device__ float shift(float top) { return top == kNegativeInfinity ? 0.0F : top; }
    __device__ void add(const Eight& v, float most) {
        const float now = fmaxf(top, most), by = shift(now);
        float total = sum * shifted_exponential<T>(top, by);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) total += shifted_exponential<T>(v[j], by);
        top = now, sum = total;
    }
    __device__ void add(float other_top, float other_sum) {
        const float now = fmaxf(top, other_top), by = shift(now);
        sum = sum * shifted_exponential<T>(top, by) + other_sum * shifted_exponential<T>(other_top, by);
        top = now;
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
    // The next loads are on their way while these are worked on, the first ones before the target is known.
    Packed<T> raw[kAhead];
    const auto fetch = [&](int eight, int k) {
        if (eight < eights) raw[k] = fetch8(y + eight * kThreadCols);
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) fetch(lane + k * kTeam, k);
    const TokenBatchView batch = batch_of(ring);
    const int target = batch.targets[row];
    if (target < 0) {
        if (lane != 0) return;
        row_stats[row] = make_float2(0, 1);
        row_loss[row] = 0;
        correct[row] = 0;
        return;
    }
    const float score = static_cast<float>(y[target]);
    Softmax<T> all;
    bool beaten = false;  // by an earlier logit as large, or a later one that is larger
    for (int first = lane; first < eights; first += kTeam * kAhead) {
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            const int c = (first + k * kTeam) * kThreadCols;
            if (c >= s.cols) break;
            Eight v;
            unpack(raw[k], v);
            fetch(first + (k + kAhead) * kTeam, k);
            if (c + kThreadCols > s.cols)
#pragma unroll
                for (int j = 0; j < kThreadCols; ++j)
                    if (c + j >= s.cols) v[j] = kNegativeInfinity;
            float most = v[0];
#pragma unroll
            for (int j = 1; j < kThreadCols; ++j) most = fmaxf(most, v[j]);
            if (c + kThreadCols <= target)
                beaten = beaten || most >= score;
            else if (c > target)
                beaten = beaten || most > score;
            else
#pragma unroll
                for (int j = 0; j < kThreadCols; ++j)
                    beaten = beaten || (c + j < target ? v[j] >= score : v[j] > score);
            all.add(v, most);
        }
    }
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
    row_stats[row] = make_float2(all.top, all.sum);
    const double loss =
        log(static_cast<double>(all.sum)) + (static_cast<double>(all.top) - static_cast<double>(score));
    row_loss[row] = loss / *batch.scored;
    correct[row] = !isnan(loss) && !beaten;
}

template <class T>
struct TokenGradient {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = kThreadRows;
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
        share = 1.0F / static_cast<float>(*batch.scored);
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        return {fetch8(address(r, c, s)), row_stats[r], targets[r]};
    }
    __device__ const T* address(int r, int c, Shape s) const {
        return logits + static_cast<std::size_t>(r) * s.padded_cols + c;
    }
    __device__ void values(const Raw& raw, int, int c, bool, Shape, Eight& v) const {
        unpack(raw.y, v);
        const float inverse = 1.0F / raw.stats.y;
        const bool scored = raw.target >= 0;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) {
            const float p = shifted_exponential<T>(v[j], raw.stats.x) * inverse;
            v[j] = scored ? (c + j == raw.target ? p - 1.0F : p) * share : 0.0F;
        }
        round_results<T>(round, v);
    }
};

}  // namespace

template <class T>
constexpr bool kMayBeLow<TokenGradient<T>> = false;
template <class T>
constexpr bool kPrefetches<TokenGradient<T>> = true;
template <>
constexpr bool kOnlyCopied<TokenGradient<float>> = true;

void token_rows(const TokenLossSource& source, Shape shape, float2* row_stats, double* row_loss,
                std::uint8_t* correct, cudaStream_t stream) {
    // Up to so many logits a warp has no more than four reads; of so many rows the warps alone fill a GPU.
    constexpr int kNarrow = 1024, kManyRows = 4096, kThreadsOfBlock = 256;
    with_type(source.element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        const auto run = [&]<int kTeam>() {
            constexpr int kTeams = kThreadsOfBlock / kTeam;
            launch("token_rows", token_rows_kernel<T, kTeam, kThreadsOfBlock>,
                   dim3(static_cast<unsigned>((shape.rows + kTeams - 1) / kTeams)), kThreadsOfBlock, stream,
                   static_cast<const T*>(source.logits), source.batch, shape, row_stats, row_loss, correct);
        };
        if (shape.cols <= kNarrow || shape.rows >= kManyRows)
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
