// Lesson text: the Markdown that lessons use (headings, paragraphs, bold, code, lists, tables, rules), parsed
// by md4c.
#pragma once

#include <string>
#include <string_view>

#include "labs/ui/context.h"

namespace fp8lab::ui {

// Draws at the ImGui cursor with the full width available. `[words](amax)` links to the glossary term with
// the id "amax": it is a control, named "term.0", "term.1" ... in the order of the text, with the id as the
// words of its probe. Returns the id of the link that was pressed in this frame; empty: none. Images are
// drawn as their text.
std::string markdown(Context& context, std::string_view text);

}  // namespace fp8lab::ui
