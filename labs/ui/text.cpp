// Text in the faces and sizes of look.md 4, with raised exponents.
#include <algorithm>
#include <cmath>
#include <vector>

#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/fonts.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

constexpr float kHalfCapital = 0.364F;  // of the size: both families' capitals are 0.73 high
constexpr float kRaisedSize = 13;       // exponents: never smaller, never larger

float run_width(const Context& context, std::string_view run, Font font) {
    ImFont* face = context.font(font);
    return face->CalcTextSizeA(face->FontSize, FLT_MAX, 0, run.data(), run.data() + run.size()).x;
}

// The exponent at the start of the text: "-6", "11" of "11.", "M+1" of "(M+1)". `after` is what follows it.
std::string_view exponent_of(std::string_view text, std::string_view& after) {
    const auto close = text.find(')');
    if (text.starts_with('(') && close != std::string_view::npos) {
        after = text.substr(close + 1);
        return text.substr(1, close - 1);
    }
    auto end = std::min(text.find_first_of(" ,;:)"), text.size());
    while (end > 0 && text[end - 1] == '.') --end;
    after = text.substr(end);
    return text.substr(0, end);
}

// Calls run(text, font, raise) for each piece: "2^-6 = 0.016" is "2", raised "-6", " = 0.016". raise in
// logical px.
template <class Run>
void for_runs(std::string_view text, Font font, Run run) {
    while (!text.empty()) {
        const auto caret = text.find('^');
        if (caret != 0) run(text.substr(0, caret), font, 0.0F);
        if (caret == std::string_view::npos) return;
        text.remove_prefix(caret + 1);
        const std::string_view exponent = exponent_of(text, text);
        const float raise = std::clamp(font.size * 0.4F, 5.0F, 12.0F) - (font.size - kRaisedSize) * 0.97F;
        run(exponent, {font.face, kRaisedSize}, raise);
    }
}

void paragraph(Context& context, std::string_view text, Role role, Font font, float indent_px) {
    Rect area = next_area(context, line_height(font.size));
    const float pitch = area.height();
    const float x = area.x0 + indent_px;
    area.y1 = area.y0;
    for (const auto line : wrap_lines(context, text, font, area.x1 - x)) {
        text_mid(context, {x, area.y1 + pitch / 2}, line, {role, Tone::ink}, font);
        area.y1 += pitch;
    }
    advance(area);
}

}  // namespace

float text_width(const Context& context, std::string_view text, Font font) {
    float width = 0;
    for_runs(text, font,
             [&](std::string_view run, Font face, float) { width += run_width(context, run, face); });
    return width;
}

std::size_t word_end(std::string_view text, std::size_t from) {
    std::size_t end = std::min(text.find_first_of(" \n", from), text.size());
    while (end > from && text.substr(end).starts_with(" %"))
        end = std::min(text.find_first_of(" \n", end + 1), text.size());
    return end;
}

void text_at(Context& context, Point top_left_px, std::string_view text, Color color, Font font,
             Anchor anchor) {
    float x = top_left_px.x;
    if (anchor == Anchor::center) x -= text_width(context, text, font) / 2;
    if (anchor == Anchor::right) x -= text_width(context, text, font);
    x = std::round(x);
    const float left = x, top = std::round(top_left_px.y);
    const ImU32 ink = context.color(color);
    ImDrawList& list = *ImGui::GetWindowDrawList();
    const int first = list.VtxBuffer.Size;
    for_runs(text, font, [&](std::string_view run, Font run_font, float raise) {
        ImFont* face = context.font(run_font);
        const ImVec2 at{x, std::round(top_left_px.y - context.px(raise))};
        list.AddText(face, face->FontSize, at, ink, run.data(), run.data() + run.size());
        x += run_width(context, run, run_font);
    });
    if (!context.probes.enabled || text.find_first_not_of(' ') == std::string_view::npos) return;
    const ImVec2 lo = list.GetClipRectMin(), hi = list.GetClipRectMax();
    context.probes.texts.push_back({.words = std::string(text),
                                    .rect = {left, top, x, top + context.px(fp8lab::line_height(font))},
                                    .size = context.px(font.size),
                                    .clip = {lo.x, lo.y, hi.x, hi.y},
                                    .list = &list,
                                    .first = first,
                                    .last = list.VtxBuffer.Size});
}

