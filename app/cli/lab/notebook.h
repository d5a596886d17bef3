// fp8lab run LAB --notebook FILE.ipynb: the lab's question, its state, what was measured, and its recipes as code.
#pragma once

#include <string>

#include "labs/lab.h"

namespace fp8lab::cli {

// After update(). `command`: the call that writes it, as the notebook tells it. Throws usage_error: the state of the lab
// has no recipe, or none that plain PyTorch can express.
std::string lab_notebook(Lab& lab, const std::string& command);

}  // namespace fp8lab::cli
