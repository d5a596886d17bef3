// What was drawn in the last frame, as rectangles: controls from the probes, words from words.h. Finds what is cut off
// and what lies over something else.
#pragma once

#include "tests/gui/screens/ground.h"
#include "tests/gui/screens/words.h"

namespace fp8lab::test {

inline bool scrolls(const ImGuiWindow* window, bool sideways) {
    for (; window != nullptr; window = window->ParentWindow) {
        if ((window->Flags & ImGuiWindowFlags_NoScrollWithMouse) != 0) continue;
        if (sideways && (window->Flags & ImGuiWindowFlags_HorizontalScrollbar) == 0) continue;
        if ((sideways ? window->ScrollMax.x : window->ScrollMax.y) > 0) return true;
    }
    return false;
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
    // marks: also words over or under marks, words that touch others, and words of which nothing is left.
    Faults(const ui::Context& context, std::string_view layer = {}, std::string_view prefix = {},
           bool marks = false)
        : scale_(context.scale), marks_(marks) {
        const ImVec2 display = ImGui::GetIO().DisplaySize;
        screen_ = {0, 0, display.x, display.y};
        words_ = words_drawn(context, layer);
        for (const auto& [name, item] : context.probes.items)
            if (name.starts_with(prefix) && (!prefix.empty() || !name.starts_with("toast")) &&
                item.rect.width() > 0 && item.rect.height() > 0)
                items_.push_back({name, &item, window_of(item)});
        leave_out_covered();
        cut_items();
        overlapping_items();
        cut_words();
        overlapping_words();
        words_over_edges();
        if (!marks_) return;
        for (const std::string& what : words_among_marks(context, words_, layer)) say(what);
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

    // What a prediction covers is not seen: its cover is a layer of its own, whose edge no words may cross. It is drawn
    // wider than its part of the stage.
    void leave_out_covered() {
        const float wider = 6 * scale_;
        std::vector<Rect> covers;
        for (const Control& c : items_)
            if (c.name.starts_with("cover.")) covers.push_back(c.item->rect);
        // By one cover or by several beside each other.
        const auto covered = [&](Rect rect) {
            if (!is_seen(rect)) return false;
            for (float x = rect.x0 + 1; x < rect.x1; x += 1)
                if (std::ranges::none_of(covers, [&](Rect cover) {
                        return holds({cover.x0 - wider, cover.y0, cover.x1 + wider, cover.y1},
                                     {x, rect.y0, x, rect.y1}, 1);
                    }))
                    return false;
            return true;
        };
        // A row that can be pressed reaches a little beyond its part; one that is cut by a cover stays.
        const auto hidden = [&](Rect rect) {
            return std::ranges::any_of(covers, [&](Rect cover) {
                const Rect both = intersection(cover, rect);
                return is_seen(both) && both.width() * both.height() >= 0.9F * rect.width() * rect.height();
            });
        };
        std::erase_if(items_,
                      [&](const Control& c) { return !c.name.starts_with("cover.") && hidden(seen(c)); });
        std::erase_if(words_, [&](const Words& w) {
            return std::string_view(w.window->Name).find("predict.lid") == std::string_view::npos &&
                   covered(intersection(w.rect, w.clip));
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
            const bool sideways = scrolls(w.window, true), down = scrolls(w.window, false);
            const bool beside = w.whole.x0 < area.x0 - kSlack || w.whole.x1 > area.x1 + kSlack;
            const bool above = w.whole.y0 < area.y0 - kSlack || w.whole.y1 > area.y1 + kSlack;
            if (w.glyphs == 0 && marks_ && !sideways && !down)
                say(w.place() + " is cut off");
            else if (w.glyphs > 0 && is_seen(intersection(w.rect, area))) {  // else it is scrolled away
                if (beside && !sideways) say(w.place() + " is cut at a side");
                if (above && !down) say(w.place() + " is cut above or below");
            }
        }
    }
    void overlapping_words() {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const Rect a = intersection(words_[i].rect, words_[i].clip);
            for (std::size_t j = i + 1; j < words_.size() && is_seen(a); ++j) {
                const Rect both = intersection(a, intersection(words_[j].rect, words_[j].clip));
                if (both.width() > 1.5F * scale_ && both.height() > 1.5F * scale_)
                    say(words_[i].place() + " and " + words_[j].place() + " overlap");
                else if (marks_ && touch(words_[i], words_[j]))
                    say(words_[i].place() + " and " + words_[j].place() + " touch");
            }
        }
    }
    // Two texts of one line read as one; a run in another face goes on exactly where the one before it ends.
    bool touch(const Words& a, const Words& b) const {
        if (a.text.empty() || b.text.empty() || a.glyphs == 0 || b.glyphs == 0) return false;
        const Words &left = a.rect.x0 < b.rect.x0 ? a : b, &right = a.rect.x0 < b.rect.x0 ? b : a;
        const float gap = right.rect.x0 - left.rect.x1, height = std::min(a.band.height(), b.band.height());
        const bool line =
            intersection(left.band, {left.band.x0, right.band.y0, left.band.x1, right.band.y1}).height() >
            height / 2;
        return line && gap < 3 * scale_ && gap > -3 * scale_ &&
               std::abs(right.whole.x0 - left.whole.x1) > scale_;
    }
    // Words lie in a control or beside it, never across its edge. A plot's edge is not one, nor that of a place which
    // is recorded for its words alone: nothing is drawn there, and what is drawn elsewhere is a mark.
    void words_over_edges() {
        for (const Control& c : items_) {
            if (c.item->axes || !c.item->words.empty()) continue;
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
    bool marks_;
    Rect screen_;
    std::vector<Words> words_;
    std::vector<Control> items_;
    std::string text_;
};

}  // namespace fp8lab::test
