// What the GEMMs of a recipe run on, and which products they are.
#pragma once

#include <functional>
#include <string>

#include "core/base/provenance.h"
#include "core/scaling/quantizer.h"
#include "kernels/gemm.h"
#include "kernels/launch.h"

namespace fp8lab::cuda {

enum class Engine {
    bf16,
    fp8,      // codes on the tensor cores, with one scale a tensor, a row or a block
    emulated  // quantised and dequantised in FP32 (emulate.h), multiplied in FP32
};
Provenance provenance_of(Engine engine);

struct EngineChoice {
    Engine engine = Engine::emulated;
    std::string reason;  // why it is emulated; empty where it is not
};
// `refusal` tries a small product: why this GPU does not take it, or empty. Products with one scale a tensor
// are not tried: every GPU with FP8 takes them.
using Refusal = std::function<std::string(const GemmSpec&)>;
EngineChoice choose_engine(const Recipe& recipe, const Refusal& refusal);

// Of the engine fp8.
Element element_of(const FormatInfo& format);  // E4M3 or E5M2
Scaling scaling_of(const CastPlan& plan);

// The products of a layer over padded dimensions: fprop h = x w^T, dgrad dx = dy w, wgrad dw = dy^T x. FP8
// operands are both contiguous along the contraction, so that dgrad takes w^T and wgrad dy^T and x^T.
// Emulated recipes have results in FP32, which they round themselves.
struct LayerProducts {
    GemmSpec fprop, dgrad, wgrad;
};
LayerProducts products_of(const Recipe& recipe, Engine engine, int batch, int in, int out);

}  // namespace fp8lab::cuda
