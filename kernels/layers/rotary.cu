// Rotary embedding in place, and the cast of what is rotated back.
#include <string>

#include "kernels/casts/tile.cuh"
#include "kernels/layers/parts.cuh"

namespace fp8lab::cuda {
namespace {

// ---- in place: a thread turns kWidth pairs of kHeads heads by the same angles.
constexpr int kHeads = 8, kThreadsOfBlock = 128;

// kWidth elements as they lie in memory.
template <class T, int kWidth>
using Lying = std::conditional_t<kWidth == kThreadCols, Packed<T>, T>;
template <class T, int kWidth>
__device__ inline Lying<T, kWidth> fetch(const T* from) {
    if constexpr (kWidth == kThreadCols)
        return fetch8(from);
    else
        return *from;
}
template <class T, int kWidth>
__device__ inline void widen(const Lying<T, kWidth>& from, float (&v)[kWidth]) {
    if constexpr (kWidth == kThreadCols)
        unpack(from, v);
    else
        v[0] = static_cast<float>(from);
}
template <class T, int kWidth>
__device__ inline void store(T* to, bool round, float (&v)[kWidth]) {
    if constexpr (kWidth == kThreadCols) {
        round_results<T>(round, v);
        store8(to, v);
    } else {
        *to = as_result<T>(round, v[0]);
    }
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreadsOfBlock)
    rotate_heads_kernel(T* m, Shape s, Rotary rotary, float sign_of_sine, bool round) {
    wait_for_the_kernel_before();
    const int half = rotary.head_size / 2, units = half / kWidth, heads = rotary.cols / rotary.head_size;
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int r = static_cast<int>(thread / units), i = static_cast<int>(thread % units) * kWidth;
    if (r >= s.rows) return;
    const std::size_t angle = static_cast<std::size_t>(r % rotary.context) * half + i;
    const int head = static_cast<int>(blockIdx.y) * kHeads;
    T* const row = m + static_cast<std::size_t>(r) * s.padded_cols + head * rotary.head_size + i;
    Lying<T, kWidth> low[kHeads], high[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
        if (head + h >= heads) break;
        low[h] = fetch<T, kWidth>(row + h * rotary.head_size);
        high[h] = fetch<T, kWidth>(row + h * rotary.head_size + half);
    }
    float cos[kWidth], sin[kWidth];
    widen<float, kWidth>(fetch<float, kWidth>(rotary.cos + angle), cos);
    widen<float, kWidth>(fetch<float, kWidth>(rotary.sin + angle), sin);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sin[j] *= sign_of_sine;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
        if (head + h >= heads) break;
        float a[kWidth], b[kWidth], turned_a[kWidth], turned_b[kWidth];
        widen<T, kWidth>(low[h], a);
        widen<T, kWidth>(high[h], b);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            turned_a[j] = a[j] * cos[j] - b[j] * sin[j];
            turned_b[j] = a[j] * sin[j] + b[j] * cos[j];
        }
        store(row + h * rotary.head_size, round, turned_a);
        store(row + h * rotary.head_size + half, round, turned_b);
    }
}

template <class T, int kWidth>
void run(T* m, Shape s, const Rotary& rotary, Turn turn, bool round, cudaStream_t stream) {
    const long long threads = static_cast<long long>(s.rows) * (rotary.head_size / 2 / kWidth);
    const int heads = rotary.cols / rotary.head_size;
    const dim3 grid(static_cast<unsigned>((threads + kThreadsOfBlock - 1) / kThreadsOfBlock),
                    static_cast<unsigned>((heads + kHeads - 1) / kHeads));
    launch("rotate_heads", rotate_heads_kernel<T, kWidth>, grid, kThreadsOfBlock, stream, m, s, rotary,
           turn == Turn::back ? -1.0F : 1.0F, round);
}

