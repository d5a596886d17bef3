// A Jupyter notebook (nbformat 4.5) about recipes: what is said of them, the file of plain PyTorch of each as a module, a
// layer of each beside one of FP32, and at the end the check of 256 codes. It runs on a CPU with PyTorch.
#pragma once

#include <string>
#include <vector>

#include "core/scaling/recipe.h"

namespace fp8lab {

struct Notebook {
    std::vector<std::string> opening;  // cells of Markdown, before the code
    std::vector<Recipe>
        recipes;  // their code; one that plain PyTorch cannot express is told, with the reason
};

// JSON. Throws usage_error(where): plain PyTorch can express no recipe of them, with the reason of the last.
std::string notebook_json(const Notebook& notebook, std::string_view where = "--notebook");

// The module that a recipe's file is written to: "fp8lab_delayed_margin_2".
std::string notebook_module(const Recipe& recipe);

}  // namespace fp8lab
