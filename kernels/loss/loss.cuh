// What the losses read, the outputs of the last layer and the targets; the mean squared error.
#pragma once

#include "kernels/casts/tile.cuh"

namespace fp8lab::cuda {

// y = h + bias and the targets of this step.
template <class T>
struct Scores {
    const T* h;
    const float* bias;
    BatchRing target;
    const LossScale* scaler;
    __device__ const float* targets() const { return batch_of(target); }
    __device__ float loss_scale() const { return scaler ? scaler->scale : 1.0F; }
};

template <class T>
Scores<T> scores_of(const LossSource& source) {
    return {static_cast<const T*>(source.h), source.bias, source.target, source.scaler};
}

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

// kEights: see fetch_unpadded().
template <class T, bool kEights>
struct SquaredErrorGradient {
    static constexpr bool kBiasSums = true, kLoss = true;
    static constexpr int kAhead = kThreadRows;
    struct Raw {
        Packed<T> h;
        Packed<float> wanted;
    };
    Scores<T> scores;
    float elements;  // rows x cols
    float inverse;   // of elements
    const float* targets = nullptr;
    float loss_scale = 1;
    Eight b = {};
    double loss = 0;
    __device__ void prepare(int c) {
        targets = scores.targets();
        loss_scale = scores.loss_scale();
        load8(scores.bias + c, b);
    }
    __device__ Raw fetch(int r, int c, Shape s) const {
        return {fetch8(scores.h + static_cast<std::size_t>(r) * s.padded_cols + c),
                fetch_unpadded<kEights>(targets, r, c, s)};
    }
    __device__ void values(const Raw& raw, int, int c, bool real, Shape s, Eight& v) {
        Eight wanted;
        unpack(raw.h, v);
        unpack(raw.wanted, wanted);
        if (!real) return;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) {
            const float error = c + j < s.cols ? v[j] + b[j] - wanted[j] : 0;
            sum += error * error;
            v[j] = 2.0F * error;
        }
        divide(v, elements, inverse);
#pragma unroll
        for (int j = 0; j < kThreadCols; ++j) v[j] *= loss_scale;
        loss += static_cast<double>(sum);
    }
};

template <bool kEights>
void cast_squared_error(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                        cudaStream_t stream) {
    const float elements = static_cast<float>(static_cast<double>(shape.rows) * shape.cols);
    with_type(source.h_element, [&](auto* type) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        launch_cast(SquaredErrorGradient<T, kEights>{scores_of<T>(source), elements, 1 / elements}, shape,
                    target, pass, stream, source.bias_partials, source.loss_partials);
    });
}

// cast_loss_gradient() of outputs whose columns do not come in eights, and of classes. Files of their own,
// since each takes half a minute to compile.
void cast_narrow_gradient(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                          cudaStream_t stream);
void cast_class_gradient(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                         cudaStream_t stream);

}  // namespace fp8lab::cuda
