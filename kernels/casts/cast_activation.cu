// Casts whose source is computed from the output of a GEMM: activations, and gradients through them.
#include "kernels/casts/activation.cuh"
#include "kernels/casts/tile.cuh"

namespace fp8lab::cuda {
namespace {

// Scales the bias to the part that activate() and slope() take.
template <bool kFast>
__device__ void take_bias(ActivationKind kind, Eight& b) {
    if constexpr (kFast)
        if (kind == ActivationKind::gelu)
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) b[j] *= kTaken<true, ActivationKind::gelu>;
}

template <class T, bool kFast>
struct Activated {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = kThreadRows;
    using Raw = Packed<T>;
    const T* h;
    const float* bias;
    ActivationKind kind;
    Eight b = {};
    __device__ void prepare(int c) { load8(bias + c, b); }
    __device__ void ready() { take_bias<kFast>(kind, b); }
    __device__ Raw fetch(int r, int c, Shape s) const { return fetch8(address(r, c, s)); }
    __device__ const T* address(int r, int c, Shape s) const {
        return h + static_cast<std::size_t>(r) * s.padded_cols + c;
    }
    __device__ void values(const Raw& raw, int, int, bool, Shape, Eight& v) const {
        unpack(raw, v);
        with_kind(kind, [&]<ActivationKind kKind>() {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j)
                v[j] = activate<kFast, kKind>(fmaf(v[j], kTaken<kFast, kKind>, b[j]));
        });
    }
};

template <class T, bool kFast>
struct Sloped {
    static constexpr bool kBiasSums = true, kLoss = false;
    static constexpr int kAhead = kThreadRows;
    struct Raw {
        Packed<T> da, h;
    };
    const T *da, *h;
    const float* bias;
    ActivationKind kind;
    Eight b = {};
    __device__ void prepare(int c) { load8(bias + c, b); }
    __device__ void ready() { take_bias<kFast>(kind, b); }
    __device__ Raw fetch(int r, int c, Shape s) const {
        const std::size_t at = static_cast<std::size_t>(r) * s.padded_cols + c;
        return {fetch8(da + at), fetch8(h + at)};
    }
    __device__ void values(const Raw& raw, int, int, bool, Shape, Eight& v) const {
        Eight z;
        unpack(raw.da, v);
        unpack(raw.h, z);
        with_kind(kind, [&]<ActivationKind kKind>() {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j)
                v[j] *= slope<kFast, kKind>(fmaf(z[j], kTaken<kFast, kKind>, b[j]));
        });
    }
};

}  // namespace

template <class T, bool kFast>
constexpr bool kMayBeE5m2<Activated<T, kFast>> = false;

// The exact ones are for emulation.
template <class T>
constexpr bool kManyScales<Activated<T, false>> = false;
template <class T>
constexpr bool kManyScales<Sloped<T, false>> = false;

namespace {

template <class T, bool kFast>
void run(const ActivationSource& s, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    launch_cast(Activated<T, kFast>{static_cast<const T*>(s.h), s.bias, s.kind}, shape, target, pass, stream);
}
template <class T, bool kFast>
void run(const SlopeSource& s, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    launch_cast(Sloped<T, kFast>{static_cast<const T*>(s.da), static_cast<const T*>(s.h), s.bias, s.kind},
                shape, target, pass, stream, s.bias_partials);
}
template <class Source>
void choose(const Source& source, Element element, Shape shape, const CastTarget& target, Pass pass,
            cudaStream_t stream) {
    with_type(element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        if (source.fast)
            run<T, true>(source, shape, target, pass, stream);
        else
            run<T, false>(source, shape, target, pass, stream);
    });
}

}  // namespace

void cast_activation(const ActivationSource& source, Shape shape, const CastTarget& target, Pass pass,
                     cudaStream_t stream) {
    choose(source, source.h_element, shape, target, pass, stream);
}
void cast_slope(const SlopeSource& source, Shape shape, const CastTarget& target, Pass pass,
                cudaStream_t stream) {
    choose(source, source.element, shape, target, pass, stream);
}

}  // namespace fp8lab::cuda
