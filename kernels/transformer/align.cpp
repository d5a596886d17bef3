// The channel of block 1 that reads one token's direction (Model::align_channel()): its weights are held.
#include "core/base/error.h"
#include "core/nn/model.h"
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {
namespace {

std::size_t size(int n) { return static_cast<std::size_t>(n); }

}  // namespace

void TransformerArm::align_channel(int token) {
    if (!held_row_.empty()) return;
    if (kept_in_ != Element::f32) throw usage_error("--state bf16", "holds no channel aligned");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const int step = arm_.download().front().step;
    ArmCheckpoint now = checkpoint();
    const auto model = make_model(spec_);
    set_parameters(*model, now);
    model->align_channel(token);
    const auto parameters = model->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
        now.parameters[i].values.assign(parameters[i].value.begin(), parameters[i].value.end());
    const auto values = [&](TensorId id) { return model->values(id); };
    const Block& block = *blocks_.front();
    const auto row = values(block.gate_up.w.id).first(shape_.d);
    const auto down = values(block.down.w.id);
    held_row_.assign(row.begin(), row.end());
    for (std::size_t r = 0; r < shape_.d; ++r) held_column_.push_back(down[r * shape_.ffn]);
    held_ = Buffer<float>(2 * shape_.d);
    std::vector<float> both = held_row_;
    both.insert(both.end(), held_column_.begin(), held_column_.end());
    held_.upload(both);
    restore(now, step);
}

void TransformerArm::hold_gradient(const Linear& linear, const StepContext& step) {
    const Block& block = *blocks_.front();
    const auto element = size(bytes_of(linear.dw->element())),
               pitch = size(linear.w.shape.padded_cols) * element;
    auto* const dw = static_cast<std::byte*>(linear.dw->get());
    const auto clear = [&](std::byte* at, std::size_t width, std::size_t rows) {
        check(cudaMemset2DAsync(at, pitch, 0, width, rows, step.main), "held gradient");
    };
    if (&linear == &block.gate_up) {
        clear(dw, shape_.d * element, 1);
        clear(dw + shape_.ffn * pitch, shape_.d * element, 1);
    } else if (&linear == &block.down) {
        clear(dw, element, shape_.d);
    }
}

void TransformerArm::hold_aligned(cudaStream_t stream) {
    const Block& block = *blocks_.front();
    const auto copy = [&](const MatrixParameter& to, std::size_t row, const float* from, std::size_t width,
                          std::size_t rows) {
        const std::size_t pitch = size(to.shape.padded_cols) * sizeof(float);
        check(cudaMemcpy2DAsync(static_cast<std::byte*>(to.master.get()) + row * pitch, pitch, from,
                                width * sizeof(float), width * sizeof(float), rows, cudaMemcpyDeviceToDevice,
                                stream),
              "held weights");
    };
    copy(*block.gate_up.weight, 0, held_.get(), shape_.d, 1);
    copy(*block.gate_up.weight, shape_.ffn, held_.get(), shape_.d, 1);
    copy(*block.down.weight, 0, held_.get() + shape_.d, 1, shape_.d);
}

}  // namespace fp8lab::cuda
