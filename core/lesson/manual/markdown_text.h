// Markdown (core/lesson/manual/markdown.h) as plain text for a terminal: no mark of a fence, a table or an escape is left.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/lesson/manual/markdown.h"

namespace fp8lab {

struct TextOptions {
    std::size_t width = 100;  // columns; a line of code and a longer word stay whole
    // What stands in parentheses behind the words of a link; empty: nothing.
    std::function<std::string(const MarkdownRun& run)> behind_link = {};
    // The line above a block of code; empty: none.
    std::function<std::string(const MarkdownBlock& code)> above_code = {};
};

// Headings keep their "#". Code is indented by four columns, cells of a table are wrapped in their columns, and pictures
// become their words.
std::string markdown_text(std::span<const MarkdownBlock> blocks, const TextOptions& options);

}  // namespace fp8lab
