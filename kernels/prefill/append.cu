// New K and V into the cache.
#include "kernels/layers/parts.cuh"
#include "kernels/prefill/launch.h"

namespace fp8lab::cuda {
namespace {

using Bf16 = __nv_bfloat16;
constexpr int kAppendThreads = 256;

__device__ inline void put8(Bf16* to, const Eight& v, float) { store8(to, v); }
__device__ inline void put8(std::uint8_t* to, const Eight& v, float scale) {
    *reinterpret_cast<uint2*>(to) = {
        fp8_quad<__NV_E4M3>(v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale),
        fp8_quad<__NV_E4M3>(v[4] * scale, v[5] * scale, v[6] * scale, v[7] * scale)};
}

// A thread: 8 elements of the first half of a head and the 8 that are rotated with them, of K and of V.
template <class T, class In>
__global__ void __launch_bounds__(kAppendThreads) append_kernel(const ServedAttention a, bool rotated) {
    wait_for_the_kernel_before();
    const int half = a.head_size / 2, eights = half / kThreadCols, per_row = a.kv_heads * eights;
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kAppendThreads + threadIdx.x,
                      row = i / static_cast<std::size_t>(per_row);
    if (row >= static_cast<std::size_t>(a.batch) * static_cast<std::size_t>(a.tokens)) return;
    const int in_row = static_cast<int>(i % static_cast<std::size_t>(per_row)), kv = in_row / eights,
              at = in_row % eights * kThreadCols, token = static_cast<int>(row) % a.tokens,
              sequence = static_cast<int>(row) / a.tokens, position = *a.length + token;
    if (position >= a.capacity) return;
    const In* const k = static_cast<const In*>(a.qkv) +
                        row * static_cast<std::size_t>((a.heads + 2 * a.kv_heads) * a.head_size) +
                        (a.heads + kv) * a.head_size + at;
    const In* const v = k + a.kv_heads * a.head_size;
    const Packed<In> raw[4] = {fetch8(k), fetch8(k + half), fetch8(v), fetch8(v + half)};
    Eight low, high;
    unpack(raw[0], low);
    unpack(raw[1], high);
    if (!rotated) {
        Eight cos, sin;
        const std::size_t angle = static_cast<std::size_t>(position) * static_cast<std::size_t>(half) +
                                  static_cast<std::size_t>(at);
        load8(a.cos + angle, cos);
        load8(a.sin + angle, sin);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) {
            const float l = low[j], h = high[j];
            low[j] = l * cos[j] - h * sin[j];
            high[j] = h * cos[j] + l * sin[j];
        }
    }
    const std::size_t to =
        (static_cast<std::size_t>(sequence * a.kv_heads + kv) * static_cast<std::size_t>(a.capacity) +
         static_cast<std::size_t>(position)) *
            static_cast<std::size_t>(a.head_size) +
        static_cast<std::size_t>(at);
    const bool wide = sizeof(T) == sizeof(Bf16);
    const float k_scale = wide ? 1 : 1 / a.k_scales[kv], v_scale = wide ? 1 : 1 / a.v_scales[kv];
    put8(static_cast<T*>(a.k) + to, low, k_scale);
    put8(static_cast<T*>(a.k) + to + half, high, k_scale);
    unpack(raw[2], low);
    unpack(raw[3], high);
    put8(static_cast<T*>(a.v) + to, low, v_scale);
    put8(static_cast<T*>(a.v) + to + half, high, v_scale);
}

}  // namespace

void append_heads(const ServedAttention& a, bool rotated, cudaStream_t stream) {
    const std::size_t threads = static_cast<std::size_t>(a.batch) * static_cast<std::size_t>(a.tokens) *
                                static_cast<std::size_t>(a.kv_heads * a.head_size / 2 / kThreadCols);
    const dim3 blocks(static_cast<unsigned>((threads + kAppendThreads - 1) / kAppendThreads));
    const auto run = [&](auto* kernel) {
        launch("append_heads", kernel, blocks, kAppendThreads, stream, a, rotated);
    };
    const bool wide = a.cache == PassCache::bf16;
    if (a.element == Element::f32)
        run(wide ? append_kernel<Bf16, float> : append_kernel<std::uint8_t, float>);
    else
        run(wide ? append_kernel<Bf16, Bf16> : append_kernel<std::uint8_t, Bf16>);
}

}  // namespace fp8lab::cuda
