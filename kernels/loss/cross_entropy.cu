// Cross entropy of the softmax of each row, and its gradient.
#include "kernels/loss/loss.cuh"

namespace fp8lab::cuda {
namespace {

// One warp a row.
template <class T>
__global__ void softmax_kernel(Scores<T> scores, Shape s, float2* row_stats, double* row_loss,
                               std::uint8_t* row_correct) {
    wait_for_the_kernel_before();
    const int row = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32),
              lane = threadIdx.x % 32;
    if (row >= s.rows) return;
    const T* const h = scores.h + static_cast<std::size_t>(row) * s.padded_cols;
    const float* const t = scores.targets() + static_cast<std::size_t>(row) * s.cols;
    const auto y = [&](int c) { return static_cast<float>(h[c]) + scores.bias[c]; };
    // The first of the largest, as std::max_element.
    float top = __int_as_float(0xFF800000), most = top;
    int top_at = s.cols, label = s.cols;
    for (int c = lane; c < s.cols; c += 32) {
        if (y(c) > top) top = y(c), top_at = c;
        if (t[c] > most) most = t[c], label = c;
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xFFFFFFFFu, top, offset),
                    other_most = __shfl_xor_sync(0xFFFFFFFFu, most, offset);
        const int other_at = __shfl_xor_sync(0xFFFFFFFFu, top_at, offset),
                  other_label = __shfl_xor_sync(0xFFFFFFFFu, label, offset);
        if (other > top || (other == top && other_at < top_at)) top = other, top_at = other_at;
        if (other_most > most || (other_most == most && other_label < label))
            most = other_most, label = other_label;
    }
    float sum = 0;
    for (int c = lane; c < s.cols; c += 32) sum += expf(y(c) - top);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (lane != 0) return;
    row_stats[row] = make_float2(top, sum);
    row_loss[row] = label < s.cols ? static_cast<double>(logf(sum) + top - y(label)) : 0.0;
    row_correct[row] = top_at == label;
}

template <class T>
struct ClassGradient {
    static constexpr bool kBiasSums = true, kLoss = false;
    static constexpr int kAhead = 2;  // as many loads ahead as leave registers for three blocks
    struct Raw {
        Packed<T> h;
        Packed<float> wanted;
    };
    Scores<T> scores;
    const float2* row_stats;
    float rows;
    bool eights;  // of fetch_unpadded(): one kernel for both, since no classifier here is large
    const float* targets = nullptr;
    float loss_scale = 1;
    Eight b = {};
    __device__ void prepare(int c) {
        targets = scores.targets();
        loss_scale = scores.loss_scale();
        load8(scores.bias + c, b);
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        return {fetch8(scores.h + static_cast<std::size_t>(r) * s.padded_cols + c),
                eights ? fetch_unpadded<true>(targets, r, c, s) : fetch_unpadded<false>(targets, r, c, s)};
    }
    __device__ void values(const Raw& raw, int r, int, bool real, Shape, Eight& v) const {
        Eight wanted;
        unpack(raw.h, v);
        unpack(raw.wanted, wanted);
        if (!real) return;
        const float2 stats = row_stats[r];
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j)
            v[j] = (expf(v[j] + b[j] - stats.x) / stats.y - wanted[j]) / rows * loss_scale;
    }
};

}  // namespace

void cast_class_gradient(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                         cudaStream_t stream) {
    with_type(source.h_element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(ClassGradient<T>{scores_of<T>(source), source.row_stats, static_cast<float>(shape.rows),
                                     shape.cols % kThreadCols == 0},
                    shape, target, pass, stream, source.bias_partials, source.loss_partials);
    });
}

void softmax_rows(const LossSource& source, Shape shape, float2* row_stats, double* row_loss,
                  std::uint8_t* row_correct, cudaStream_t stream) {
    constexpr int kRowsPerBlock = 8;
    const auto blocks = static_cast<unsigned>((shape.rows + kRowsPerBlock - 1) / kRowsPerBlock);
    with_type(source.h_element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch("softmax_rows", softmax_kernel<T>, dim3(blocks), kRowsPerBlock * 32, stream,
               scores_of<T>(source), shape, row_stats, row_loss, row_correct);
    });
}

}  // namespace fp8lab::cuda
