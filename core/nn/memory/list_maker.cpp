#include <cstdint>

#include "core/nn/memory/lists.h"

namespace fp8lab::cuda {
std::uint64_t elements(int rows, int cols) { return size(padded(rows)) * size(padded(cols)); }
std::uint64_t stats_blocks(int rows, int cols) {
    return size(tiles_down(padded(rows))) * size(tiles_across(padded(cols)));
}

std::uint64_t gradient_bytes(const TrainSpec& spec, const Recipe& recipe, Engine engine) {
    if (spec.state == StateType::bf16) return 2;
    if (spec.ranks.count > 1 && engine != Engine::emulated && spec.accumulate.micro_batches == 1)
        return spec.ranks.sum == "bf16" ? 2 : 4;
    if (engine != Engine::emulated && spec.accumulate.format == "bf16") return 2;
    return engine == Engine::emulated || recipe.wgrad == OutType::fp32 ? 4 : 2;
}

bool keeps_bf16_weights(const TrainSpec& spec, const Recipe& recipe, Engine engine) {
    return spec.state == StateType::bf16 ||
           (recipe.master == MasterWeights::bf16 && engine != Engine::emulated);
}

std::uint64_t moment_bytes(const TrainSpec& spec, const FormatInfo* format, int rows, int cols) {
    if (format && is_fp8(*format)) return eight_bit_moment_bytes(size(rows) * size(cols));
    return (format || spec.state == StateType::bf16 ? 2 : 4) * elements(rows, cols);
}

void ListMaker::add_scales(ScaleMode mode, int rows, int cols, int layer, TensorClass tensor, Along along) {
    const int r = padded(rows), c = padded(cols);
    const bool first = along == Along::cols;
    const std::uint64_t scales =
        sizeof(float) * size(scale_inv_count(mode, r, c) + scale_inv_count(mode, c, r));
    add(first ? ArmPart::scale_inv : ArmPart::second_scale_inv, scales, layer, tensor);
    if (mode == ScaleMode::row)
        add(first ? ArmPart::amaxes : ArmPart::second_amaxes, scales + sizeof(std::uint32_t), layer, tensor);
}

void ListMaker::add_side(const Side& side, int rows, int cols, int layer, TensorClass tensor) {
    const bool first = side.along == Along::cols;
    const ArmPart operand = first ? ArmPart::first : ArmPart::second;
    const std::uint64_t n = elements(rows, cols);
    add(first ? ArmPart::stats : ArmPart::second_stats, stats_blocks(rows, cols) * kCastSumsBytes, layer,
        tensor);
    if (side.engine == Engine::bf16) {
        if (!side.in_place) add(operand, 2 * n, layer, tensor, side.operand);
        return;
    }
    const ScaleMode mode = scale_mode_of(side.plan);
    add(operand, n, layer, tensor, side.operand);
    add_scales(mode, rows, cols, layer, tensor, side.along);
    if (mode == ScaleMode::block32 && tensor != TensorClass::w)
        add(first ? ArmPart::value : ArmPart::second_value, 4 * n, layer, tensor, side.value);
}

void ListMaker::add_shared(const TrainSpec& spec, const ModelPlan& plan, const Recipe& recipe) {
    const std::size_t casts = plan.tensors.size() + split_tensors(plan, recipe);
    add(ArmPart::states, casts * kScaleStateBytes);
    add(ArmPart::history, casts * kHistoryCapacity * sizeof(float));
    add(ArmPart::controls, scale_controls(recipe) * kScaleControlsBytes);
    add(ArmPart::steps, kStepsPerLaunch * kArmStateBytes);
    add(ArmPart::finite, sizeof(std::int32_t));
    add(ArmPart::results, kRecordSlots * kStepResultBytes);
    add(ArmPart::tensor_results, kRecordSlots * casts * kTensorResultBytes);
    if (spec.ranks.count > 1) {
        add(ArmPart::spare_state, kScaleStateBytes);
        add(ArmPart::rank_values, sizeof(float) * rank_values(casts));
    }
    if (!has_narrow_moments(recipe)) return;
    add(ArmPart::moment_counts, kMomentCountsBytes);
    add(ArmPart::moment_results, kRecordSlots * kMomentResultBytes);
}

void ListMaker::add_ranked(const TrainSpec& spec, const RankedWeight& weight, int layer) {
    const auto of = [&](ArmPart part, std::uint64_t bytes, Life life = {}) {
        add(part, bytes, layer, TensorClass::x, life);
    };
    const std::uint64_t sum = spec.ranks.sum == "bf16" ? 2 : 4, whole = elements(weight.rows, weight.cols);
    if (gradient_bytes(spec, weight.arm, weight.engine) != sum)
        of(ArmPart::sent_gradient, sum * whole, weight.gradient);
    if (!spec.ranks.sharded()) return;
    const std::uint64_t block =
        elements(static_cast<int>(block_rows(size(weight.rows), spec.ranks.count)), weight.cols);
    const Engine engine = gemm_engine(weight.engine, weight.recipe);
    const std::uint64_t sent = bytes_of(sent_of(spec.ranks, weight.recipe, engine));
    of(ArmPart::block_gradient, sum * block, weight.gradient);
    if (!keeps_bf16_weights(spec, weight.recipe, engine)) of(ArmPart::block_sent, sent * block);
    if (!gathers_operand(spec, weight.recipe, engine)) of(ArmPart::gathered, sent * whole);
}

void ListMaker::add_bucket(const TrainSpec& spec, std::uint64_t count, Life life) {
    const std::uint64_t ranks = size(spec.ranks.count);
    if (ranks > 1)
        add(ArmPart::bucket, sizeof(float) * ((count + ranks - 1) / ranks * ranks), 0, TensorClass::x, life);
}

}  // namespace fp8lab::cuda
