// The loss and its gradient.
#include "kernels/tile.cuh"

namespace fp8lab::cuda {
namespace {

// y = h + bias and the targets of this step.
template <class T>
struct Scores {
    const T* h;
    const float* bias;
    BatchRing target;
    __device__ const float* targets() const { return batch_of(target); }
};

// v / n with n >= 1, correctly rounded, for most values without the branches of a division: the product with
// the rounded inverse, corrected once by the exact remainder (Markstein, IBM J. Res. Dev. 34, 1990).
__device__ inline void divide(Eight& v, float n, float inverse) {
    const bool power_of_two = (__float_as_uint(n) & 0x007FFFFFu) == 0;
    if (power_of_two) {  // the inverse is exact, and the product rounds as the quotient does
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] *= inverse;
        return;
    }
    // Beyond these sizes the remainder might overflow or lose bits.
    constexpr float kSmall = 0x1p-60F, kLarge = 0x1p60F;
    bool plain = true;
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j)
        plain = plain && (v[j] == 0 || (fabsf(v[j]) >= kSmall && fabsf(v[j]) <= kLarge));
    if (!plain) {
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] /= n;
        return;
    }
#pragma unroll
    for (int j = 0; j < kThreadCols; ++j) {
        const float quotient = v[j] * inverse, remainder = fmaf(-quotient, n, v[j]);
        if (v[j] != 0) v[j] = fmaf(remainder, inverse, quotient);  // -0 stays -0
    }
}

// kEights: see fetch_unpadded(). kClasses: cross entropy, else mse.
template <class T, bool kEights, bool kClasses>
struct LossGradient {
    static constexpr bool kBiasSums = true, kLoss = !kClasses;
    // As many loads ahead as leave registers for three blocks.
    static constexpr int kAhead = kClasses ? 2 : kThreadRows;
    struct Raw {
        Packed<T> h;
        Packed<float> wanted;
    };
    Scores<T> scores;
    const float2* row_stats;
    float elements;  // rows x cols, or rows for classes
    float inverse;   // of elements
    const float* targets = nullptr;
    Eight b = {};
    double loss = 0;
    __device__ void prepare(int c) {
        targets = scores.targets();
        load8(scores.bias + c, b);
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        return {fetch8(scores.h + static_cast<std::size_t>(r) * s.padded_cols + c),
                fetch_unpadded<kEights>(targets, r, c, s)};
    }
    __device__ void values(const Raw& raw, int r, int c, bool real, Shape s, Eight& v) {
        Eight wanted;
        unpack(raw.h, v);
        unpack(raw.wanted, wanted);
        if (!real) return;
        if constexpr (kClasses) {
            const float2 stats = row_stats[r];
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j)
                v[j] = (expf(v[j] + b[j] - stats.x) / stats.y - wanted[j]) / elements;
        } else {
            float sum = 0;
#pragma unroll
            for (int j = 0; j < kThreadCols; ++j) {
                const float error = c + j < s.cols ? v[j] + b[j] - wanted[j] : 0;
                sum += error * error;
                v[j] = 2.0F * error;
            }
            divide(v, elements, inverse);
            loss += static_cast<double>(sum);
        }
    }
};

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

__global__ void finish_loss_kernel(const double* partials, int count, double elements,
                                   const std::uint8_t* row_correct, int rows, StepResult* records,
                                   ArmState* arm) {
    wait_for_the_kernel_before();
    __shared__ double shared[kThreads / 32];
    double sum = 0, correct = 0;
    for (int i = threadIdx.x; i < count; i += kThreads) sum += partials[i];
    if (row_correct)
        for (int i = threadIdx.x; i < rows; i += kThreads) correct += row_correct[i];
    sum = block_sum(sum, shared);
    correct = block_sum(correct, shared);
    if (threadIdx.x != 0) return;
    const double loss = sum / elements;
    if (!isfinite(loss)) arm->alive = 0;
    StepResult& record = records[arm->step % kRecordSlots];
    record.loss = loss;
    record.correct = correct;
    record.step = arm->step;
}

template <class T>
Scores<T> scores_of(const LossSource& source) {
    return {static_cast<const T*>(source.h), source.bias, source.target};
}

}  // namespace

void cast_loss_gradient(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                        cudaStream_t stream) {
    const float elements = static_cast<float>(
        source.row_stats ? static_cast<double>(shape.rows) : static_cast<double>(shape.rows) * shape.cols);
    with_type(source.h_element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        with_eights(shape, [&](auto eights) {
            const auto run = [&](auto classes) {
                launch_cast(LossGradient<T, eights, classes>{scores_of<T>(source), source.row_stats, elements,
                                                             1 / elements},
                            shape, target, pass, stream, source.bias_partials, source.loss_partials);
            };
            if (source.row_stats)
                run(std::true_type());
            else
                run(std::false_type());
        });
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

void finish_loss(const double* partials, int count, double elements, const std::uint8_t* row_correct,
                 int rows, StepResult* records, ArmState* arm, cudaStream_t stream) {
    launch("finish_loss", finish_loss_kernel, dim3(1), kThreads, stream, partials, count, elements,
           row_correct, rows, records, arm);
}

}  // namespace fp8lab::cuda
