#include "app/cli/manual/manual_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/lesson/manual/markdown_text.h"

namespace fp8lab::cli {
namespace {

bool is_page(std::string_view link) {
    return !is_plain_link(link) && !link.starts_with(kLabLink) && link.find('/') != link.npos;
}

// The terms that the page links to, in its order.
std::vector<std::string> terms_of(std::span<const MarkdownBlock> blocks, const std::string& text) {
    std::vector<std::string> out;
    for (const MarkdownBlock& block : blocks)
        for (const MarkdownCell& cell : block.cells)
            for (const MarkdownRun& run : cell) {
                const std::string& link = run.link;
                if (link.empty() || is_plain_link(link) || is_page(link) || link.starts_with(kLabLink))
                    continue;
                const bool here = text.find(fmt::format("]({}term-{})", kPlaceLink, link)) != text.npos;
                if (!here && std::ranges::find(out, link) == out.end()) out.push_back(link);
            }
    return out;
}

}  // namespace

std::string manual_text(const ManualPage& page) {
    TextOptions options;
    options.behind_link = [](const MarkdownRun& run) { return is_page(run.link) ? run.link : ""; };
    options.above_code = [](const MarkdownBlock& code) { return code_note(code.info); };
    auto blocks = parse_markdown(page.text);
    const std::vector<std::string> terms = terms_of(blocks, page.text);
    if (!terms.empty())
        for (MarkdownBlock& last : parse_markdown(
                 fmt::format("Terms, which `fp8lab list terms TERM` explains: {}.", fmt::join(terms, ", "))))
            blocks.push_back(std::move(last));
    return markdown_text(blocks, options);
}

}  // namespace fp8lab::cli
