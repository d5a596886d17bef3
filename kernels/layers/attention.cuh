// What the products of attention share: tiles of 64 rows, 16 elements deep, in shared memory, and FP32 sums in registers.
#pragma once

#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {

// A block's 16 x 16 threads compute 64 rows; a thread 4 of them, and as many columns as the product is wide / 16.
constexpr int kSide = 64, kDepth = 16, kAcross = 16, kThreadsOfTile = 256, kOwn = kSide / kAcross;
using TileRows = float[kDepth][kSide + 4];  // by depth; 4: rows start in other banks

struct TileThread {
    int x = static_cast<int>(threadIdx.x) % kAcross, y = static_cast<int>(threadIdx.x) / kAcross;
};

// 4 elements, those from `count` on 0. quads: their address is a multiple of four elements.
__device__ inline void load4(const float* from, int count, bool quads, float (&v)[4]) {
    if (quads && count >= 4) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = i < count ? from[i] : 0.0F;
}
__device__ inline void load4(const __nv_bfloat16* from, int count, bool quads, float (&v)[4]) {
    if (quads && count >= 4) {
        const uint2 words = *reinterpret_cast<const uint2*>(from);
        v[0] = __uint_as_float(words.x << 16), v[1] = __uint_as_float(words.x & 0xFFFF0000u);
        v[2] = __uint_as_float(words.y << 16), v[3] = __uint_as_float(words.y & 0xFFFF0000u);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = i < count ? __bfloat162float(from[i]) : 0.0F;
}
__device__ inline void store4(float* to, int count, bool quads, const float (&v)[4]) {
    if (quads && count >= 4) {
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (i < count) to[i] = v[i];
}

// Rounds to T in shared memory: P and dS, which are in FP32, are operands of products in T.
template <class T>
__device__ inline void round_to(float (&v)[4]) {
    if constexpr (!std::is_same_v<T, float>)
#pragma unroll
        for (float& x : v) x = static_cast<float>(static_cast<T>(x));
}

// The part of a matrix whose rows are those of the tile: 4 threads a row. from: its first element; rows, depth: how many
// there are. Operand: what it is rounded to.
template <class Operand = float, class T>
__device__ inline void load_rows(TileRows& part, const T* from, std::size_t stride, int rows, int depth,
                                 bool quads) {
    const int i = static_cast<int>(threadIdx.x) / 4, k = static_cast<int>(threadIdx.x) % 4 * 4;
    float v[4];
    load4(from + i * stride + k, i < rows ? depth - k : 0, quads, v);
    round_to<Operand>(v);
#pragma unroll
    for (int j = 0; j < 4; ++j) part[k + j][i] = v[j];
}
// The same of a matrix whose columns are those of the tile, and whose rows are its depth: 16 threads a row.
template <class Operand = float, class T>
__device__ inline void load_columns(TileRows& part, const T* from, std::size_t stride, int columns, int depth,
                                    bool quads) {
    const TileThread thread;
    float v[4];
    load4(from + thread.y * stride + 4 * thread.x, thread.y < depth ? columns - 4 * thread.x : 0, quads, v);
    round_to<Operand>(v);
    *reinterpret_cast<float4*>(&part[thread.y][4 * thread.x]) = make_float4(v[0], v[1], v[2], v[3]);
}

// sums += left right^T over the depth in shared memory.
template <int kWide, int kColumns>
__device__ inline void multiply(const TileRows& left, const float (&right)[kDepth][kColumns],
                                float (&sums)[kOwn][kWide]) {
    const TileThread thread;
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
        const float4 four = *reinterpret_cast<const float4*>(&left[k][kOwn * thread.y]);
        const float a[kOwn] = {four.x, four.y, four.z, four.w};
        float b[kWide];
#pragma unroll
        for (int j = 0; j < kWide; ++j) b[j] = right[k][kWide * thread.x + j];
#pragma unroll
        for (int i = 0; i < kOwn; ++i)
#pragma unroll
            for (int j = 0; j < kWide; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
}

template <class T>
struct HeadsOf {
    T* data;
    int stride;
    __device__ T* row(std::size_t r, int head, int head_size) const {
        return data + r * stride + head * head_size;
    }
};

// Whether four elements from a multiple of four on are one aligned read, in every head and row.
inline bool in_quads(const HeadMatrix& m, const AttentionSizes& z) {
    constexpr std::uintptr_t kBytes = 16;
    return z.head_size % 4 == 0 && m.stride % 4 == 0 &&
           reinterpret_cast<std::uintptr_t>(m.data) % kBytes == 0;
}

}  // namespace fp8lab::cuda