// ---- the cast
__device__ inline Packed<float> packed(const float (&v)[kThreadCols]) {
    return {make_float4(v[0], v[1], v[2], v[3]), make_float4(v[4], v[5], v[6], v[7])};
}
// By the negative angle the low half of a head becomes low cos + high sin, the high one high cos - low sin: mine cos +
// other sin, with the sign of the sine. Element by element, where heads are no multiple of 16 wide, in FP32 only: it
// takes as long to compile as everything else of this file.
template <class T>
struct RotatedBack {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = 2;
    using Values = HeldAs<T>;
    struct Raw {
        Packed<T> mine, other;
        Packed<float> cos, sin;
    };
    const T* m;
    Rotary rotary;
    bool round, eights;
    // With eights, of the thread's columns: whether they are turned, where the other half is and the angle's index.
    bool turned = false, low = true;
    int other = 0, angle = 0;
    __device__ void prepare(int c) {
        turned = c < rotary.cols;
        if (!eights) return;
        const int half = rotary.head_size / 2, at = c % rotary.head_size;
        low = at < half;
        other = low ? half : -half;
        angle = low ? at : at - half;
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        const T* const row = m + static_cast<std::size_t>(r) * s.padded_cols;
        Raw raw{fetch8(row + c), {}, {}, {}};
        if (!turned) return raw;
        const std::size_t first = static_cast<std::size_t>(r % rotary.context) * (rotary.head_size / 2);
        if (eights || !std::is_same_v<T, float>) {
            raw.other = fetch8(row + c + other);
            raw.cos = fetch8(rotary.cos + first + angle);
            raw.sin = fetch8(rotary.sin + first + angle);
            return raw;
        }
        if constexpr (std::is_same_v<T, float>) {
            Eight others, cos, sin;
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                const int half = rotary.head_size / 2, at = (c + j) % rotary.head_size;
                const bool is_low = at < half, is_turned = c + j < rotary.cols;
                others[j] = is_turned ? row[is_low ? c + j + half : c + j - half] : 0.0F;
                cos[j] = is_turned ? rotary.cos[first + (is_low ? at : at - half)] : 1.0F;
                sin[j] = is_turned ? rotary.sin[first + (is_low ? at : at - half)] : 0.0F;
                // Added to what is not turned: -0, which changes nothing.
                if (!is_low || !is_turned) sin[j] = -sin[j];
            }
            raw.other = packed(others);
            raw.cos = packed(cos);
            raw.sin = packed(sin);
        }
        return raw;
    }
    __device__ void values(const Raw& raw, int, int, bool, Shape, Eight& v) const {
        unpack(raw.mine, v);
        if (turned) {
            Eight others, cos, sin;
            unpack(raw.other, others);
            unpack(raw.cos, cos);
            unpack(raw.sin, sin);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                const float product = others[j] * sin[j];
                v[j] = v[j] * cos[j] + (low ? product : -product);
            }
        }
        round_if_f32<T>(round, v);
    }
};

// q and k of the same in BF16, where q, k and v are equally wide: the same columns of q and of k turn by the same angles. Heads
// end where tiles do, so that both halves of a head are in one warp. Threads take two rows at a time: one with a low half turns
// both halves of the first row, one with a high half those of the second row, and then they exchange halves. So each pair of
// angles is loaded once. 0.152 ms instead of 0.165 where every thread loads the angles of both rows, with 1x128 scales (one
// H100, CUDA 13.0, 2026-11-25, bench cast --shape 8192,4096).
struct RotatedBackPair {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kTurned = 2, kRows = 2;
    using Values = HeldBf16;
    struct Raw {
        Packed<__nv_bfloat16> mine[kTurned], other[kTurned];  // halves of the row that the thread turns
        Packed<float> cos, sin;
    };
    const __nv_bfloat16* m;
    Rotary rotary;
    bool low = true;
    int other = 0, angle = 0;
    __device__ void prepare(int c) {
        const int half = rotary.head_size / 2, at = c % rotary.head_size;
        low = at < half;
        other = low ? half : -half;
        angle = low ? at : at - half;
    }
    __device__ Raw fetch(int r, int next_r, int c, Shape s) const {
        const int row = low ? r : next_r;
        const __nv_bfloat16* const q = m + static_cast<std::size_t>(row) * s.padded_cols + c;
        const __nv_bfloat16* const k = q + rotary.cols / kTurned;
        const std::size_t at =
            static_cast<std::size_t>(row % rotary.context) * (rotary.head_size / 2) + angle;
        return {{fetch8(q), fetch8(k)},
                {fetch8(q + other), fetch8(k + other)},
                fetch8(rotary.cos + at),
                fetch8(rotary.sin + at)};
    }
    template <int kParts>
    __device__ void parts(const Raw& raw, HeldBf16 (&out)[kRows][kParts]) const {
        Eight cos, sin;
        unpack(raw.cos, cos);
        unpack(raw.sin, sin);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            if (!low) sin[j] = -sin[j];
#pragma unroll
        for (int part = 0; part < kTurned; ++part) {
            Eight mine, others, kept, given;
            unpack(raw.mine[part], mine);
            unpack(raw.other[part], others);
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                kept[j] = mine[j] * cos[j] + others[j] * sin[j];
                given[j] = others[j] * cos[j] - mine[j] * sin[j];
            }
            HeldBf16 own, partners;
            own.hold(kept);
            partners.hold(given);
#pragma unroll
            for (std::uint32_t& word : partners.words)  // each gives the other what it has for it
                word = __shfl_xor_sync(0xFFFFFFFFu, word, rotary.head_size / 2 / kThreadCols);
            out[0][part] = low ? own : partners;
            out[1][part] = low ? partners : own;
        }
    }
    // v, which is not rotated, for casts with many scales.
    struct Rest {
        static constexpr bool kBiasSums = false, kLoss = false;
        using Values = HeldBf16;
        using Raw = Packed<__nv_bfloat16>;
        const __nv_bfloat16* m;
        __device__ Raw fetch(int r, int c, Shape s) const {
            return fetch8(m + static_cast<std::size_t>(r) * s.padded_cols + c);
        }
    };
    __device__ Rest rest() const { return {m}; }
};

