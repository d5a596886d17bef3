#include "labs/ui/markdown.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/lesson/manual/manual.h"
#include "core/lesson/manual/markdown.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

using Block = MarkdownBlock;
using Run = MarkdownRun;
using Inline = MarkdownCell;

Font font_of(const Run& run, bool bold) {
    if (run.code) return {run.bold || bold ? Face::mono_bold : Face::mono, 13};
    return {run.bold || bold ? Face::sans_bold : Face::sans, 15};
}

struct Links {
    int drawn = 0, commands = 0;
    std::string pressed = {};  // the term; empty: none
};

// Underlined in two strokes, one before the words and one after: a reader of the drawing, as in tests, can then tell
// the words of a link from their neighbours.
void draw_link(Context& context, const Run& run, Rect area, Role role, Font font, Links& links) {
    const std::string name = "term." + std::to_string(links.drawn++);
    const Press hit = press(context, name, area, 4);
    probe(context, name, area, {}, run.link);
    if (hit.clicked) links.pressed = run.link;
    const float y = area.y1 - std::round(context.px(3)), middle = (area.x0 + area.x1) / 2;
    const Color ink{hit.hovered ? Role::text : Role::muted};
    fill_rect(context, {area.x0, y, middle, y + hairline(context)}, ink);
    text_mid(context, {area.x0, (area.y0 + area.y1) / 2}, run.text, {role, Tone::ink}, font);
    fill_rect(context, {middle, y, area.x1, y + hairline(context)}, ink);
}

bool is_link(const Run& run) { return !run.link.empty() && !is_plain_link(run.link); }

// The first word of what is left of a run; a link is one word.
std::string_view first_word(const Run& run, std::string_view rest) {
    return !is_link(run) ? rest.substr(0, word_end(rest)) : rest;
}

// The width of what stands at the end of run `i` without a space between them: a comma after a link.
float attached_width(const Context& context, const Inline& runs, std::size_t i, bool bold) {
    float width = 0;
    for (++i; i < runs.size(); ++i) {
        const std::string_view text = runs[i].text, word = first_word(runs[i], text);
        width += text_width(context, word, font_of(runs[i], bold));
        if (word.size() < text.size()) break;
    }
    return width;
}

// Sets runs of different faces in lines of `width`, word by word; a link is one word. Returns the height
// used, in px.
float flow(Context& context, const Inline& runs, Point at, float width, float pitch, Role role, bool bold,
           Links& links) {
    float x = at.x;
    float y = at.y;
    bool space_before = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const Run& run = runs[i];
        const Font font = font_of(run, bold);
        std::string_view rest = run.text;
        while (!rest.empty()) {
            if (rest.front() == ' ' || rest.front() == '\n') {
                space_before = true;
                rest.remove_prefix(1);
                continue;
            }
            const bool link = is_link(run);
            const auto word = first_word(run, rest);
            const float space = space_before && x > at.x ? text_width(context, " ", {Face::sans, 15}) : 0;
            const float word_width = text_width(context, word, font);
            const float attached = word.size() == rest.size() ? attached_width(context, runs, i, bold) : 0;
            if (x > at.x && space_before && x + space + word_width + attached > at.x + width) {
                x = at.x;
                y += pitch;
            } else {
                x += space;
            }
            if (link)
                draw_link(context, run, {x, y, x + word_width, y + pitch}, role, font, links);
            else
                text_mid(context, {x, y + pitch / 2}, word, {role, Tone::ink}, font);
            x += word_width;
            space_before = false;
            rest.remove_prefix(word.size());
        }
    }
    return y + pitch - at.y;
}

// A press copies the commands, which a word at the right says.
void copy_code(Context& context, const std::string& name, Rect area, const std::string& commands) {
    constexpr float kSaysCopied_s = 1.2F;
    constexpr Font kFont{Face::sans, 13};
    const Press hit = press(context, name, area, 4);
    probe(context, name, area, {}, commands);
    ImGuiStorage& storage = *ImGui::GetStateStorage();
    const ImGuiID until = ImGui::GetID((name + ".until").c_str());
    const auto now = static_cast<float>(ImGui::GetTime());
    if (hit.clicked) {
        ImGui::SetClipboardText(commands.c_str());
        storage.SetFloat(until, now + kSaysCopied_s);
    }
    const bool copied = now < storage.GetFloat(until);
    context.wants_redraw |= copied;  // until the word goes
    if (!copied && !hit.hovered && !hit.focused) return;
    const std::string_view word = copied ? "copied" : "Copy";
    const float x = area.x1 - context.px(12), y = area.y0 + context.px(18);
    fill_rect(context,
              {x - text_width(context, word, kFont) - context.px(8), area.y0 + context.px(4),
               area.x1 - context.px(4), area.y0 + context.px(32)},
              {Role::field});
    text_mid(context, {x, y}, word, {Role::muted}, kFont, Anchor::right);
}

// Lines that are too long go on below, two letters further in.
void draw_code(Context& context, const Block& code, Links& links) {
    std::string all = words_of(code.cells.front());
    while (!all.empty() && all.back() == '\n') all.pop_back();
    constexpr Font kFont{Face::mono, 13};
    const float width = next_area(context, 1).width() - context.px(24);
    const float further = text_width(context, "  ", kFont);
    std::vector<std::pair<float, std::string_view>> lines;
    for (std::string_view rest = all;;) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        if (text_width(context, line, kFont) <= width) {
            lines.emplace_back(0.0F, line);
        } else {
            for (const auto part : wrap_lines(context, line, kFont, width - further))
                lines.emplace_back(part.data() == line.data() ? 0.0F : further, part);
        }
        if (line.size() == rest.size()) break;
        rest.remove_prefix(line.size() + 1);
    }
    if (const std::string note = code_note(code.info); !note.empty())
        text(context, note, Role::muted, {Face::sans, 13});
    Rect area = next_area(context, static_cast<float>(lines.size()) * 20 + 16);
    fill_rect(context, area, {Role::field}, 4);
    float y = area.y0 + context.px(18);
    for (const auto& [indent, line] : lines) {
        text_mid(context, {area.x0 + context.px(12) + indent, y}, line, {Role::text}, kFont);
        y += context.px(20);
    }
    if (code.info.starts_with("sh"))
        copy_code(context, "commands." + std::to_string(links.commands++), area, all);
    advance(area);
}

