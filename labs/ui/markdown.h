// The Markdown of lessons and of the manual (core/lesson/manual/markdown.h), drawn.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "labs/ui/context.h"

namespace fp8lab::ui {

// Draws the picture with this id at the ImGui cursor, with the full width available.
using DrawPicture = std::function<void(std::string_view id)>;

// Draws at the ImGui cursor with the full width available. `[words](amax)` links to the glossary term with
// the id "amax": it is a control, named "term.0", "term.1" ... in the order of the text, with the id as the
// words of its probe. A block ```sh copies itself when it is pressed, as "commands.0" ... Returns the id of the link that was pressed in this frame; empty: none. An image that is a
// paragraph, `![words](amax)`, is drawn by `picture` with its id; without `picture` its words are drawn.
std::string markdown(Context& context, std::string_view text, const DrawPicture& picture = {});

}  // namespace fp8lab::ui
