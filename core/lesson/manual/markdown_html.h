// Markdown (core/lesson/manual/markdown.h) as HTML.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/lesson/manual/markdown.h"

namespace fp8lab {

struct HtmlOptions {
    int heading_shift = 1;   // "# " is <h2>
    std::string heading_id;  // of the first heading; empty: none
    // The tag that opens a link, "<a href=...>" or "<span ...>"; empty: only its words.
    std::function<std::string(const MarkdownRun& run)> open_link = {};
    // What stands above a block of code, as markup; empty: nothing.
    std::function<std::string(const MarkdownBlock& code)> above_code = {};
};

// Pictures become their words.
std::string markdown_html(std::span<const MarkdownBlock> blocks, const HtmlOptions& options);

}  // namespace fp8lab