// The widths of a column's text: of its longest word, which is never broken, and of its longest cell in one line.
struct TextWidths {
    float word = 0, line = 0;
};

TextWidths text_widths(const Context& context, const Inline& runs) {
    TextWidths out;
    float word = 0;  // since the last space, which may lie in another run
    for (const Run& run : runs) {
        std::string_view rest = run.text;
        while (!rest.empty()) {
            const bool space = rest.front() == ' ' || rest.front() == '\n';
            const auto next = space ? rest.substr(0, 1) : first_word(run, rest);
            const float width =
                text_width(context, space ? " " : next, space ? Font{Face::sans, 15} : font_of(run, false));
            word = space ? 0 : word + width;
            out.word = std::max(out.word, word);
            out.line += width;
            rest.remove_prefix(next.size());
        }
    }
    return out;
}

constexpr float kColumnGap = 8;

// The columns' widths of the table whose header is blocks[first]. Each has room for its longest word; what is left is
// shared as their cells need it, and evenly once all cells are in one line.
std::vector<float> column_widths(const Context& context, const std::vector<Block>& blocks, std::size_t first,
                                 float width) {
    std::vector<TextWidths> columns(blocks[first].cells.size());
    for (std::size_t i = first; i < blocks.size() && blocks[i].kind == BlockKind::row; ++i) {
        if (blocks[i].header && i != first) break;
        for (std::size_t c = 0; c < std::min(columns.size(), blocks[i].cells.size()); ++c) {
            const auto [word, line] = text_widths(context, blocks[i].cells[c]);
            columns[c].word = std::max(columns[c].word, word + context.px(kColumnGap));
            columns[c].line = std::max(columns[c].line, line + context.px(kColumnGap));
        }
    }
    float words = 0, lines = 0;
    for (const auto& column : columns) words += column.word, lines += column.line;
    const float share = lines > words ? std::clamp((width - words) / (lines - words), 0.0F, 1.0F) : 0;
    const float left =
        std::max(0.0F, width - words - share * (lines - words)) / static_cast<float>(columns.size());
    std::vector<float> out;
    for (const auto& [word, line] : columns) out.push_back(word + share * (line - word) + left);
    return out;
}

void draw_row(Context& context, const Block& row, const std::vector<float>& columns, Links& links) {
    Rect area = next_area(context, 32);
    hline(context, area.x0, area.x1, area.y0, {Role::line});
    float x = area.x0;
    float height = 0;
    for (std::size_t c = 0; c < std::min(columns.size(), row.cells.size()); ++c) {
        const Point at{x, area.y0 + context.px(6)};
        height = std::max(height, flow(context, row.cells[c], at, columns[c] - context.px(kColumnGap),
                                       context.px(20), row.header ? Role::muted : Role::text, false, links));
        x += columns[c];
    }
    area.y1 = area.y0 + height + context.px(12);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    advance(area);
    ImGui::PopStyleVar();
}

void draw(Context& context, const Block& block, const DrawPicture& picture, Links& links) {
    if (block.kind == BlockKind::picture && picture) return picture(block.picture);
    Rect area = next_area(context, 22);
    const float pitch = area.height();
    float indent = 0;
    switch (block.kind) {
        case BlockKind::rule:
            divider(context);
            return;
        case BlockKind::code:
            draw_code(context, block, links);
            return;
        case BlockKind::heading:
            area.y0 += context.px(8);
            break;
        case BlockKind::item:
            indent = context.px(20 * static_cast<float>(block.level));
            break;
        case BlockKind::paragraph:
        case BlockKind::picture:  // its words
        case BlockKind::row:      // drawn with its table
            break;
    }
    if (block.kind == BlockKind::item && block.bullet.empty()) {
        ImGui::GetWindowDrawList()->AddCircleFilled({area.x0 + indent - context.px(11), area.y0 + pitch / 2},
                                                    context.px(2.5F), context.color(Role::muted));
    } else if (block.kind == BlockKind::item) {
        text_mid(context, {area.x0 + indent - context.px(8), area.y0 + pitch / 2}, block.bullet,
                 {Role::muted}, {Face::mono, 13}, Anchor::right);
    }
    const bool heading = block.kind == BlockKind::heading;
    area.y1 = area.y0 + flow(context, block.cells.front(), {area.x0 + indent, area.y0}, area.width() - indent,
                             pitch, Role::text, heading, links);
    if (!heading && block.kind != BlockKind::item) area.y1 += context.px(4);
    advance(area);
}

}  // namespace

std::string markdown(Context& context, std::string_view text, const DrawPicture& picture) {
    Links links;
    std::vector<float> columns;  // of the table that is being drawn
    const std::vector<Block> blocks = parse_markdown(text);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i].kind != BlockKind::row) {
            draw(context, blocks[i], picture, links);
            continue;
        }
        if (blocks[i].header || columns.empty())
            columns = column_widths(context, blocks, i, next_area(context, 1).width());
        draw_row(context, blocks[i], columns, links);
    }
    return links.pressed;
}

}  // namespace fp8lab::ui
