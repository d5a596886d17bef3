// The file of torchtitan: the flags of its last release, and the converters that later versions have in their place, in
// Python. check() is plain PyTorch: torchtitan takes its casts from torchao.
#pragma once

#include <string>

#include "core/scaling/recipe.h"

namespace fp8lab::python {

std::string torchtitan_file(const Recipe& recipe);
std::string torchtitan_refusal(const Recipe& recipe);  // CodeTarget::refusal

}  // namespace fp8lab::python
