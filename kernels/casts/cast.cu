// Casts whose source is a matrix in memory: batches, weights, copies.
#include "kernels/casts/tile.cuh"

namespace fp8lab::cuda {
namespace {

template <class T>
struct MatrixSource {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = kThreadRows;
    using Values = HeldAs<T>;
    using Raw = Packed<T>;
    const T* in;
    __device__ void prepare(int) {}
    __device__ Raw fetch(int r, int c, Shape s) const { return fetch8(address(r, c, s)); }
    __device__ const T* address(int r, int c, Shape s) const {
        return in + static_cast<std::size_t>(r) * s.padded_cols + c;
    }
    __device__ void values(const Raw& raw, int, int, bool, Shape, Eight& v) const { unpack(raw, v); }
};

// The batch of this step, unpadded in memory.
template <bool kEights>
struct BatchSource {
    static constexpr bool kBiasSums = false, kLoss = false;
    static constexpr int kAhead = kThreadRows;
    using Raw = Packed<float>;
    BatchRing ring;
    const float* batch = nullptr;
    float factor = 1;
    __device__ void prepare(int) {
        batch = batch_of(ring);
        if (ring.inputs) factor = ring.inputs[ring.arm->step % ring.input_slots].poison;
    }
    __device__ Raw fetch(int r, int c, Shape s) const { return fetch_unpadded<kEights>(batch, r, c, s); }
    __device__ void values(const Raw& raw, int, int, bool, Shape, Eight& v) const {
        unpack(raw, v);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] *= factor;
    }
};

}  // namespace

template <>
constexpr bool kLight<BatchSource<false>> = false;  // loads element by element
template <bool kEights>
constexpr bool kMayBeE5m2<BatchSource<kEights>> = false;

void cast_batch(BatchRing x, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    with_eights(shape,
                [&](auto eights) { launch_cast(BatchSource<eights>{x}, shape, target, pass, stream); });
}

void cast_matrix(const void* in, Element in_element, Shape shape, const CastTarget& target, Pass pass,
                 cudaStream_t stream) {
    with_type(in_element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(MatrixSource<T>{static_cast<const T*>(in)}, shape, target, pass, stream);
    });
}

}  // namespace fp8lab::cuda
