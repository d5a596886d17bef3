#include "labs/ui/markdown.h"

#include <md4c.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

enum class Kind { heading, paragraph, item, code, rule, row, picture };

struct Run {
    std::string text;
    bool bold = false, code = false;
    std::string link = {};  // a glossary term's id; empty: none
};
using Inline = std::vector<Run>;

struct Block {
    Kind kind = Kind::paragraph;
    int level = 0;                   // heading: 1-6; item: depth
    std::string bullet = {};         // item: its number; empty: a dot
    std::vector<Inline> cells = {};  // row: one a column; else one
    bool header = false;             // row
    std::string picture = {};        // picture: its id; the cell holds its words
};

// md4c calls back for the start and end of blocks and spans, and for text. What is collected is a flat list
// of blocks.
class Collector {
  public:
    std::vector<Block> blocks;

    void enter(MD_BLOCKTYPE type, void* detail) {
        switch (type) {
            case MD_BLOCK_H:
                begin({Kind::heading, static_cast<int>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level)});
                break;
            case MD_BLOCK_P:
                if (!in_item()) begin({Kind::paragraph});
                break;
            case MD_BLOCK_UL:
                lists_.push_back(0);
                break;
            case MD_BLOCK_OL:
                lists_.push_back(static_cast<int>(static_cast<MD_BLOCK_OL_DETAIL*>(detail)->start));
                break;
            case MD_BLOCK_LI:
                begin_item();
                break;
            case MD_BLOCK_CODE:
                begin({Kind::code});
                break;
            case MD_BLOCK_HR:
                blocks.push_back({Kind::rule});
                break;
            case MD_BLOCK_TR:
                blocks.push_back({Kind::row});
                break;
            case MD_BLOCK_TH:
                blocks.back().header = true;
                blocks.back().cells.emplace_back();
                break;
            case MD_BLOCK_TD:
                blocks.back().cells.emplace_back();
                break;
            default:
                break;
        }
    }
    void leave(MD_BLOCKTYPE type) {
        if (type == MD_BLOCK_UL || type == MD_BLOCK_OL) lists_.pop_back();
        if (type == MD_BLOCK_LI) items_ -= 1;
    }
    void enter(MD_SPANTYPE type, void* detail) {
        if (type == MD_SPAN_A) {
            const MD_ATTRIBUTE& term = static_cast<MD_SPAN_A_DETAIL*>(detail)->href;
            link_.assign(term.text, term.size);
        }
        if (type == MD_SPAN_IMG && !blocks.empty() && blocks.back().kind == Kind::paragraph &&
            blocks.back().cells.front().empty()) {
            const MD_ATTRIBUTE& id = static_cast<MD_SPAN_IMG_DETAIL*>(detail)->src;
            blocks.back().kind = Kind::picture;
            blocks.back().picture.assign(id.text, id.size);
        }
        span(type, 1);
    }
    void leave(MD_SPANTYPE type) {
        if (type == MD_SPAN_A) link_.clear();
        span(type, -1);
    }
    void span(MD_SPANTYPE type, int change) {
        if (type == MD_SPAN_STRONG || type == MD_SPAN_EM) bold_ += change;
        if (type == MD_SPAN_CODE) code_ += change;
    }
    void text(MD_TEXTTYPE type, std::string_view words) {
        if (blocks.empty() || blocks.back().cells.empty()) return;
        const bool line_end = type == MD_TEXT_SOFTBR || type == MD_TEXT_BR;
        const bool keep_lines = blocks.back().kind == Kind::code;
        Inline& cell = blocks.back().cells.back();
        std::string more = line_end && !keep_lines ? " " : std::string(words);
        if (!link_.empty() && !cell.empty() && cell.back().link == link_)
            cell.back().text += more;  // the words of a link stay one run
        else
            cell.push_back({std::move(more), bold_ > 0, code_ > 0, link_});
    }

  private:
    bool in_item() const { return items_ > 0 && !blocks.empty() && blocks.back().kind == Kind::item; }
    void begin(Block block) {
        block.cells.emplace_back();
        blocks.push_back(std::move(block));
    }
    void begin_item() {
        items_ += 1;
        int& number = lists_.back();
        begin({Kind::item, static_cast<int>(lists_.size()),
               number > 0 ? std::to_string(number) : std::string{}});
        if (number > 0) number += 1;
    }

    std::vector<int> lists_;  // the next number of each open list; 0: bullets
    int items_ = 0, bold_ = 0, code_ = 0;
    std::string link_;
};

