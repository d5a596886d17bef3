// One tensor that GEMMs read, and their operands.
#pragma once

#include "core/nn/memory_plan.h"
#include "core/nn/model_plan.h"
#include "kernels/device/device.h"
#include "kernels/device/launch.h"
#include "kernels/scaling/scale_buffers.h"

namespace fp8lab::cuda {

struct Slot {
    Shape shape;
    CastPlan plan;
    ScaleSource source = ScaleSource::none;
    TensorId id;  // ModelPlan::tensors, and the arm's scale states
    TensorClass tensor = TensorClass::x;
    // The recipe of its GEMM: the arm's, or bf16 where an arm of FP8 leaves the GEMM in BF16
    // (ModelPlan::recipe_of()).
    Engine engine = Engine::bf16;
    Along first_along = Along::cols;  // what is cast and recorded first
    int ordinal = 1;                  // ModelPlan::ordinal() and place(): of the random numbers
    unsigned place = 0;
    Memory value;                  // FP32; of x and dy, where emulated or before the cast to MX
    const void* values = nullptr;  // `value`, or the weights of the optimiser
    Memory first, second;  // fp8: rows and columns; bf16: rows; emulated: along the first and the second GEMM
    ScaleMode scaling = ScaleMode::tensor;
    ScaleBuffers scales;      // fp8 with many scales
    Buffer<float> scale_inv;  // fp8 with one scale; empty: in the scale state
    Buffer<CastSums> stats;
    bool cast = true;         // false: operands are `values` (recipe fp32; weights kept in BF16)
    bool has_second = false;  // second differs from first
    bool rotated = false;     // along the batch, for wgrad (Recipe::rht)
    bool of_norm = false;     // a norm's kernel gives its values, and may cast them

    void keep_values();  // allocates `value`
    // BF16 that GEMMs read where it was written: there is no cast.
    bool in_place() const { return engine == Engine::bf16 && !cast && tensor != TensorClass::w; }
    const void* for_first() const { return cast ? first.get() : values; }
    const void* for_second() const { return has_second ? second.get() : for_first(); }
};

constexpr Shape shape_of(int rows, int cols) { return {rows, cols, padded(rows), padded(cols)}; }
constexpr std::size_t elements(Shape s) {
    return static_cast<std::size_t>(s.padded_rows) * static_cast<std::size_t>(s.padded_cols);
}

}  // namespace fp8lab::cuda
