// The engine that runs the GEMMs of a recipe, and their shapes and types.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/provenance.h"
#include "core/nn/memory_plan.h"
#include "core/scaling/quantizer.h"
#include "kernels/device/launch.h"
#include "kernels/gemm/gemm.h"

namespace fp8lab::cuda {

Provenance provenance_of(Engine engine);

struct EngineChoice {
    Engine engine = Engine::emulated;
    std::string reason;  // why it is emulated; empty where it is not
};
// `refusal` tries a small product and returns why the GPU does not support it, or empty. Products with one
// scale per tensor are not tried: every GPU with FP8 supports them.
using Refusal = std::function<std::string(const GemmSpec&)>;
// Throws Error{backend}: colsrc, and inputs of a GEMM (Recipe::inputs) that no tensor-core product takes.
EngineChoice choose_engine(const Recipe& recipe, const Refusal& refusal);
[[noreturn]] void refuse_emulated_inputs(const Recipe& recipe, std::string_view gemm, const std::string& why);

// The element type in the engine fp8.
Element element_of(const FormatInfo& format);  // E4M3 or E5M2

// The products of a layer over padded dimensions: fprop h = x w^T, dgrad dx = dy w, wgrad dw = dy^T x. Both
// FP8 operands are contiguous along K, so that dgrad reads w^T, and wgrad dy^T and x^T. Emulated recipes get
// results in FP32 and round them afterwards. Where the recipe has inputs, each product is that of its own recipe; in an arm
// of FP8 those in BF16 are as in an arm of BF16.
struct LayerProducts {
    GemmSpec fprop, dgrad, wgrad;
};
LayerProducts products_of(const Recipe& recipe, Engine engine, int batch, int in, int out);

}  // namespace fp8lab::cuda
