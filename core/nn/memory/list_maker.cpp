#include <cstdint>

#include "core/nn/memory/lists.h"

namespace fp8lab::cuda {
std::size_t elements(int rows, int cols) { return size(padded(rows)) * size(padded(cols)); }
std::size_t stats_blocks(int rows, int cols) {
    return size(tiles_down(padded(rows))) * size(tiles_across(padded(cols)));
}

std::size_t gradient_bytes(const TrainSpec& spec, const Recipe& recipe, Engine engine) {
    if (spec.state == StateType::bf16) return 2;
    return engine == Engine::emulated || recipe.wgrad == OutType::fp32 ? 4 : 2;
}

void ListMaker::add_scales(ScaleMode mode, int rows, int cols, int layer, TensorClass tensor) {
    const int r = padded(rows), c = padded(cols);
    const std::size_t scales =
        sizeof(float) * size(scale_inv_count(mode, r, c) + scale_inv_count(mode, c, r));
    add(ArmPart::scale_inv, scales, layer, tensor);
    if (mode == ScaleMode::row) add(ArmPart::amaxes, scales + sizeof(std::uint32_t), layer, tensor);
}

void ListMaker::add_shared(std::size_t tensors) {
    add(ArmPart::states, tensors * kScaleStateBytes);
    add(ArmPart::history, tensors * kHistoryCapacity * sizeof(float));
    add(ArmPart::controls, kScaleControlsBytes);
    add(ArmPart::steps, kStepsPerLaunch * kArmStateBytes);
    add(ArmPart::finite, sizeof(std::int32_t));
    add(ArmPart::results, kRecordSlots * kStepResultBytes);
    add(ArmPart::tensor_results, kRecordSlots * tensors * kTensorResultBytes);
}

}  // namespace fp8lab::cuda
