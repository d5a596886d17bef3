// The gradient of the loss of a step, and the loss from its parts.
#include "kernels/loss/loss.cuh"

namespace fp8lab::cuda {
namespace {

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

}  // namespace

void cast_loss_gradient(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                        cudaStream_t stream) {
    if (source.row_stats) return cast_class_gradient(source, shape, target, pass, stream);
    if (shape.cols % kThreadCols != 0) return cast_narrow_gradient(source, shape, target, pass, stream);
    cast_squared_error<true>(source, shape, target, pass, stream);
}

void finish_loss(const double* partials, int count, double elements, const std::uint8_t* row_correct,
                 int rows, StepResult* records, ArmState* arm, cudaStream_t stream) {
    launch("finish_loss", finish_loss_kernel, dim3(1), kThreads, stream, partials, count, elements,
           row_correct, rows, records, arm);
}

}  // namespace fp8lab::cuda
