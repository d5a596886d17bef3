// The cast of the gradients through the gate.
#include "kernels/casts/tile.cuh"
#include "kernels/layers/gate.cuh"

namespace fp8lab::cuda {
namespace {

// The target's columns are those of the gate and then those of up: (rows, 2 ffn). Both come from the same loads.
template <class T, Limits kLimits = Limits::by_kind>
struct GateSloped {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = 2;
    using Values = HeldAs<T>;
    struct Raw {
        Packed<T> da, gate, up;
    };
    const T *da, *gate_up;
    const float* channel_scales;
    GateKind kind;
    bool round;
    int ffn;
    Eight scales = {};
    // Casts with many scales that take one half at a time (parts_cast takes both): neighbouring blocks take the same
    // columns of the two halves, and what the first reads, the second finds in the L2 cache.
    __device__ int tile_column(Shape s, unsigned x) const {
        const auto block = static_cast<int>(x), of_half = s.padded_cols / (2 * kTileCols);
        return s.padded_cols % (2 * kTileCols) == 0 ? block % 2 * of_half + block / 2 : block;
    }
    __device__ void prepare(int c) {
        if (!channel_scales) return;
        load8(channel_scales + (c < ffn ? c : c - ffn), scales);
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        const int channel = c < ffn ? c : c - ffn;
        const T* const gate = gate_up + static_cast<std::size_t>(r) * s.padded_cols + channel;
        return {fetch8(da + static_cast<std::size_t>(r) * ffn + channel), fetch8(gate), fetch8(gate + ffn)};
    }
    __device__ void values(const Raw& raw, int, int c, bool, Shape, Eight& v) const {
        Values both[1][2];
        parts(raw, both);
        Eight gate, up;
        both[0][0].widen(gate);
        both[0][1].widen(up);
        const bool of_gate = c < ffn;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] = of_gate ? gate[j] : up[j];
    }
    // The two parts: the gate and up.
    __device__ void parts(const Raw& raw, Values (&out)[1][2]) const {
        Eight da, gate, up, dgate, dup;
        unpack(raw.da, da);
        unpack(raw.gate, gate);
        unpack(raw.up, up);
        if (channel_scales)
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) da[j] *= scales[j];
        gate_gradients<T, kLimits>(kind, da, gate, up, dgate, dup);
        round_if_f32<T>(round, dgate);
        round_if_f32<T>(round, dup);
        out[0][0].hold(dgate);
        out[0][1].hold(dup);
    }
};

}  // namespace

template <class T, Limits kLimits>
constexpr bool kMayBeLow<GateSloped<T, kLimits>> = false;
// All eight are slower: 0.128 instead of 0.124 ms (one H100, CUDA 13.0, 2026-11-25, bench cast --shape 8192,4096).
template <Limits kLimits>
constexpr int kRowsAtOnce<GateSloped<__nv_bfloat16, kLimits>> = 4;
template <class T, Limits kLimits>
constexpr int kPartsOf<GateSloped<T, kLimits>> = 2;
template <Limits kLimits>
constexpr int kBlocksAtOnce<GateSloped<__nv_bfloat16, kLimits>> = 2;
template <>
constexpr bool kOnlyCopied<GateSloped<float>> = true;

void cast_gate_slope(const GateSlopeSource& source, Shape shape, const CastTarget& target, Pass pass,
                     cudaStream_t stream) {
    const auto sloped = [&]<class Source>(Source*) {
        using T = std::remove_cvref_t<decltype(*Source::da)>;
        return Source{static_cast<const T*>(source.da),
                      static_cast<const T*>(source.gate_up),
                      source.channel_scales,
                      source.kind,
                      source.round,
                      shape.padded_cols / 2};
    };
    if (source.element == Element::bf16 && source.kind == GateKind::swiglu && !target.stats_partials &&
        pass == Pass::cast) {
        using Plain = GateSloped<__nv_bfloat16, Limits::none>;
        if (launch_step_cast(sloped(static_cast<Plain*>(nullptr)), shape, target, stream)) return;
    }
    with_type(source.element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(sloped(static_cast<GateSloped<T>*>(nullptr)), shape, target, pass, stream);
    });
}

}  // namespace fp8lab::cuda
