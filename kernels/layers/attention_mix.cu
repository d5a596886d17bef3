// The products of attention that have a row for each token and a column for each element of a head: weighted sums of
// values, keys, queries or gradients, the weights being P or dS.
#include <cmath>

#include "kernels/casts/tile.cuh"
#include "kernels/layers/attention.cuh"

namespace fp8lab::cuda {
namespace {

// kOverQueries: weights^T b, a row for each key, summed over the query heads of a group; else weights b, a row for each
// query. 64 rows x 16 kWide columns of a head.
template <class T, int kWide, bool kOverQueries>
__global__ void __launch_bounds__(kThreadsOfTile)
    mix_kernel(const float* weights, int w_stride, HeadsOf<const T> b, AttentionSizes z, bool quads,
               float factor, bool round, HeadsOf<T> out) {
    constexpr int kColumns = kAcross * kWide, kPad = kWide;
    __shared__ __align__(16) TileRows left;
    __shared__ __align__(16) float right[kDepth][kColumns + kPad];
    wait_for_the_kernel_before();
    const int group = z.heads / z.kv_heads, size = z.head_size, parts = (size + kColumns - 1) / kColumns;
    const int head = static_cast<int>(blockIdx.y) / parts,
              column = static_cast<int>(blockIdx.y) % parts * kColumns;
    const int tile =
        static_cast<int>(kOverQueries ? blockIdx.x : gridDim.x - 1 - blockIdx.x);  // the longest sums first
    const int first = tile * kSide, rows = min(kSide, z.context - first);
    const std::size_t sequence = blockIdx.z, token = sequence * z.context;
    const TileThread thread;
    float sums[kOwn][kWide] = {};
    const auto add = [&](int query_head, int b_head, int k) {
        const int depth = (kOverQueries ? z.context : first + rows) - k;
        const float* const w = weights + (sequence * z.heads + query_head) * z.context * w_stride;
        const T* const from = b.row(token + k, b_head, size) + column;
        __syncthreads();
        if constexpr (kOverQueries)
            load_columns<T>(left, w + static_cast<std::size_t>(k) * w_stride + first, w_stride, rows, depth,
                            w_stride % 4 == 0);
        else
            load_rows<T>(left, w + static_cast<std::size_t>(first) * w_stride + k, w_stride, rows, depth,
                         w_stride % 4 == 0);
        const int c = kWide * thread.x;
        if constexpr (kWide == 4) {
            float v[4];
            load4(from + static_cast<std::size_t>(thread.y) * b.stride + c,
                  thread.y < depth ? size - column - c : 0, quads, v);
            *reinterpret_cast<float4*>(&right[thread.y][c]) = make_float4(v[0], v[1], v[2], v[3]);
        } else {
            static_assert(kWide == 1);
            right[thread.y][c] =
                thread.y < depth && column + c < size
                    ? static_cast<float>(from[static_cast<std::size_t>(thread.y) * b.stride + c])
                    : 0.0F;
        }
        __syncthreads();
        multiply(left, right, sums);
    };
    if constexpr (kOverQueries) {
        for (int i = 0; i < group; ++i)
            for (int k = first; k < z.context; k += kDepth) add(head * group + i, head * group + i, k);
    } else {
        for (int k = 0; k < first + rows; k += kDepth) add(head, head / group, k);
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
        const int r = kOwn * thread.y + i;
        if (r >= rows) continue;
        T* const to = out.row(token + first + r, head, size) + column;
#pragma unroll
        for (int j = 0; j < kWide; ++j) {
            const int c = kWide * thread.x + j;
            if (column + c < size) to[c] = as_result<T>(round, factor * sums[i][j]);
        }
    }
}

template <bool kOverQueries>
void run(const char* name, const float* weights, int w_stride, const HeadMatrix& b, Element element,
         const AttentionSizes& z, float factor, bool round, const HeadMatrix& out, cudaStream_t stream) {
    with_type(element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        const auto mix = [&]<int kWide>() {
            constexpr int kColumns = kAcross * kWide;
            const int heads = kOverQueries ? z.kv_heads : z.heads,
                      parts = (z.head_size + kColumns - 1) / kColumns;
            const dim3 grid(static_cast<unsigned>((z.context + kSide - 1) / kSide),
                            static_cast<unsigned>(heads * parts), static_cast<unsigned>(z.sequences));
            launch(name, mix_kernel<T, kWide, kOverQueries>, grid, kThreadsOfTile, stream, weights, w_stride,
                   HeadsOf<const T>{static_cast<const T*>(b.data), b.stride}, z, in_quads(b, z), factor,
                   round, HeadsOf<T>{static_cast<T*>(out.data), out.stride});
        };
        if (z.head_size <= kAcross)
            mix.template operator()<1>();
        else
            mix.template operator()<4>();
    });
}

float score_factor(const AttentionSizes& sizes) {
    return 1.0F / std::sqrt(static_cast<float>(sizes.head_size));
}

}  // namespace

void attention_output(const float* p, int p_stride, const HeadMatrix& v, Element element,
                      const AttentionSizes& sizes, bool round, const HeadMatrix& out, cudaStream_t stream) {
    run<false>("attention_output", p, p_stride, v, element, sizes, 1, round, out, stream);
}
void attention_value_gradient(const float* p, int p_stride, const HeadMatrix& dout, Element element,
                              const AttentionSizes& sizes, bool round, const HeadMatrix& dv,
                              cudaStream_t stream) {
    run<true>("attention_value_gradient", p, p_stride, dout, element, sizes, 1, round, dv, stream);
}
void attention_query_gradient(const float* ds, int p_stride, const HeadMatrix& k, Element element,
                              const AttentionSizes& sizes, bool round, const HeadMatrix& dq,
                              cudaStream_t stream) {
    run<false>("attention_query_gradient", ds, p_stride, k, element, sizes, score_factor(sizes), round, dq,
               stream);
}
void attention_key_gradient(const float* ds, int p_stride, const HeadMatrix& q, Element element,
                            const AttentionSizes& sizes, bool round, const HeadMatrix& dk,
                            cudaStream_t stream) {
    run<true>("attention_key_gradient", ds, p_stride, q, element, sizes, score_factor(sizes), round, dk,
              stream);
}

}  // namespace fp8lab::cuda
