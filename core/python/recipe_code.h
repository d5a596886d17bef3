// A recipe as Python code to take away: one file for one library. Every file ends with check(), which compares what the
// reader's PyTorch does with 256 codes that our quantizer gave when the file was written (code_check.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/scaling/recipe.h"

namespace fp8lab {

struct CodeTarget {
    std::string_view name;   // "pytorch", as on the command line
    std::string_view label;  // "plain PyTorch", in sentences
    // The file, for a recipe that refusal() takes.
    std::string (*code)(const Recipe&);
    // Why the library cannot express the recipe, as a sentence that follows its text; empty: it can.
    std::string (*refusal)(const Recipe&);
};
std::span<const CodeTarget> code_targets();
// Throws usage_error with the valid names.
const CodeTarget& find_code_target(std::string_view name, std::string_view where = "--for");

// Throws usage_error: the target cannot express the recipe, with the reason.
std::string recipe_code(const Recipe& recipe, const CodeTarget& target, std::string_view where = "--for");

}  // namespace fp8lab
