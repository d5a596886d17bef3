// The file of torchao 0.18: its Float8Linear with a cast for each operand, or its layer for blocks. Where torchao computes
// on a CPU (Float8LinearConfig.emulate, KernelPreference.EMULATED), check() compares the codes of torchao's own casts with
// ours; its layers for blocks of 16 and of 128 are Triton kernels, and check() is that of plain PyTorch.
#pragma once

#include <string>

#include "core/scaling/recipe.h"

namespace fp8lab::python {

std::string torchao_file(const Recipe& recipe);
std::string torchao_refusal(const Recipe& recipe);  // CodeTarget::refusal

}  // namespace fp8lab::python
