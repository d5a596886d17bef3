// The Markdown of lessons and of the manual, parsed by md4c into a flat list of blocks: headings, paragraphs, bold,
// code, lists, tables, rules, links and pictures. The window (labs/ui/markdown.h) and HTML (core/lesson/manual/markdown_html.h) draw it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

struct MarkdownRun {
    std::string text;
    bool bold = false, code = false;
    std::string link = {};  // what stands in the parentheses of [words](link); empty: none
};
using MarkdownCell = std::vector<MarkdownRun>;

enum class BlockKind { heading, paragraph, item, code, rule, row, picture };
struct MarkdownBlock {
    BlockKind kind = BlockKind::paragraph;
    int level = 0;                         // heading: 1-6; item: depth
    std::string bullet = {};               // item: its number; empty: a dot
    std::vector<MarkdownCell> cells = {};  // row: one a column; else one
    bool header = false;                   // row
    std::string picture = {};              // picture: its id; the cell holds its words
    std::string info = {};                 // code: what stands behind the fence, "sh needs=gpu"
};

std::vector<MarkdownBlock> parse_markdown(std::string_view text);

std::string words_of(const MarkdownCell& cell);  // without marks

}  // namespace fp8lab
