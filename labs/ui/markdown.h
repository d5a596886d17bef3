// Lesson text: the Markdown that lessons use (headings, paragraphs, bold, code, lists, tables, rules), parsed
// by md4c.
#pragma once

#include <string_view>

#include "labs/ui/context.h"

namespace fp8lab::ui {

// Draws at the ImGui cursor with the full width available. Links and images are drawn as their text.
void markdown(Context& context, std::string_view text);

}  // namespace fp8lab::ui
