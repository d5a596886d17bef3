// The words on the figure of bits and divergence: the own mix may be anywhere, so that names make room for its knob.
#include <array>

#include "labs/lower/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::lower {
namespace {

using ui::Context;

struct Place {
    Anchor anchor;
    float dx, dy;  // logical px
};
// In this order, where a name's own place is taken.
constexpr std::array<Place, 8> kPlaces = {{{Anchor::left, 12, 0},
                                           {Anchor::right, -12, 0},
                                           {Anchor::center, 0, 18},
                                           {Anchor::center, 0, -18},
                                           {Anchor::left, 16, 20},
                                           {Anchor::right, -16, 20},
                                           {Anchor::left, 16, -20},
                                           {Anchor::right, -16, -20}}};

bool meet(Rect a, Rect b) { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1; }

Rect words_at(const Context& c, const TextMark& mark, Place place, Point at, Font font) {
    const float width = ui::text_width(c, mark.text, font), half = c.px(9);
    const float before = place.anchor == Anchor::left     ? 0
                         : place.anchor == Anchor::center ? width / 2
                                                          : width;
    const float left = at.x + c.px(place.dx) - before, middle = at.y + c.px(place.dy);
    return {left, middle - half, left + width, middle + half};
}

}  // namespace

Figure LowerView::without_names(const Figure& figure, std::vector<Series>& names) {
    Figure out = figure;
    std::erase_if(out.series, [&](const Series& series) {
        const auto* const mark = std::get_if<TextMark>(&series.shape);
        if (!mark || !mark->boxed) return false;
        names.insert(mark->strong ? names.begin() : names.end(), series);  // the own mix chooses first
        return true;
    });
    return out;
}

void LowerView::draw_names(Context& c, const Figure& figure, const std::vector<Series>& names,
                           const ui::PlotResult& plot, Rect knob) {
    std::vector<Rect> taken = {knob};
    for (const Series& series : names) {  // the marks themselves
        const auto& mark = std::get<TextMark>(series.shape);
        const Point at = plot.to_px(mark.x, mark.y);
        const float half = c.px(7);
        taken.push_back({at.x - half, at.y - half, at.x + half, at.y + half});
    }
    for (const Series& series : figure.series)
        if (const auto* const mark = std::get_if<TextMark>(&series.shape)) {
            const Font font = mark->strong ? kBold15 : kSans13;
            Rect words =
                words_at(c, *mark, {mark->anchor, mark->dx, mark->dy}, plot.to_px(mark->x, mark->y), font);
            const float over = std::max(0.0F, words.x1 - plot.area.x1);  // moved inside by the plot
            taken.push_back({words.x0 - over, words.y0, words.x1 - over, words.y1});
        }
    for (const Series& series : names) {
        const auto& mark = std::get<TextMark>(series.shape);
        const Font font = mark.strong ? kBold15 : kSans13;
        const Point at = plot.to_px(mark.x, mark.y);
        const auto fits = [&](Rect words) {
            return words.x0 >= plot.area.x0 && words.x1 <= plot.area.x1 &&
                   words.y0 >= plot.area.y0 - c.px(8) && words.y1 <= plot.area.y1 &&
                   std::ranges::none_of(taken, [&](Rect other) { return meet(words, other); });
        };
        Rect words = words_at(c, mark, {mark.anchor, mark.dx, mark.dy}, at, font);
        for (std::size_t i = 0; i < kPlaces.size() && !fits(words); ++i)
            words = words_at(c, mark, kPlaces[i], at, font);
        if (!fits(words)) continue;  // the tooltip of the mark and the tables name it
        taken.push_back(words);
        const float rim = c.px(3);
        ui::fill_rect(c, {words.x0 - rim, words.y0 + rim / 3, words.x1 + rim, words.y1 - rim / 3},
                      {Role::surface, Tone::line, 0.92F});
        ui::text_mid(c, {words.x0, (words.y0 + words.y1) / 2}, mark.text, series.style.color, font);
    }
}

}  // namespace fp8lab::lower
