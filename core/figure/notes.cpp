#include <algorithm>
#include <cmath>
#include <span>

#include "core/figure/legible.h"
#include "core/figure/paint_words.h"

namespace fp8lab {
namespace {

constexpr float kCell = 2;        // px
constexpr double kMarked = 1.47;  // between the tint of a window (1.4) and a hairline (1.5), look.md 3

Rect common(Rect a, Rect b) {
    return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

}  // namespace

MarkedCanvas::MarkedCanvas(Canvas& canvas, Rect area)
    : canvas_(canvas),
      area_(area),
      columns_(static_cast<std::size_t>(std::max(area.width(), 0.0F) / kCell) + 1),
      rows_(static_cast<std::size_t>(std::max(area.height(), 0.0F) / kCell) + 1),
      cells_(columns_ * rows_),
      clips_{area} {}

bool MarkedCanvas::is_ground(Rgba fill) const {
    return contrast_ratio(fill, rgba(theme(), {Role::surface})) < kMarked;
}

void MarkedCanvas::mark(Rect rect) {
    const Rect r = common(rect, clips_.back());
    if (!(r.x0 < r.x1 && r.y0 < r.y1)) return;
    const auto cell = [](float px, std::size_t count) {
        return std::min(static_cast<std::size_t>(px / kCell), count - 1);
    };
    for (std::size_t y = cell(r.y0 - area_.y0, rows_); y <= cell(r.y1 - area_.y0, rows_); ++y)
        for (std::size_t x = cell(r.x0 - area_.x0, columns_); x <= cell(r.x1 - area_.x0, columns_); ++x)
            cells_[y * columns_ + x] = true;
}

bool MarkedCanvas::marked(Rect rect) const {
    const Rect r = common(rect, area_);
    if (!(r.x0 < r.x1 && r.y0 < r.y1)) return false;
    const auto cell = [](float px, std::size_t count) {
        return std::min(static_cast<std::size_t>(px / kCell), count - 1);
    };
    for (std::size_t y = cell(r.y0 - area_.y0, rows_); y <= cell(r.y1 - area_.y0, rows_); ++y)
        for (std::size_t x = cell(r.x0 - area_.x0, columns_); x <= cell(r.x1 - area_.x0, columns_); ++x)
            if (cells_[y * columns_ + x]) return true;
    return false;
}

void MarkedCanvas::line_strip(std::span<const Point> points, Color color, float width, Dash dash,
                              bool closed) {
    canvas_.line_strip(points, color, width, dash, closed);
    if (points.empty() || is_ground(rgba(theme(), color))) return;
    const float reach = width / 2;
    const auto segment = [&](Point a, Point b) {
        // Only its part inside the area: an end may be far away.
        const float length = std::hypot(b.x - a.x, b.y - a.y);
        if (!std::isfinite(length)) return;
        // A wide line, such as a bar, ends where its last point is.
        const Point across{std::max(0.5F, reach * std::fabs(b.y - a.y) / std::max(length, 1e-6F)),
                           std::max(0.5F, reach * std::fabs(b.x - a.x) / std::max(length, 1e-6F))};
        float from = 0, to = 1;
        const auto within = [&](float start, float step, float lo, float hi) {
            if (step == 0) return start >= lo && start <= hi;
            const auto [first, last] = std::minmax({(lo - start) / step, (hi - start) / step});
            from = std::max(from, first), to = std::min(to, last);
            return from <= to;
        };
        const Rect all = clips_.back();
        if (!within(a.x, b.x - a.x, all.x0 - reach, all.x1 + reach) ||
            !within(a.y, b.y - a.y, all.y0 - reach, all.y1 + reach))
            return;
        const auto steps = static_cast<int>(std::ceil((to - from) * length / kCell)) + 1;
        for (int i = 0; i <= steps; ++i) {
            const float t = from + (to - from) * static_cast<float>(i) / static_cast<float>(steps);
            const Point p = {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
            mark({p.x - across.x, p.y - across.y, p.x + across.x, p.y + across.y});
        }
    };
    for (std::size_t i = 1; i < points.size(); ++i) segment(points[i - 1], points[i]);
    if (closed) segment(points.back(), points.front());
}

void MarkedCanvas::rect(Rect rect, Rgba fill) {
    canvas_.rect(rect, fill);
    if (!is_ground(fill))
        mark({rect.x0, rect.y0, std::max(rect.x1, rect.x0 + 1), std::max(rect.y1, rect.y0 + 1)});
}

void MarkedCanvas::polygon(std::span<const Point> convex, Color fill) {
    canvas_.polygon(convex, fill);
    if (convex.empty() || is_ground(rgba(theme(), fill))) return;
    Rect box{convex[0].x, convex[0].y, convex[0].x, convex[0].y};
    for (const Point p : convex)
        box = {std::min(box.x0, p.x), std::min(box.y0, p.y), std::max(box.x1, p.x), std::max(box.y1, p.y)};
    mark(box);
}

void MarkedCanvas::push_clip(Rect rect) {
    canvas_.push_clip(rect);
    clips_.push_back(common(rect, clips_.back()));
}

void MarkedCanvas::pop_clip() {
    canvas_.pop_clip();
    clips_.pop_back();
}

namespace {

constexpr float kAboveTicks = 11;            // from the axis to the labels of its ticks
constexpr float kEdge = 4;                   // a point on the plot's edge has its words too
constexpr float kNotePitch = 16;             // of the lines of a note, px
constexpr float kRim = 3;                    // of the rectangle under words
constexpr float kBoxed = 0.92F;              // its opacity: what is under it stays to be seen, below kMarked
constexpr float kMove = 18, kFarthest = 54;  // a note moves up and down by steps, and no farther
constexpr float kBeside = 12;                // between a point and the words that move to its other side

float px(const Axis& axis, double value, float otherwise) {
    const double at = axis.to_px(value);
    return std::isnan(at) ? otherwise : static_cast<float>(std::clamp(at, -1e6, 1e6));
}

Color ink_of(const Style& style) {
    Color color = toned(style.color, Tone::ink);
    if (color.role == Role::axis) color.role = Role::muted;  // axis grey is a stroke's, too faint for words
    return color;
}

bool overlap(Rect a, Rect b) { return a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0; }

class NoteMaker {
  public:
    NoteMaker(const Series& series, const FigureLayout& layout, Canvas& canvas)
        : series_(series), layout_(layout), plot_(layout.plot), canvas_(canvas) {}

    template <class Data>
    std::optional<Note> operator()(const Data&) const {
        return {};
    }
    std::optional<Note> operator()(const VLine& mark) const {
        const float x = px(layout_.x, mark.x, -1);
        if (!(x >= plot_.x0 && x <= plot_.x1)) return {};
        auto note = words(name(), kSans13);
        if (note) beside(*note, x, 6, {plot_.y0, plot_.y0 + kMove, plot_.y0 + 2 * kMove});
        return note;
    }
    std::optional<Note> operator()(const HLine& mark) const {
        const float y = px(layout_.y, mark.y, -1);
        if (!(y >= plot_.y0 && y <= plot_.y1)) return {};
        auto note = words(name(), kSans13);
        if (note)
            for (const float left : {plot_.x1 - note->width, plot_.x0 + 8})
                for (const float top : {y - 19, y + 3}) note->places.push_back({left, top});
        return note;
    }
    std::optional<Note> operator()(const XSpan& mark) const {
        const float x0 = std::max(px(layout_.x, mark.lo, plot_.x0), plot_.x0),
                    x1 = std::min(px(layout_.x, mark.hi, plot_.x1), plot_.x1);
        if (x0 >= x1) return {};
        auto note = words(name(), kBold13);
        if (note) note->places = {{centred((x0 + x1) / 2, note->width), plot_.y0 - 19}};
        return note;
    }
    std::optional<Note> operator()(const YSpan& mark) const {
        const float y0 = std::max(px(layout_.y, mark.hi, plot_.y0), plot_.y0),
                    y1 = std::min(px(layout_.y, mark.lo, plot_.y1), plot_.y1);
        if (y0 >= y1 || name().empty()) return {};
        auto note = words(display_name(series_), kSans13);
        if (!note) return {};
        note->lines.front().ink = {Role::muted};
        note->places = {{plot_.x0 + 8, y0 - 19}, {plot_.x0 + 8, y0 + 2}};
        if (y0 - 19 < plot_.y0 - 20) std::swap(note->places[0], note->places[1]);
        return note;
    }
    std::optional<Note> operator()(const Bracket& mark) const {
        const float x0 = px(layout_.x, mark.x0, plot_.x0), x1 = px(layout_.x, mark.x1, plot_.x1),
                    y = px(layout_.y, mark.y, plot_.y0);
        if (!(x1 > plot_.x0 && x0 < plot_.x1 && y > plot_.y0 - kEdge && y < plot_.y1)) return {};
        auto note = words(mark.text, kSans13);
        if (!note) return {};
        note->rank = 0;
        const float left = centred((x0 + x1) / 2, note->width);
        note->places = {{left, y - 20}, {left, y + 4}};
        return note;
    }
    std::optional<Note> operator()(const TextMark& mark) const {
        const Point at = {px(layout_.x, mark.x, -1e6F), px(layout_.y, mark.y, -1e6F)};
        const Rect bled{plot_.x0 - kEdge, plot_.y0 - kEdge, plot_.x1 + kEdge, plot_.y1 + kEdge};
        if (!bled.contains(at)) return {};
        auto note = words(mark.text, mark.strong ? kBold15 : kSans13);
        if (!note) return {};
        note->rank = mark.strong ? 1 : 2;
        note->align = mark.anchor == Anchor::left ? 0.0F : mark.anchor == Anchor::center ? 0.5F : 1.0F;
        note->boxed = mark.boxed;
        if (mark.room && note->width > px(layout_.x, mark.room->hi, 0) - px(layout_.x, mark.room->lo, 0))
            return {};
        note->ground = mark.ground;
        if (mark.ground) note->lines.front().ink = ground_for_words(canvas_.theme(), *mark.ground).ink;
        const float first = line_height(note->font) / 2;
        const float lowest = plot_.y1 + kAboveTicks - note->area({}).y1;  // above the labels of the ticks
        note->places = {
            {aligned(at.x + mark.dx, note->width, mark.anchor), std::min(at.y + mark.dy - first, lowest)}};
        if (mark.ground || mark.room) return note;  // it belongs where it is: in a bar, over a segment
        // The other side of its point, then up and down.
        const Anchor other = mark.anchor == Anchor::left ? Anchor::right : Anchor::left;
        const float dx = mark.anchor == Anchor::center ? kBeside : std::max(std::fabs(mark.dx), kBeside);
        const float below =
            kNotePitch * static_cast<float>(note->lines.size() - 1);  // the lines after the first
        for (float moved = 0; moved <= kFarthest; moved += kMove)
            for (const float dy : {-moved, moved}) {
                const float up = at.y - std::fabs(mark.dy) - below - moved - first,
                            top = at.y + mark.dy + dy - first;
                note->places.push_back({aligned(at.x + mark.dx, note->width, mark.anchor), top});
                if (dy == 0 || moved == 0) {
                    note->places.push_back({aligned(at.x + mark.dx, note->width, mark.anchor), up});
                }
                if (other == Anchor::right || mark.anchor == Anchor::center)
                    note->places.push_back({aligned(at.x - dx, note->width, Anchor::right), top});
                if (other == Anchor::left || mark.anchor == Anchor::center)
                    note->places.push_back({aligned(at.x + dx, note->width, Anchor::left), top});
            }
        return note;
    }

  private:
    std::string_view name() const {
        return series_.style.in_legend ? display_name(series_) : std::string_view{};
    }
    float inside(float left, float width) const {
        return std::max(plot_.x0, std::min(left, plot_.x1 - width));
    }
    float centred(float x, float width) const { return inside(x - width / 2, width); }
    float aligned(float x, float width, Anchor anchor) const {
        return inside(x - (anchor == Anchor::left ? 0 : anchor == Anchor::center ? width / 2 : width), width);
    }
    void beside(Note& note, float x, float gap, std::initializer_list<float> tops) const {
        for (const float top : tops)
            for (const float left : {x + gap, x - gap - note.width}) note.places.push_back({left, top});
    }
    // A line each; those after the first are muted.
    std::optional<Note> words(std::string_view text, Font font) const {
        if (text.empty()) return {};
        Note note{.lines = {}, .font = font, .places = {}};
        while (!text.empty()) {
            const auto end = std::min(text.find('\n'), text.size());
            const bool first = note.lines.empty();
            note.lines.push_back({std::string(text.substr(0, end)),
                                  first ? ink_of(series_.style) : Color{Role::muted},
                                  first ? font : kSans13});
            const Note::Line& line = note.lines.back();
            note.width = std::max(note.width, canvas_.text_width(line.text, line.font));
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        return note;
    }

    const Series& series_;
    const FigureLayout& layout_;
    Rect plot_;
    Canvas& canvas_;
};

// Words over words read as neither: a note that would cover another is left out.
std::vector<Note> shown_notes(const Figure& figure, const View2D& view, const FigureLayout& layout,
                              Canvas& canvas) {
    constexpr float kLeading = 2;  // of a line's box, above and below its letters
    std::vector<Note> all, out;
    for (const Series& series : figure.series)
        if (!is_hidden(view, series))
            if (auto note = note_of(series, layout, canvas)) all.push_back(std::move(*note));
    std::ranges::stable_sort(all, {}, &Note::rank);
    for (Note& note : all) {
        Rect area = note.area(note.places.front());
        area.y0 += kLeading, area.y1 -= kLeading;
        const bool crowded = note.rank > 0 && std::ranges::any_of(out, [&](const Note& other) {
                                 Rect taken = other.area(other.places.front());
                                 taken.y0 += kLeading, taken.y1 -= kLeading;
                                 return overlap(area, taken);
                             });
        if (!crowded) out.push_back(std::move(note));
    }
    return out;
}

}  // namespace

Rect Note::area(Point at) const {
    const float more = kNotePitch * static_cast<float>(lines.size() - 1) + (lines.size() > 1 ? lead() : 0);
    return {at.x, at.y, at.x + width, at.y + line_height(font) + more};
}

float Note::lead() const { return font.size > kSans13.size ? 4 : 0; }

Rect Note::read(Point at) const {
    Rect out = area(at);
    out.x0 -= 2, out.x1 += 2;
    out.y0 += 0.2F * font.size;  // capitals begin 0.24 of the size below the top
    out.y1 -= 0.1F * font.size;
    return out;
}

void paint_box(Canvas& canvas, Rect words) {
    canvas.rect(Rect{words.x0 - kRim, words.y0 + 1, words.x1 + kRim, words.y1 - 1},
                Color{Role::surface, Tone::line, kBoxed});
}

std::optional<Note> note_of(const Series& series, const FigureLayout& layout, Canvas& canvas) {
    return std::visit(NoteMaker(series, layout, canvas), series.shape);
}

void paint_notes(const Figure& figure, const View2D& view, const FigureLayout& layout, MarkedCanvas& canvas,
                 std::vector<Rect> taken) {
    std::vector<Note> notes = shown_notes(figure, view, layout, canvas);
    const Rect plot = layout.plot;
    const std::size_t given = taken.size();
    for (std::size_t i = 0; i < notes.size(); ++i) {
        Note& note = notes[i];
        const auto free = [&](Point at) {
            const Rect area = note.area(at);
            const bool own = at.x == note.places.front().x && at.y == note.places.front().y;
            // Where it was put it stands as close to other notes as they were put.
            const auto others = std::span(taken).first(own ? given : taken.size());
            if (std::ranges::any_of(others, [&](const Rect& other) { return overlap(area, other); }) ||
                canvas.marked(note.read(at)))
                return false;
            if (own) return true;
            if (area.x0 < plot.x0 || area.x1 > plot.x1 || area.y0 < plot.y0 || area.y1 > plot.y1)
                return false;
            for (std::size_t j = i + 1; j < notes.size(); ++j)
                if (overlap(area, notes[j].area(notes[j].places.front()))) return false;
            return true;
        };
        const auto place =
            note.boxed || note.ground ? note.places.end() : std::ranges::find_if(note.places, free);
        const bool boxed = place == note.places.end();
        const Point at = boxed ? note.places.front() : *place;
        const Rect area = note.area(at);
        taken.push_back(area);
        if (note.ground) {
            const Theme theme = canvas.theme();
            canvas.rect(area, blend(rgba(theme, *note.ground), rgba(theme, {Role::surface})));
        } else if (boxed) {
            paint_box(canvas, area);
        }
        for (std::size_t l = 0; l < note.lines.size(); ++l) {
            const Note::Line& line = note.lines[l];
            const float before = (note.width - canvas.text_width(line.text, line.font)) * note.align;
            canvas.text(
                {at.x + before, at.y + kNotePitch * static_cast<float>(l) + (l > 0 ? note.lead() : 0)},
                line.text, line.ink, line.font);
        }
    }
}

}  // namespace fp8lab
