#include "labs/live/view_strip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "labs/ui/draw.h"

namespace fp8lab::live {
namespace {

// Fewer steps than pixels: a line through them.
template <class ToY>
void thin_strip(ui::Context& c, Rect area, const Envelope& envelope, ToY y_of) {
    const float steps = std::max(1.0F, static_cast<float>(envelope.stretches().size()) - 1);
    std::vector<ImVec2> line;
    for (std::size_t i = 0; i < envelope.stretches().size(); ++i) {
        const double value = envelope.stretches()[i].hi;
        if (!std::isnan(value))
            line.emplace_back(area.x0 + area.width() * static_cast<float>(i) / steps, y_of(value));
    }
    ImGui::GetWindowDrawList()->AddPolyline(line.data(), static_cast<int>(line.size()), c.color(Role::text),
                                            0, ui::hairline(c));
}

// A bar a pixel column from the least to the greatest value in it, joined to its neighbour.
template <class ToY>
void dense_strip(ui::Context& c, Rect area, const Envelope& envelope, std::size_t columns, ToY y_of) {
    const auto& stretches = envelope.stretches();
    const float px = ui::hairline(c);
    float above = NAN, below = NAN;  // of the column before
    for (std::size_t column = 0; column < columns; ++column) {
        double lo = std::numeric_limits<double>::quiet_NaN(), hi = lo;
        for (std::size_t i = column * stretches.size() / columns;
             i < (column + 1) * stretches.size() / columns; ++i) {
            lo = std::fmin(lo, stretches[i].lo);
            hi = std::fmax(hi, stretches[i].hi);
        }
        if (std::isnan(lo)) continue;
        const float top = y_of(hi), bottom = y_of(lo);
        const float x = area.x0 + px * static_cast<float>(column);
        const Rect bar{x, std::round(std::fmin(top, below)), x + px,
                       std::round(std::fmax(bottom, above)) + px};
        ui::fill_rect(c, bar, {Role::text});
        above = top;
        below = bottom;
    }
}

}  // namespace

void draw_strip(ui::Context& c, Rect area, const Envelope& envelope) {
    double lo = std::numeric_limits<double>::infinity(), hi = 0;
    for (const auto& stretch : envelope.stretches()) {
        lo = std::fmin(lo, stretch.lo);
        hi = std::fmax(hi, stretch.hi);
    }
    if (!(hi > 0)) return;
    if (hi < 1.001 * lo) {  // constant: half way up
        lo /= 2;
        hi *= 2;
    }
    const auto y_of = [&](double value) {
        return area.y1 - area.height() * static_cast<float>(std::log2(value / lo) / std::log2(hi / lo));
    };
    const float px = ui::hairline(c);
    const auto columns = static_cast<std::size_t>(area.width() / px);
    if (envelope.stretches().size() <= columns) {
        thin_strip(c, area, envelope, y_of);
    } else {
        dense_strip(c, area, envelope, columns, y_of);
    }
}

}  // namespace fp8lab::live
