// What was drawn in the last frame, as rectangles: controls from the probes, words from the vertices
// themselves. Finds what is cut off and what lies over something else.
#pragma once

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "labs/ui/context.h"

namespace fp8lab::test {

inline Rect intersection(Rect a, Rect b) {
    return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}
inline Rect rect_of(const ImRect& r) { return {r.Min.x, r.Min.y, r.Max.x, r.Max.y}; }
inline bool holds(Rect outer, Rect inner, float slack) {
    return inner.x0 >= outer.x0 - slack && inner.y0 >= outer.y0 - slack && inner.x1 <= outer.x1 + slack &&
           inner.y1 <= outer.y1 + slack;
}

// Glyphs that follow each other on a line in one colour.
struct Words {
    Rect rect;
    Rect clip;
    const ImGuiWindow* window = nullptr;
    int glyphs = 0;
    std::string place() const {
        return std::to_string(glyphs) + " letters at " + std::to_string(static_cast<int>(rect.x0)) + "," +
               std::to_string(static_cast<int>(rect.y0)) + " to " +
               std::to_string(static_cast<int>(rect.x1)) + "," + std::to_string(static_cast<int>(rect.y1)) +
               " in " + (window == nullptr ? "?" : window->Name);
    }
};

inline bool scrolls(const ImGuiWindow* window, bool sideways) {
    for (; window != nullptr; window = window->ParentWindow) {
        if ((window->Flags & ImGuiWindowFlags_NoScrollWithMouse) != 0) continue;
        if (sideways && (window->Flags & ImGuiWindowFlags_HorizontalScrollbar) == 0) continue;
        if ((sideways ? window->ScrollMax.x : window->ScrollMax.y) > 0) return true;
    }
    return false;
}

// The windows of one layer: those of the sheet that lies over the others, or all where there is none. A toast lies
// over the panel and is a layer of its own.
inline bool in_layer(const ImGuiWindow* window, std::string_view layer) {
    if (window == nullptr) return false;
    const std::string_view root = window->RootWindow->Name;
    return layer.empty() ? root != "toast" : root == layer;
}

// A box of a glyph: a triangle whose texture coordinates are not the white pixel's, by its first and third
// corner.
inline std::vector<Words> words_drawn(float scale, std::string_view layer) {
    std::vector<Words> out;
    const ImDrawData& data = *ImGui::GetDrawData();
    const ImVec2 white = ImGui::GetFontTexUvWhitePixel();
    for (int i = 0; i < data.CmdListsCount; ++i) {
        const ImDrawList& list = *data.CmdLists[i];
        const ImGuiWindow* window =
            list._OwnerName == nullptr ? nullptr : ImGui::FindWindowByName(list._OwnerName);
        if (!in_layer(window, layer)) continue;
        ImU32 color = 0;
        bool open = false;
        for (const ImDrawCmd& command : list.CmdBuffer) {
            open = false;
            for (unsigned k = 0; k + 2 < command.ElemCount; k += 3) {
                const auto vertex = [&](unsigned corner) -> const ImDrawVert& {
                    const auto index = list.IdxBuffer[static_cast<int>(command.IdxOffset + k + corner)];
                    return list.VtxBuffer[static_cast<int>(command.VtxOffset + index)];
                };
                const ImDrawVert &a = vertex(0), &c = vertex(2);
                if (a.uv.x == white.x && a.uv.y == white.y) {
                    open = false;
                    continue;
                }
                const Rect glyph{a.pos.x, a.pos.y, c.pos.x, c.pos.y};
                if (!(glyph.width() > 0.5F) || !(glyph.height() > 0.5F)) continue;  // the quad's other half
                if (open && color == a.col) {
                    Rect& line = out.back().rect;
                    const float gap = glyph.x0 - line.x1;
                    const bool same_line = glyph.y0 < line.y1 && glyph.y1 > line.y0;
                    if (same_line && gap > -3 * scale && gap < 8 * scale) {
                        line = {line.x0, std::min(line.y0, glyph.y0), std::max(line.x1, glyph.x1),
                                std::max(line.y1, glyph.y1)};
                        ++out.back().glyphs;
                        continue;
                    }
                }
                const ImVec4 clip = command.ClipRect;
                out.push_back({glyph, {clip.x, clip.y, clip.z, clip.w}, window, 1});
                color = a.col;
                open = true;
            }
        }
    }
    return out;
}

// The innermost window that the item's clip lies in.
inline const ImGuiWindow* window_of(const ui::Probes::Item& item) {
    const ImGuiWindow* best = nullptr;
    float least = 0;
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
        if (!window->WasActive) continue;
        const Rect area = rect_of(window->InnerClipRect);
        const Rect whole = rect_of(window->OuterRectClipped);
        if (!holds(area, item.clip, 1) && !holds(whole, item.clip, 1)) continue;
        const float size = area.width() * area.height();
        if (best == nullptr || size <= least) {
            best = window;
            least = size;
        }
    }
    return best;
}