// The same with v, for casts with one scale.
struct RotatedBackThirds : RotatedBackPair {
    static constexpr int kAhead = 1;
    struct Raw : RotatedBackPair::Raw {
        Packed<__nv_bfloat16> v[kRows];
    };
    __device__ Raw fetch(int r, int next_r, int c, Shape s) const {
        const __nv_bfloat16* const v = m + rotary.cols + c;
        return {RotatedBackPair::fetch(r, next_r, c, s),
                {fetch8(v + static_cast<std::size_t>(r) * s.padded_cols),
                 fetch8(v + static_cast<std::size_t>(next_r) * s.padded_cols)}};
    }
    __device__ void parts(const Raw& raw, HeldBf16 (&out)[kRows][kTurned + 1]) const {
        RotatedBackPair::parts(raw, out);
#pragma unroll
        for (int row = 0; row < kRows; ++row) out[row][kTurned] = HeldBf16(raw.v[row]);
    }
};

}  // namespace

template <class T>
constexpr bool kMayBeLow<RotatedBack<T>> = false;
template <>
constexpr bool kOnlyCopied<RotatedBack<float>> = true;
template <>
constexpr int kPartsOf<RotatedBackPair> = RotatedBackPair::kTurned;
template <>
constexpr int kRowsTogether<RotatedBackPair> = RotatedBackPair::kRows;
template <>
constexpr bool kMayBeLow<RotatedBackThirds> = false;
template <>
constexpr bool kManyScales<RotatedBackThirds> = false;
template <>
constexpr int kRowsTogether<RotatedBackThirds> = RotatedBackThirds::kRows;
template <>
constexpr int kPartsOf<RotatedBackThirds> = RotatedBackThirds::kTurned + 1;
template <>
constexpr int kBlocksAtOnce<RotatedBackThirds> = 2;

void rotate_heads(void* m, Element element, Shape shape, const Rotary& rotary, Turn turn, bool round,
                  cudaStream_t stream) {
    with_type(element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        if (rotates_in_eights(rotary.head_size))
            run<T, kThreadCols>(static_cast<T*>(m), shape, rotary, turn, round, stream);
        else
            run<T, 1>(static_cast<T*>(m), shape, rotary, turn, round, stream);
    });
}

void cast_rotated_back(const RotatedBackSource& source, Shape shape, const CastTarget& target, Pass pass,
                       cudaStream_t stream) {
    const bool eights = rotates_in_eights(source.rotary.head_size);
    if (!eights && source.element != Element::f32)
        throw Error(
            ErrorKind::backend, "cast of a rotated matrix",
            "heads are a multiple of 16 wide in BF16, not " + std::to_string(source.rotary.head_size));
    // As many heads of k as of q.
    if (source.element == Element::bf16 && shape.cols == shape.padded_cols &&
        2 * shape.cols == 3 * source.rotary.cols && source.rotary.cols % (2 * source.rotary.head_size) == 0 &&
        kTileCols % source.rotary.head_size == 0) {
        const RotatedBackPair pair{static_cast<const __nv_bfloat16*>(source.m), source.rotary};
        if (target.scaling == ScaleMode::tensor && !target.beside)
            return launch_cast(RotatedBackThirds{pair}, shape, target, pass, stream);
        if (target.scaling == ScaleMode::block128 && !target.stats_partials) {
            const TileTarget to = tile_target(target);
            if (target.element == Element::e4m3
                    ? launch_parts<RotatedBackPair, ToFp8<__NV_E4M3>>(pair, shape, to, target.vectors, stream)
                    : launch_parts<RotatedBackPair, ToFp8<__NV_E5M2>>(pair, shape, to, target.vectors,
                                                                      stream))
                return;
        }
    }
    with_type(source.element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(RotatedBack<T>{static_cast<const T*>(source.m), source.rotary, source.round, eights},
                    shape, target, pass, stream);
    });
}

}  // namespace fp8lab::cuda
