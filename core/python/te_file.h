// The file of Transformer Engine: transformer_engine_code() (recipe.h) inside a program.
#pragma once

#include <string>

#include "core/scaling/recipe.h"

namespace fp8lab::python {

std::string te_file(const Recipe& recipe);
std::string te_refusal(const Recipe& recipe);  // CodeTarget::refusal

}  // namespace fp8lab::python
