// The allocations of kernels/mlp/arm.cpp.
#include <algorithm>
#include <tuple>
#include <utility>

#include "core/nn/memory/lists.h"
#include "core/nn/model.h"
#include "core/scaling/side_cast.h"

namespace fp8lab::cuda {
namespace {

class MlpList : public ListMaker {
  public:
    MlpList(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch);

  private:
    void add_tensor(TensorClass tensor, int layer, int rows, int cols);
    void add_layer(int layer, int in, int out);
    void add_arm();
    int layers() const { return static_cast<int>(spec_.layers.size()) - 1; }
    Recipe recipe_of(int layer) const { return recipe_of_layer(recipe_, std::max(layer, 1), layers()); }
    void add_sides(TensorClass tensor, int layer, int rows, int cols);

    const TrainSpec& spec_;
    const Recipe& recipe_;
    Engine engine_;
    int parts_;  // micro-batches of a step
    int batch_;  // of one of them
};

MlpList::MlpList(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch)
    : spec_(spec),
      recipe_(recipe),
      engine_(engine),
      parts_(spec.accumulate.micro_batches),
      batch_((batch + parts_ - 1) / parts_) {
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)
        add_layer(static_cast<int>(l) + 1, spec.layers[l], spec.layers[l + 1]);
    if (engine != Engine::emulated &&
        steps_per_launch(spec, batch) > 1) {  // steps overlap: two inputs at once
        add_tensor(TensorClass::x, 0, batch, spec.layers.front());
        const auto one_scale = [&](Gemm reader) {
            return scale_mode_of(cast_plan(recipe, TensorClass::x, reader)) == ScaleMode::tensor;
        };
        if (one_scale(Gemm::fprop)) add(ArmPart::next_scale_inv, sizeof(float));
        if (is_split(recipe, TensorClass::x) && one_scale(Gemm::wgrad))
            add(ArmPart::second_next_scale_inv, sizeof(float));
    }
    add_arm();
}

void MlpList::add_sides(TensorClass tensor, int layer, int rows, int cols) {
    const Recipe recipe = recipe_of(layer);
    for (const Along along : {Along::cols, Along::rows})
        add_side({.engine = gemm_engine(engine_, recipe_of_gemm(recipe, gemm_of(tensor, along))),
                  .plan = side_cast(recipe, tensor, along).plan,
                  .along = along},
                 rows, cols, layer, tensor);
}

void MlpList::add_tensor(TensorClass tensor, int layer, int rows, int cols) {
    const auto of = [&](ArmPart part, std::uint64_t bytes) { add(part, bytes, layer, tensor); };
    const Recipe recipe = recipe_of(layer);
    const std::uint64_t n = elements(rows, cols);
    // There is no dgrad into the network's input, so no GEMM reads w1 along its rows or dy1 along its columns.
    const bool both = layer > 1 || tensor == TensorClass::x;
    if (both && is_split(recipe, tensor)) return add_sides(tensor, layer, rows, cols);
    const Along along = both || tensor == TensorClass::w ? Along::cols : Along::rows;
    const CastPlan plan = side_cast(recipe, tensor, along).plan;
    const Engine engine = gemm_engine(engine_, recipe_of_gemm(recipe, gemm_of(tensor, along)));
    if (engine == Engine::emulated) {
        const bool cast = plan.format->name != "fp32";
        if (tensor != TensorClass::w) of(ArmPart::value, 4 * n);
        if (cast) of(ArmPart::first, 4 * n);
        // 16x16 blocks are the same along both dimensions: one cast.
        const bool one_cast = plan.granularity == Granularity::tensor ||
                              (plan.granularity == Granularity::block16 && plan.square_blocks);
        if (cast && both && !one_cast) of(ArmPart::second, 4 * n);
    } else if (engine == Engine::bf16) {
        // Weights that are kept in BF16 are read where they are.
        if (tensor != TensorClass::w || !keeps_bf16_weights(spec_, recipe, engine)) of(ArmPart::first, 2 * n);
    } else {
        if (both || tensor == TensorClass::w) of(ArmPart::first, n);
        if (both || tensor == TensorClass::dy) of(ArmPart::second, n);
        const ScaleMode mode = scale_mode_of(plan);
        add_scales(mode, rows, cols, layer, tensor);
        if (mode == ScaleMode::block32 && tensor != TensorClass::w) of(ArmPart::value, 4 * n);
    }
    of(ArmPart::stats, stats_blocks(rows, cols) * kCastSumsBytes);
}

void MlpList::add_layer(int layer, int in, int out) {
    const auto of = [&](ArmPart part, std::uint64_t bytes) { add(part, bytes, layer); };
    add_tensor(TensorClass::x, layer, batch_, in);
    add_tensor(TensorClass::w, layer, out, in);
    add_tensor(TensorClass::dy, layer, batch_, out);
    const std::uint64_t result = engine_ == Engine::emulated || recipe_.out == OutType::fp32 ? 4 : 2,
                        kept = keeps_bf16_weights(spec_, recipe_, engine_) ? 2 : 4,
                        weights = elements(out, in), biases = sizeof(float) * size(padded(out));
    of(ArmPart::output, result * elements(batch_, out));
    if (layer > 1) of(ArmPart::input_gradient, result * elements(batch_, in));
    const int own = spec_.ranks.sharded() ? static_cast<int>(block_rows(size(out), spec_.ranks.count)) : out;
    of(ArmPart::master, kept * elements(own, in));
    if (!multiplies_in_update(spec_, recipe_, engine_, batch_))
        of(ArmPart::weight_gradient, gradient_bytes(spec_, recipe_, engine_) * weights);
    of(ArmPart::bias, biases);
    of(ArmPart::bias_before, biases);
    of(ArmPart::bias_gradient, biases);
    if (spec_.optimizer == OptimizerKind::adamw) {
        of(ArmPart::m, moment_bytes(spec_, recipe_.moment_m, own, in));
        of(ArmPart::v, moment_bytes(spec_, recipe_.moment_v, own, in));
        of(ArmPart::bias_m, biases);
        of(ArmPart::bias_v, biases);
    }
    of(ArmPart::bias_partials, size(parts_ * tiles_down(padded(batch_))) * biases);
    if (spec_.ranks.count > 1) add_ranked(spec_, {recipe_, recipe_of(layer), engine_, out, in}, layer);
}

void MlpList::add_arm() {
    const auto of = [&](ArmPart part, std::uint64_t bytes) { add(part, bytes); };
    const std::uint64_t rows = size(batch_);
    add_shared(spec_, model_plan(spec_), recipe_);
    of(ArmPart::loss_partials,
       sizeof(double) * size(parts_) * std::max(stats_blocks(batch_, spec_.layers.back()), rows));
    of(ArmPart::row_stats, 2 * sizeof(float) * rows);
    of(ArmPart::row_correct, size(parts_) * rows);
    const int ranks = spec_.ranks.count;
    if (parts_ * ranks > 1) of(ArmPart::gradient_factor, sizeof(float));
    std::uint64_t biases = 0;
    for (std::size_t l = 1; l < spec_.layers.size(); ++l) biases += size(padded(spec_.layers[l]));
    add_bucket(spec_, biases);
    if (recipe_.loss_scale > 0) {
        of(ArmPart::loss_scale, kLossScaleBytes);
        of(ArmPart::loss_scale_results, kRecordSlots * kLossScaleResultBytes);
    }
    if (engine_ != Engine::emulated) return;
    std::uint64_t scratch = 1, rotated = 0;
    for (std::size_t l = 0; l + 1 < spec_.layers.size(); ++l) {
        const int in = spec_.layers[l], out = spec_.layers[l + 1], layer = static_cast<int>(l) + 1;
        const bool rotates = recipe_of(layer).rht;
        if (rotates) rotated = std::max(rotated, 4 * elements(batch_, std::max(in, out)));
        // What is rotated has its padding too.
        const int batch = rotates ? padded(batch_) : batch_;
        for (const auto& [tensor, r, c] : {std::tuple{TensorClass::x, batch, in},
                                           {TensorClass::w, out, in},
                                           {TensorClass::dy, batch, out}})
            scratch = std::max(scratch, emulation_scratch_bytes(cast_plan(recipe_of(layer), tensor), r, c));
    }
    of(ArmPart::scratch, scratch);
    of(ArmPart::rotated, rotated);
}

}  // namespace

std::vector<Allocation> mlp_list(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch) {
    return std::move(MlpList(spec, recipe, engine, batch).list);
}

}  // namespace fp8lab::cuda