// One sentence for everything that is wrong with the frame; empty: nothing. layer: the window of a sheet;
// only what is in it counts then, and its controls begin with `prefix`.
class Faults {
  public:
    Faults(const ui::Context& context, std::string_view layer = {}, std::string_view prefix = {})
        : scale_(context.scale) {
        const ImVec2 display = ImGui::GetIO().DisplaySize;
        screen_ = {0, 0, display.x, display.y};
        words_ = words_drawn(scale_, layer);
        for (const auto& [name, item] : context.probes.items)
            if (name.starts_with(prefix) && (!prefix.empty() || !name.starts_with("toast")) &&
                item.rect.width() > 0 && item.rect.height() > 0)
                items_.push_back({name, &item, window_of(item)});
        drop_covered();
        cut_items();
        overlapping_items();
        cut_words();
        overlapping_words();
        words_over_edges();
    }
    const std::string& all() const { return text_; }

  private:
    struct Control {
        std::string name;
        const ui::Probes::Item* item;
        const ImGuiWindow* window;
    };
    void say(const std::string& what) { text_ += (text_.empty() ? "" : "; ") + what; }
    static Rect seen(const Control& control) { return intersection(control.item->rect, control.item->clip); }
    static bool is_seen(Rect r) { return r.width() > 1 && r.height() > 1; }

    // What a prediction covers is drawn under its cover and not seen.
    void drop_covered() {
        std::vector<Rect> covers;
        for (const Control& c : items_)
            if (c.name.starts_with("cover.")) covers.push_back(c.item->rect);
        const auto under = [&](Rect rect) {
            return std::ranges::any_of(covers,
                                       [&](Rect cover) { return is_seen(intersection(cover, rect)); });
        };
        std::erase_if(items_,
                      [&](const Control& c) { return !c.name.starts_with("cover.") && under(c.item->rect); });
        std::erase_if(words_, [&](const Words& w) {
            const bool lid = w.window != nullptr &&
                             std::string_view(w.window->Name).find("predict.lid") != std::string_view::npos;
            return !lid && under(w.rect);
        });
    }
    void cut_items() {
        for (const Control& c : items_) {
            const Rect area = intersection(c.item->clip, screen_);
            const Rect rect = c.item->rect;
            if (!scrolls(c.window, true) && (rect.x0 < area.x0 - kSlack || rect.x1 > area.x1 + kSlack))
                say(c.name + " is cut at a side");
            if (!scrolls(c.window, false) && (rect.y0 < area.y0 - kSlack || rect.y1 > area.y1 + kSlack))
                say(c.name + " is cut above or below");
        }
    }
    // Allowed: the smaller has its centre in the larger: a part of it, or a handle on its edge. The two ends
    // of a short interval meet.
    void overlapping_items() {
        for (std::size_t i = 0; i < items_.size(); ++i) {
            for (std::size_t j = i + 1; j < items_.size(); ++j) {
                const Rect a = seen(items_[i]), b = seen(items_[j]), both = intersection(a, b);
                if (both.width() <= kSlack || both.height() <= kSlack) continue;
                if (items_[i].name.ends_with("_hi") && items_[j].name.ends_with("_lo")) continue;
                const bool a_smaller = a.width() * a.height() < b.width() * b.height();
                const Rect small = a_smaller ? a : b, large = a_smaller ? b : a;
                const Point centre{(small.x0 + small.x1) / 2, (small.y0 + small.y1) / 2};
                if (!holds(large, {centre.x, centre.y, centre.x, centre.y}, 1))
                    say(items_[i].name + " and " + items_[j].name + " overlap");
            }
        }
    }
    void cut_words() {
        for (const Words& w : words_) {
            const Rect area = intersection(w.clip, screen_);
            if (!is_seen(intersection(w.rect, area))) continue;  // scrolled away
            const float slack = kSlack;
            if (!scrolls(w.window, true) && (w.rect.x0 < area.x0 - slack || w.rect.x1 > area.x1 + slack))
                say(w.place() + " are cut at a side");
            if (!scrolls(w.window, false) && (w.rect.y0 < area.y0 - slack || w.rect.y1 > area.y1 + slack))
                say(w.place() + " are cut above or below");
        }
    }
    void overlapping_words() {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const Rect a = intersection(words_[i].rect, words_[i].clip);
            for (std::size_t j = i + 1; j < words_.size() && is_seen(a); ++j) {
                const Rect both = intersection(a, intersection(words_[j].rect, words_[j].clip));
                if (both.width() > 1.5F * scale_ && both.height() > 1.5F * scale_)
                    say(words_[i].place() + " and " + words_[j].place() + " overlap");
            }
        }
    }
    // Words lie in a control or beside it, never across its edge. A plot's edge is not one.
    void words_over_edges() {
        for (const Control& c : items_) {
            if (c.item->axes) continue;
            const Rect control = seen(c);
            if (!is_seen(control)) continue;
            for (const Words& w : words_) {
                const Rect line = intersection(w.rect, w.clip), both = intersection(line, control);
                if (!is_seen(line) || both.width() <= 2 * scale_ || both.height() <= 2 * scale_) continue;
                if (holds(control, line, 2 * scale_) || holds(line, control, 2 * scale_)) continue;
                say(w.place() + " lie across the edge of " + c.name);
            }
        }
    }

    static constexpr float kSlack = 1.5F;
    float scale_;
    Rect screen_;
    std::vector<Words> words_;
    std::vector<Control> items_;
    std::string text_;
};

}  // namespace fp8lab::test
