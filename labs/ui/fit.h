// Words that are cut to a width, with an ellipsis where something is left out.
#pragma once

#include <string>
#include <string_view>

#include "labs/ui/context.h"

namespace fp8lab::ui {

// The end is left out: of a sentence.
std::string cut_end(const Context& context, std::string_view words, Font font, float width_px);
// The middle is left out: of names, of tensors, files, kernels and recipes. They begin alike and differ at their ends.
std::string cut_middle(const Context& context, std::string_view words, Font font, float width_px);

}  // namespace fp8lab::ui
