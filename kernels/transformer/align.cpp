// The channel of block 1 that reads one token's direction (Model::align_channel()): its weights are held.
#include "core/base/error.h"
#include "core/nn/model.h"
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {
void TransformerArm::align_channel(int token) {
    if (aligned()) return;
    if (kept_in_ != Element::f32) throw usage_error("--state bf16", "holds no channel aligned");
    if (spec_.ranks.sharded()) throw usage_error("--shard zero1", "holds no channel aligned");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const int step = arm_.download().front().step;
    ArmCheckpoint now = checkpoint();
    const auto model = make_model(spec_);
    set_parameters(*model, now);
    model->align_channel(token);
    const auto parameters = model->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
        now.parameters[i].values.assign(parameters[i].value.begin(), parameters[i].value.end());
    const Block& block = *blocks_.front();
    const auto row = model->values(block.gate_up.w.id).first(shape_.d);
    const auto down = model->values(block.down.w.id);
    std::vector<float> weights(row.begin(), row.end());
    for (std::size_t r = 0; r < shape_.d; ++r) weights.push_back(down[r * shape_.ffn]);
    hold(weights);
    restore(now, step);
}

std::vector<float> TransformerArm::held() const { return held_.download(); }

void TransformerArm::hold(const std::vector<float>& weights) {
    if (weights.empty()) return;
    held_ = Buffer<float>(std::span<const float>(weights));
}

void TransformerArm::hold_gradient(const Linear& linear, const StepContext& step) {
    const Block& block = *blocks_.front();
    ChannelPlace at{.ffn = static_cast<int>(shape_.ffn), .d = static_cast<int>(shape_.d)};
    if (&linear == &block.gate_up) {
        at.gate_up = linear.dw->get();
        at.gate_up_stride = linear.w.shape.padded_cols;
    } else if (&linear == &block.down) {
        at.down = linear.dw->get();
        at.down_stride = linear.w.shape.padded_cols;
    } else {
        return;
    }
    clear_channel(at, linear.dw->element(), step.main);
}

void TransformerArm::hold_aligned(cudaStream_t stream) {
    const Block& block = *blocks_.front();
    restore_channel({block.gate_up.weight->master.get(), block.down.weight->master.get(),
                     block.gate_up.w.shape.padded_cols, block.down.w.shape.padded_cols,
                     static_cast<int>(shape_.ffn), static_cast<int>(shape_.d)},
                    held_.get(), stream);
}

}  // namespace fp8lab::cuda
