// The file of plain PyTorch: the casts, a linear layer whose three products use them, and the check. It runs on the CPU.
#pragma once

#include <string>

#include "core/scaling/recipe.h"

namespace fp8lab::python {

std::string pytorch_code(const Recipe& recipe);
// CodeTarget::refusal.
std::string pytorch_refusal(const Recipe& recipe);

// The parts that files of other libraries end with: the casts of the recipe and check(). Without imports.
std::string casts_and_check(const Recipe& recipe);
// The imports that these need.
std::string imports_of(const std::string& text);

// The first lines: what the file is, and the command that writes it.
std::string head(const Recipe& recipe, std::string_view target, std::string_view label,
                 std::string_view about);

}  // namespace fp8lab::python
