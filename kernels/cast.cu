// Casts whose source is a matrix in memory: batches, weights, copies.
#include "kernels/tile.cuh"

namespace fp8lab::cuda {
namespace {

template <class T>
struct MatrixSource {
    static constexpr bool kBiasSums = false, kLoss = false;
    const T* in;
    __device__ void prepare(int) {}
    __device__ void load(int r, int c, Shape s, Eight& v) const {
        load8(in + static_cast<std::size_t>(r) * s.padded_cols + c, v);
    }
};

// The batch of this step, unpadded in memory.
struct BatchSource {
    static constexpr bool kBiasSums = false, kLoss = false;
    BatchRing ring;
    const float* batch = nullptr;
    float factor = 1;
    __device__ void prepare(int) {
        const int step = ring.arm->step;
        batch = ring.base + step % ring.slots * ring.stride;
        if (ring.inputs) factor = ring.inputs[step % ring.input_slots].poison;
    }
    __device__ void load(int r, int c, Shape s, Eight& v) const {
        const float* const p = batch + static_cast<std::size_t>(r) * s.cols + c;
        if (s.cols % 4 == 0 && c + kThreadCols <= s.cols) {
            load8(p, v);
        } else {
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) v[j] = c + j < s.cols ? p[j] : 0;
        }
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] *= factor;
    }
};

}  // namespace

void cast_batch(BatchRing x, Shape shape, const CastTarget& target, Pass pass, cudaStream_t stream) {
    launch_cast(BatchSource{x}, shape, target, pass, stream);
}

void cast_matrix(const void* in, Element in_element, Shape shape, const CastTarget& target, Pass pass,
                 cudaStream_t stream) {
    with_type(in_element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(MatrixSource<T>{static_cast<const T*>(in)}, shape, target, pass, stream);
    });
}

}  // namespace fp8lab::cuda
