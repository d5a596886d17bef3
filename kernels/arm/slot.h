// One tensor that GEMMs read, and their operands.
#pragma once

#include <memory>
#include <optional>

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
    TensorId id;  // ModelPlan::tensors
    int state =
        0;  // its place among the arm's scale states and records: the tensor's, behind them those of `other`
    int controls = 0;  // which of the arm's controls are its own
    TensorClass tensor = TensorClass::x;
    // The recipe of its GEMM: the arm's, or bf16 where an arm of FP8 leaves the GEMM in BF16
    // (ModelPlan::recipe_of(), Recipe::inputs).
    Engine engine = Engine::bf16;
    // Of a split tensor (core/scaling/side_cast.h): the GEMM that this cast is for. none: both.
    std::optional<Gemm> reader;
    std::unique_ptr<Slot> other;      // the cast for the second GEMM, where that is a cast of its own
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
    const void* for_second() const {
        return other ? other->for_second() : has_second ? second.get() : for_first();
    }
    const Slot& of_second() const { return other ? *other : *this; }  // what casts for the second GEMM
};

constexpr Shape shape_of(int rows, int cols) { return {rows, cols, padded(rows), padded(cols)}; }
constexpr std::size_t elements(Shape s) {
    return static_cast<std::size_t>(s.padded_rows) * static_cast<std::size_t>(s.padded_cols);
}

}  // namespace fp8lab::cuda
