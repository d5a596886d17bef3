// Every text of the last frame with its rectangle: what it says from the record of ui::text_at(), where its ink is
// from the vertices themselves. So words that ImGui draws by itself are found too.
#pragma once

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "labs/ui/context.h"

namespace fp8lab::test {

inline Rect intersection(Rect a, Rect b) {
    return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}
inline Rect hull(Rect a, Rect b) {
    return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}
inline Rect rect_of(const ImRect& r) { return {r.Min.x, r.Min.y, r.Max.x, r.Max.y}; }
inline bool holds(Rect outer, Rect inner, float slack) {
    return inner.x0 >= outer.x0 - slack && inner.y0 >= outer.y0 - slack && inner.x1 <= outer.x1 + slack &&
           inner.y1 <= outer.y1 + slack;
}

struct Words {
    std::string text;  // empty: ImGui's own
    Rect rect;         // of the ink; where all of it was cut off, of the line
    Rect whole;        // as wide as it was asked for, as high as its ink
    Rect band;         // from the baseline to the top of the capitals: where it is read
    Rect clip;
    const ImGuiWindow* window = nullptr;
    int glyphs = 0;                   // drawn
    std::size_t first = 0, last = 0;  // its first and last triangle, in the order of drawing
    std::string place() const {
        const auto px = [](float value) { return std::to_string(static_cast<int>(value)); };
        const std::string said = text.empty() ? std::to_string(glyphs) + " letters" : "'" + text + "'";
        return said + " at " + px(rect.x0) + "," + px(rect.y0) + " to " + px(rect.x1) + "," + px(rect.y1) +
               " in " + (window == nullptr ? "?" : window->Name);
    }
};

// The windows of one layer: those of the sheet that lies over the others, or all where there is none. A toast lies
// over the panel and is a layer of its own.
inline bool in_layer(const ImGuiWindow* window, std::string_view layer) {
    if (window == nullptr) return false;
    const std::string_view root = window->RootWindow->Name;
    return layer.empty() ? root != "toast" : root == layer;
}
inline const ImGuiWindow* window_of(const ImDrawList& list) {
    return list._OwnerName == nullptr ? nullptr : ImGui::FindWindowByName(list._OwnerName);
}

// Calls visit(list, triangle, number, clip, is_glyph) for each triangle of a layer, in the order of drawing. A glyph's
// texture coordinates are not the white pixel's.
template <class Visit>
void for_triangles(std::string_view layer, Visit visit) {
    const ImDrawData& data = *ImGui::GetDrawData();
    const ImVec2 white = ImGui::GetFontTexUvWhitePixel();
    std::size_t number = 0;
    for (int i = 0; i < data.CmdListsCount; ++i) {
        const ImDrawList& list = *data.CmdLists[i];
        if (!in_layer(window_of(list), layer)) continue;
        for (const ImDrawCmd& command : list.CmdBuffer)
            for (unsigned k = 0; k + 2 < command.ElemCount; k += 3) {
                std::array<const ImDrawVert*, 3> v{};
                for (unsigned corner = 0; corner < 3; ++corner)
                    v[corner] = &list.VtxBuffer[static_cast<int>(
                        command.VtxOffset +
                        list.IdxBuffer[static_cast<int>(command.IdxOffset + k + corner)])];
                const ImVec4 c = command.ClipRect;
                const bool glyph = v[0]->uv.x != white.x || v[0]->uv.y != white.y;
                visit(list, v, number++, Rect{c.x, c.y, c.z, c.w}, glyph);
            }
    }
}

// ImGui's own words follow each other on a line, in one colour.
inline bool continues(const Words& words, Rect glyph, float scale) {
    const float gap = glyph.x0 - words.rect.x1;
    return glyph.y0 < words.rect.y1 && glyph.y1 > words.rect.y0 && gap > -3 * scale && gap < 8 * scale;
}

inline std::vector<Words> words_drawn(const ui::Context& context, std::string_view layer) {
    constexpr float kBaseline = 0.97F, kCapitals = 0.73F;  // of the size, in every face: labs/ui/fonts.h
    std::vector<Words> out;
    std::map<std::pair<const ImDrawList*, int>, std::size_t> by_end;  // list and one past the last vertex
    std::vector<int> begins;
    for (const ui::Probes::Text& text : context.probes.texts) {
        const ImGuiWindow* window = window_of(*text.list);
        if (!in_layer(window, layer)) continue;
        const float baseline = text.rect.y0 + kBaseline * text.size;
        if (text.last > text.first) by_end[{text.list, text.last}] = out.size();
        begins.push_back(text.first);
        out.push_back({.text = text.words,
                       .rect = text.rect,
                       .whole = text.rect,
                       .band = {text.rect.x0, baseline - kCapitals * text.size, text.rect.x1, baseline},
                       .clip = text.clip,
                       .window = window});
    }
    std::size_t open = out.size();  // ImGui's own words that the last glyph belongs to; out.size(): none
    ImU32 color = 0;
    for_triangles(
        layer, [&](const ImDrawList& list, const auto& v, std::size_t number, Rect clip, bool is_glyph) {
            if (!is_glyph) open = out.size();
            const Rect glyph{v[0]->pos.x, v[0]->pos.y, v[2]->pos.x, v[2]->pos.y};
            // The other half of a glyph's two triangles has no box of its own.
            if (!is_glyph || !(glyph.width() > 0.5F) || !(glyph.height() > 0.5F)) return;
            const int at = static_cast<int>(v[0] - list.VtxBuffer.Data);
            const auto found = by_end.upper_bound({&list, at});
            std::size_t index = out.size();
            if (found != by_end.end() && found->first.first == &list && begins[found->second] <= at)
                index = found->second;
            else if (open < out.size() && color == v[0]->col && continues(out[open], glyph, context.scale))
                index = open;
            if (index == out.size()) {
                out.push_back({.text = {}, .rect = glyph, .whole = {}, .band = {}, .clip = clip});
                out.back().window = window_of(list);
                open = index;
                color = v[0]->col;
            }
            Words& words = out[index];
            words.rect = words.glyphs++ == 0 ? glyph : hull(words.rect, glyph);
            if (words.glyphs == 1) words.first = number;
            words.last = number;
        });
    for (Words& words : out) {
        if (words.text.empty()) words.whole = words.band = words.rect;
        if (words.glyphs == 0) continue;
        words.whole.y0 = words.rect.y0, words.whole.y1 = words.rect.y1;
        words.band.x0 = words.rect.x0, words.band.x1 = words.rect.x1;
    }
    return out;
}

}  // namespace fp8lab::test
