// The layers of torchao 0.18, for training, that a recipe can become: Float8Linear with one config for each operand, and
// layers of torchao.prototype for scales of blocks.
#pragma once

#include <string>
#include <string_view>

#include "core/scaling/recipe.h"

namespace fp8lab::python {

struct AoLayer {
    std::string imports;   // "from torchao... import ...", a line each
    std::string settings;  // what the casts and the layer read: "config = ..."
    // A function for each group that is cast, which calls torchao's own cast on a CPU. Empty: it has none there.
    std::string casts;
    std::string layer;  // "def layer(device=...): ...", and what that needs
};

AoLayer float8_linear(const Recipe& recipe);
// Why Float8Linear cannot express the recipe, as CodeTarget::refusal.
std::string float8_linear_refusal(const Recipe& recipe);

// Of recipes with scales of blocks.
AoLayer block_layer(const Recipe& recipe);
std::string block_layer_refusal(const Recipe& recipe);

// The recipe without what every layer expresses: the types of its products, and the layer's with them.
Recipe without_types(Recipe recipe);
std::string_view layer_dtype(const Recipe& recipe);   // "torch.bfloat16"
std::string_view layer_format(const Recipe& recipe);  // "bf16": what is not cast has it
// What `rest` says beyond its row: "margin=2"; empty: nothing.
std::string beyond_row(const Recipe& rest);

}  // namespace fp8lab::python
