// The cast of the gated activation, and what Smooth-SwiGLU scales its channels by.
#include "kernels/casts/tile.cuh"
#include "kernels/layers/gate.cuh"

namespace fp8lab::cuda {
namespace {

template <class T, Limits kLimits = Limits::by_kind>
struct Gated {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = kThreadRows;
    struct Raw {
        Packed<T> gate, up;
    };
    const T* gate_up;
    const float* channel_scales;
    GateKind kind;
    bool round;
    Eight scales = {};
    __device__ void prepare(int c) {
        if (channel_scales) load8(channel_scales + c, scales);
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        const T* const gate = gate_up + static_cast<std::size_t>(r) * (2 * s.padded_cols) + c;
        return {fetch8(gate), fetch8(gate + s.padded_cols)};
    }
    __device__ void values(const Raw& raw, int, int, bool, Shape, Eight& v) const {
        Eight up;
        unpack(raw.gate, v);
        unpack(raw.up, up);
        activate_gate<T, kLimits>(kind, v, up);
        round_results<T>(round, v);  // before the scales of channels, not by the cast
        if (!channel_scales) return;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] *= scales[j];
    }
};

// ---- scales of channels
__global__ void clear_kernel(std::uint32_t* bits, int count) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) bits[i] = 0;
}

// A thread takes 8 columns of a strip of rows. NaN is ignored.
constexpr int kStrip = 32, kThreadsOfBlock = 128;
template <class T>
__global__ void __launch_bounds__(kThreadsOfBlock)
    channel_amax_kernel(Gated<T> source, Shape s, std::uint32_t* amax_bits) {
    wait_for_the_kernel_before();
    const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kThreadCols;
    if (c >= s.cols) return;
    const int first = static_cast<int>(blockIdx.y) * kStrip, end = min(first + kStrip, s.rows);
    Eight most = {};
#pragma unroll 4
    for (int r = first; r < end; ++r) {
        Eight v;
        source.values(source.fetch(r, c, s), r, c, true, s, v);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) most[j] = fmaxf(most[j], fabsf(v[j]));
    }
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) atomicMax(amax_bits + c + j, __float_as_uint(most[j]));
}

// core's channel_scales(): 2^-round(log2 amax).
__global__ void channel_scales_kernel(const std::uint32_t* amax_bits, int count, float* scales) {
    wait_for_the_kernel_before();
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count) return;
    const float amax = __uint_as_float(amax_bits[i]);
    constexpr double kRootOfHalf = 0.70710678118654752440;
    constexpr int kMost = 126;
    int exponent = 0;
    const float m = isfinite(amax) ? frexpf(amax, &exponent) : 0.0F;
    if (static_cast<double>(m) < kRootOfHalf) --exponent;
    scales[i] = m == 0 ? 1.0F : ldexpf(1.0F, max(-kMost, min(-exponent, kMost)));
}

__global__ void unscale_kernel(const float* m, const float* scales, Shape s, float* out) {
    wait_for_the_kernel_before();
    const int eights = s.padded_cols / kThreadCols;
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long r = i / eights;
    const int c = static_cast<int>(i % eights) * kThreadCols;
    if (r >= s.rows) return;
    const std::size_t at = static_cast<std::size_t>(r) * s.padded_cols + c;
    Eight v, factors;
    load8(m + at, v);
    load8(scales + c, factors);
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) v[j] *= 1.0F / factors[j];
    store8(out + at, v);
}

template <class T, Limits kLimits = Limits::by_kind>
Gated<T, kLimits> gated(const GateSource& s) {
    return {static_cast<const T*>(s.gate_up), s.channel_scales, s.kind, s.round};
}
dim3 blocks_of_threads(long long threads) {
    return dim3(static_cast<unsigned>((threads + kThreadsOfBlock - 1) / kThreadsOfBlock));
}

}  // namespace

template <class T, Limits kLimits>
constexpr bool kMayBeE5m2<Gated<T, kLimits>> = false;
template <class T, Limits kLimits>
constexpr bool kMayBeLow<Gated<T, kLimits>> = false;
template <>
constexpr bool kOnlyCopied<Gated<float>> = true;

void cast_gate(const GateSource& source, Shape shape, const CastTarget& target, Pass pass,
               cudaStream_t stream) {
    if (source.element == Element::bf16 && source.kind == GateKind::swiglu && !target.stats_partials &&
        pass == Pass::cast &&
        launch_step_cast(gated<__nv_bfloat16, Limits::none>(source), shape, target, stream))
        return;
    with_type(source.element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(gated<T>(source), shape, target, pass, stream);
    });
}

void channel_scales(const GateSource& source, Shape shape, std::uint32_t* amax_bits, float* scales,
                    cudaStream_t stream) {
    launch("clear_amaxes", clear_kernel, blocks_of_threads(shape.cols), kThreadsOfBlock, stream, amax_bits,
           shape.cols);
    with_type(source.element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        GateSource unscaled = source;
        unscaled.channel_scales = nullptr;
        dim3 grid = blocks_of_threads((shape.cols + kThreadCols - 1) / kThreadCols);
        grid.y = static_cast<unsigned>((shape.rows + kStrip - 1) / kStrip);
        launch("channel_amaxes", channel_amax_kernel<T>, grid, kThreadsOfBlock, stream, gated<T>(unscaled),
               shape, amax_bits);
    });
    launch("channel_scales", channel_scales_kernel, blocks_of_threads(shape.cols), kThreadsOfBlock, stream,
           amax_bits, shape.cols, scales);
}

void unscale_columns(const float* m, const float* scales, Shape shape, float* out, cudaStream_t stream) {
    const long long eights = static_cast<long long>(shape.rows) * (shape.padded_cols / kThreadCols);
    launch("unscale_columns", unscale_kernel, blocks_of_threads(eights), kThreadsOfBlock, stream, m, scales,
           shape, out);
}

}  // namespace fp8lab::cuda
