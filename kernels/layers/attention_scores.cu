// The products of attention that have a row for each query and a column for each key: probabilities and their gradient.
#include <cmath>

#include "core/nn/ops/exponential.h"
#include "kernels/casts/tile.cuh"
#include "kernels/layers/attention.cuh"

namespace fp8lab::cuda {
namespace {

constexpr float kNegativeInfinity = -__builtin_huge_valf();

// P: largest score and sum of e^(score - top) of each row that a thread works on.
struct Probabilities {
    float factor;
    float top[kOwn], sum[kOwn];
    __device__ void begin() {
#pragma unroll
        for (int i = 0; i < kOwn; ++i) top[i] = kNegativeInfinity, sum[i] = 0;
    }
    static __device__ float shift(float top) { return top == kNegativeInfinity ? 0.0F : top; }
    __device__ void merge(int i, float other_top, float other_sum) {
        const float now = fmaxf(top[i], other_top), by = shift(now);
        sum[i] = sum[i] * exponential(top[i] - by) + other_sum * exponential(other_top - by);
        top[i] = now;
    }
    // Takes the first `count` columns; v becomes the scores.
    __device__ void take(int i, int count, float (&v)[4], const float*) {
        float most = kNegativeInfinity, total = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            v[j] *= factor;
            if (j < count) most = fmaxf(most, v[j]);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (j < count) total += exponential(v[j] - shift(most));
        merge(i, most, total);
    }
    __device__ void join(int i, int lane) {
        const float other_top = __shfl_xor_sync(0xFFFFFFFFu, top[i], lane),
                    other_sum = __shfl_xor_sync(0xFFFFFFFFu, sum[i], lane);
        merge(i, other_top, other_sum);
    }
    __device__ void joined(int i) { sum[i] = 1.0F / sum[i]; }
    __device__ void finish(int i, float (&v)[4], const float*) const {
#pragma unroll
        for (int j = 0; j < 4; ++j) v[j] = exponential(v[j] - top[i]) * sum[i];
    }
};

// dS: the sum of dP * P of each row.
struct ScoreGradient {
    const float* p;
    float sum[kOwn];
    __device__ void begin() {
#pragma unroll
        for (int i = 0; i < kOwn; ++i) sum[i] = 0;
    }
    __device__ void take(int i, int count, float (&v)[4], const float* weights) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (j < count) sum[i] += v[j] * weights[j];
    }
    __device__ void join(int i, int lane) { sum[i] += __shfl_xor_sync(0xFFFFFFFFu, sum[i], lane); }
    __device__ void joined(int) {}
    __device__ void finish(int i, float (&v)[4], const float* weights) const {
#pragma unroll
        for (int j = 0; j < 4; ++j) v[j] = weights[j] * (v[j] - sum[i]);
    }
};

// left right^T of 64 rows, tile after tile up to the diagonal. What a row needs of all its columns is gathered on the
// way; the thread that has written a product finishes it. The last tile stays in registers.
template <class T, class Finish>
__global__ void __launch_bounds__(kThreadsOfTile)
    scores_kernel(HeadsOf<const T> left, HeadsOf<const T> right, AttentionSizes z, bool quads, Finish finish,
                  float* out, int stride) {
    __shared__ __align__(16) TileRows a, b;
    wait_for_the_kernel_before();
    constexpr bool kWeights = std::is_same_v<Finish, ScoreGradient>;
    const int tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);  // the longest rows first
    const int head = static_cast<int>(blockIdx.y), sequence = static_cast<int>(blockIdx.z);
    const int first = tile * kSide, rows = min(kSide, z.context - first), size = z.head_size;
    const std::size_t token = static_cast<std::size_t>(sequence) * z.context;
    const T* const queries = left.row(token + first, head, size);
    const T* const keys = right.row(token, head / (z.heads / z.kv_heads), size);
    const std::size_t score = (static_cast<std::size_t>(sequence) * z.heads + head) * z.context + first;
    const bool whole_quads = stride % 4 == 0;
    const TileThread thread;
    const auto at = [&](int i, int c) {
        return (score + kOwn * thread.y + i) * stride + c * kSide + 4 * thread.x;
    };
    const auto real = [&](int i) { return kOwn * thread.y + i < rows; };
    // Columns of the thread's four that its row i has.
    const auto count = [&](int i, int c) {
        return real(i) ? first + kOwn * thread.y + i + 1 - (c * kSide + 4 * thread.x) : 0;
    };
    const auto weights = [&](int i, int c, float(&w)[4]) {
        if constexpr (kWeights) load4(finish.p + at(i, c), count(i, c), whole_quads, w);
    };
    finish.begin();
    float sums[kOwn][4];
    for (int c = 0; c <= tile; ++c) {
#pragma unroll
        for (int i = 0; i < kOwn; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) sums[i][j] = 0;
        for (int k = 0; k < size; k += kDepth) {
            __syncthreads();
            load_rows(a, queries + k, left.stride, rows, size - k, quads);
            load_rows(b, keys + static_cast<std::size_t>(c) * kSide * right.stride + k, right.stride,
                      z.context - c * kSide, size - k, quads);
            __syncthreads();
            multiply(a, b, sums);
        }
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            float w[4] = {};
            weights(i, c, w);
            finish.take(i, count(i, c), sums[i], w);
            if (c < tile && real(i)) store4(out + at(i, c), 4, whole_quads, sums[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int lane = kAcross / 2; lane > 0; lane /= 2) finish.join(i, lane);
        finish.joined(i);
    }
    const int tiles = (stride + kSide - 1) / kSide;
    for (int c = 0; c < tiles; ++c)
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            if (!real(i)) continue;
            float v[4] = {}, w[4] = {};
            if (c < tile) load4(out + at(i, c), 4, whole_quads, v);
            if (c <= tile) {
                if (c == tile)
#pragma unroll
                    for (int j = 0; j < 4; ++j) v[j] = sums[i][j];
                weights(i, c, w);
                finish.finish(i, v, w);
            }
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (j >= count(i, c)) v[j] = 0;
            store4(out + at(i, c), stride - c * kSide - 4 * thread.x, whole_quads, v);
        }
}

template <class Finish>
void run(const char* name, const HeadMatrix& left, const HeadMatrix& right, Element element,
         const AttentionSizes& z, const Finish& finish, float* out, int stride, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((z.context + kSide - 1) / kSide), static_cast<unsigned>(z.heads),
                    static_cast<unsigned>(z.sequences));
    with_type(element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch(name, scores_kernel<T, Finish>, grid, kThreadsOfTile, stream,
               HeadsOf<const T>{static_cast<const T*>(left.data), left.stride},
               HeadsOf<const T>{static_cast<const T*>(right.data), right.stride}, z,
               in_quads(left, z) && in_quads(right, z), finish, out, stride);
    });
}

}  // namespace

void attention_probabilities(const HeadMatrix& q, const HeadMatrix& k, Element element,
                             const AttentionSizes& sizes, float* p, int p_stride, cudaStream_t stream) {
    Probabilities finish{};
    finish.factor = 1.0F / std::sqrt(static_cast<float>(sizes.head_size));
    run("attention_probabilities", q, k, element, sizes, finish, p, p_stride, stream);
}

void attention_score_gradient(const float* p, int p_stride, const HeadMatrix& dout, const HeadMatrix& v,
                              Element element, const AttentionSizes& sizes, float* ds, cudaStream_t stream) {
    ScoreGradient finish{};
    finish.p = p;
    run("attention_score_gradient", dout, v, element, sizes, finish, ds, p_stride, stream);
}

}  // namespace fp8lab::cuda
