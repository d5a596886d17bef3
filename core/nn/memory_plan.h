// The device memory of a training on a GPU, as the list of its allocations. MlpArm::allocate()
// (kernels/mlp/arm.cpp) allocates what is in the list, the trainer's refusal for lack of memory counts it,
// and L10 shows it.
//
// Held against memory_bytes of every recorded arm: within 2 % or two pages of 2 MiB
// (tests/unit/backend/memory_plan_test.cpp).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/nn/gpu_sizes.h"
#include "core/nn/train_spec.h"
#include "core/scaling/quantizer.h"

namespace fp8lab::cuda {

enum class Engine {
    bf16,
    fp8,      // FP8 codes on the tensor cores, with one scale per tensor, row or block
    emulated  // quantised and dequantised in FP32 (kernels/casts/emulate.h), multiplied in FP32
};

ScaleMode scale_mode_of(const CastPlan& plan);
double step_flop(const TrainSpec& spec, int batch);  // of the products, padded; of attention half (causal)
double step_elements(const TrainSpec& spec);         // of weights, inputs and outputs of the GEMMs
int steps_per_launch(const TrainSpec& spec, int batch);  // more than 1 where steps are short
int data_slots(const TrainSpec& spec);                   // batches that the trainer keeps on the device
// Small batches: the weight gradient is a part of the optimiser's kernel and is not stored.
bool multiplies_in_update(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch);
// What a cast of an emulated recipe needs beside its tensor: the amaxes of its blocks.
std::size_t emulation_scratch_bytes(const CastPlan& plan, int rows, int cols);

enum class ArmPart {
    // Of a tensor x, w or dy. `first` and `second` are the operands of its GEMMs: fp8: rows and columns; bf16:
    // rows; emulated: FP32 along the first and along the second GEMM.
    value,  // FP32, where it is emulated or before the cast to MX
    first,
    second,
    scale_inv,
    amaxes,
    stats,
    // Of a layer.
    output,          // of fprop
    input_gradient,  // of dgrad; none in the first layer
    master,          // the weights that the optimiser updates
    m,
    v,
    weight_gradient,
    bias,
    bias_before,
    bias_gradient,
    bias_m,
    bias_v,
    bias_partials,
    // Of the arm.
    next_scale_inv,
    states,
    history,
    controls,
    steps,
    finite,
    results,
    tensor_results,
    loss_partials,
    row_stats,
    row_correct,
    scratch,
    rotated,  // x or dy of wgrad, where the recipe has rht
};

struct Allocation {
    ArmPart part;
    int layer = 0;  // 1-based; 0: of the arm. Tensor x of layer 0 is the network's input of the next step.
    TensorClass tensor = TensorClass::x;
    std::size_t bytes = 0;
};

// All dimensions are padded to multiples of 16.
class ArmMemory {
  public:
    ArmMemory(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch);
    std::span<const Allocation> allocations() const { return list_; }
    // 0: not allocated.
    std::size_t bytes(ArmPart part, int layer = 0, TensorClass tensor = TensorClass::x) const;
    std::size_t requested_bytes() const;  // the sum
    // What cudaMalloc takes for them: above 1 MiB in pages of 2 MiB, the small ones packed into such pages.
    std::size_t device_bytes() const;

  private:
    std::vector<Allocation> list_;
};

// The trainer's own: batches, targets and learning rates, which all arms share.
std::size_t ring_bytes(const TrainSpec& spec, int batch);

}  // namespace fp8lab::cuda