std::vector<Block> parse(std::string_view text) {
    Collector collector;
    MD_PARSER parser = {};
    parser.flags = MD_FLAG_TABLES | MD_FLAG_NOHTML;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* user) {
        static_cast<Collector*>(user)->enter(type, detail);
        return 0;
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* user) {
        static_cast<Collector*>(user)->leave(type);
        return 0;
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* user) {
        static_cast<Collector*>(user)->enter(type, detail);
        return 0;
    };
    parser.leave_span = [](MD_SPANTYPE type, void*, void* user) {
        static_cast<Collector*>(user)->leave(type);
        return 0;
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* words, MD_SIZE size, void* user) {
        static_cast<Collector*>(user)->text(type, {words, size});
        return 0;
    };
    md_parse(text.data(), static_cast<MD_SIZE>(text.size()), &parser, &collector);
    return std::move(collector.blocks);
}

Font font_of(const Run& run, bool bold) {
    if (run.code) return {run.bold || bold ? Face::mono_bold : Face::mono, 13};
    return {run.bold || bold ? Face::sans_bold : Face::sans, 15};
}

struct Links {
    int drawn = 0;
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

// The first word of what is left of a run; a link is one word.
std::string_view first_word(const Run& run, std::string_view rest) {
    return run.link.empty() ? rest.substr(0, word_end(rest)) : rest;
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
            const bool link = !run.link.empty();
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

void draw_code(Context& context, const Inline& runs) {
    std::string all;
    for (const Run& run : runs) all += run.text;
    while (!all.empty() && all.back() == '\n') all.pop_back();
    const auto lines = 1 + static_cast<float>(std::count(all.begin(), all.end(), '\n'));
    Rect area = next_area(context, lines * 20 + 16);
    fill_rect(context, area, {Role::field}, 4);
    float y = area.y0 + context.px(18);
    for (std::string_view rest = all;;) {
        const auto end = std::min(rest.find('\n'), rest.size());
        text_mid(context, {area.x0 + context.px(12), y}, rest.substr(0, end), {Role::text}, {Face::mono, 13});
        if (end == rest.size()) break;
        rest.remove_prefix(end + 1);
        y += context.px(20);
    }
    advance(area);
}

void draw_row(Context& context, const Block& row, Links& links) {
    Rect area = next_area(context, 32);
    const float column = area.width() / static_cast<float>(std::max<std::size_t>(1, row.cells.size()));
    hline(context, area.x0, area.x1, area.y0, {Role::line});
    float x = area.x0;
    float height = 0;
    for (const Inline& cell : row.cells) {
        const Point at{x, area.y0 + context.px(6)};
        height = std::max(height, flow(context, cell, at, column - context.px(8), context.px(20),
                                       row.header ? Role::muted : Role::text, false, links));
        x += column;
    }
    area.y1 = area.y0 + height + context.px(12);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    advance(area);
    ImGui::PopStyleVar();
}

void draw(Context& context, const Block& block, const DrawPicture& picture, Links& links) {
    if (block.kind == Kind::picture && picture) return picture(block.picture);
    Rect area = next_area(context, 22);
    const float pitch = area.height();
    float indent = 0;
    switch (block.kind) {
        case Kind::rule:
            divider(context);
            return;
        case Kind::code:
            draw_code(context, block.cells.front());
            return;
        case Kind::row:
            draw_row(context, block, links);
            return;
        case Kind::heading:
            area.y0 += context.px(8);
            break;
        case Kind::item:
            indent = context.px(20 * static_cast<float>(block.level));
            break;
        case Kind::paragraph:
        case Kind::picture:  // its words
            break;
    }
    if (block.kind == Kind::item && block.bullet.empty()) {
        ImGui::GetWindowDrawList()->AddCircleFilled({area.x0 + indent - context.px(11), area.y0 + pitch / 2},
                                                    context.px(2.5F), context.color(Role::muted));
    } else if (block.kind == Kind::item) {
        text_mid(context, {area.x0 + indent - context.px(8), area.y0 + pitch / 2}, block.bullet,
                 {Role::muted}, {Face::mono, 13}, Anchor::right);
    }
    const bool heading = block.kind == Kind::heading;
    area.y1 = area.y0 + flow(context, block.cells.front(), {area.x0 + indent, area.y0}, area.width() - indent,
                             pitch, Role::text, heading, links);
    if (!heading && block.kind != Kind::item) area.y1 += context.px(4);
    advance(area);
}

}  // namespace

std::string markdown(Context& context, std::string_view text, const DrawPicture& picture) {
    Links links;
    for (const Block& block : parse(text)) draw(context, block, picture, links);
    return links.pressed;
}

}  // namespace fp8lab::ui