void text_mid(Context& context, Point middle_px, std::string_view text, Color color, Font font,
              Anchor anchor) {
    const float size = context.px(font.size);
    const float top = middle_px.y + kHalfCapital * size - std::round(kBaseline * size);
    text_at(context, {middle_px.x, top}, text, color, font, anchor);
}

float line_height(float size) {
    if (size <= 13) return 20;
    if (size <= 15) return 22;
    if (size <= 18) return 26;
    return size <= 24 ? 32 : 40;
}

void text(Context& context, std::string_view text, Role role, Font font) {
    Rect area = next_area(context, line_height(font.size));
    area.x1 = area.x0 + text_width(context, text, font);
    text_mid(context, {area.x0, (area.y0 + area.y1) / 2}, text, {role, Tone::ink}, font);
    advance(area);
}

namespace {

// The part of a word that fits, up to its last underscore where it has one: a kernel's name.
std::size_t part_that_fits(const Context& context, std::string_view word, Font font, float width_px) {
    std::size_t end = word.size();
    const auto begins_a_letter = [&] { return (static_cast<unsigned char>(word[end]) & 0xC0) != 0x80; };
    while (end > 1 && text_width(context, word.substr(0, end), font) > width_px)
        for (--end; end > 1 && !begins_a_letter();) --end;
    const auto underscore = word.substr(0, end).rfind('_');
    return end < word.size() && underscore != std::string_view::npos ? underscore + 1 : end;
}

void wrap_line(const Context& context, std::string_view text, Font font, float width_px,
               std::vector<std::string_view>& lines) {
    while (!text.empty()) {
        std::size_t end = word_end(text);
        if (const auto part = part_that_fits(context, text.substr(0, end), font, width_px); part < end) {
            lines.push_back(text.substr(0, part));
            text.remove_prefix(part);
            continue;
        }
        while (end < text.size()) {  // one word more, as long as it fits
            const auto next = word_end(text, end + 1);
            if (text_width(context, text.substr(0, next), font) > width_px) break;
            end = next;
        }
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

}  // namespace

std::vector<std::string_view> wrap_lines(const Context& context, std::string_view text, Font font,
                                         float width_px) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {  // code has lines of its own
        const auto end = std::min(text.find('\n'), text.size());
        if (end == 0) lines.push_back({});
        wrap_line(context, text.substr(0, end), font, width_px, lines);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

void wrapped(Context& context, std::string_view text, Role role, Font font) {
    paragraph(context, text, role, font, 0);
}

void warning(Context& context, std::string_view text, Font font) {
    const Rect area = next_area(context, line_height(font.size));
    alert(context, {area.x0 + context.px(7), (area.y0 + area.y1) / 2}, {Role::warning});
    paragraph(context, text, Role::warning, font, context.px(22));
}

namespace {

// tail_share: of the letters that stay, how many are of the end.
std::string cut(const Context& context, std::string_view words, Font font, float width_px,
                double tail_share) {
    if (text_width(context, words, font) <= width_px) return std::string(words);
    std::vector<std::size_t> letters;  // where each begins; UTF-8
    for (std::size_t i = 0; i < words.size(); ++i)
        if ((static_cast<unsigned char>(words[i]) & 0xC0) != 0x80) letters.push_back(i);
    const auto keeping = [&](std::size_t count) {
        const auto tail = static_cast<std::size_t>(static_cast<double>(count) * tail_share);
        const std::string_view head = words.substr(0, letters[count - tail]),
                               end = tail == 0 ? "" : words.substr(letters[letters.size() - tail]);
        return std::string(head) + "\u2026" + std::string(end);
    };
    std::size_t fits = 0, too_many = letters.size();  // the most letters that fit, found by halves
    while (too_many - fits > 1) {
        const std::size_t count = (fits + too_many) / 2;
        (text_width(context, keeping(count), font) <= width_px ? fits : too_many) = count;
    }
    return keeping(fits);
}

}  // namespace

std::string cut_end(const Context& context, std::string_view words, Font font, float width_px) {
    return cut(context, words, font, width_px, 0);
}

std::string cut_middle(const Context& context, std::string_view words, Font font, float width_px) {
    return cut(context, words, font, width_px, 0.7);
}

}  // namespace fp8lab::ui
