// What is under and over words: they stand on one ground, and nothing is painted over them. The pixels between their
// baseline and the top of their capitals are painted again, without any glyph. What differs from the ground by less
// than kGround in contrast is part of it: a grid, a tint, a field. All else is a mark: a curve, a point, a bracket, a
// handle, the edge of a bar or a chip, a hairline. A label that must lie over marks has a rectangle of the
// ground's colour under it (TextMark::boxed), and so passes.
#pragma once

#include "labs/ui/raster.h"
#include "tests/gui/screens/words.h"

namespace fp8lab::test {

constexpr float kGround = 1.47F;

// The pixels of one band.
class Ground {
  public:
    Ground(Rect area, ImU32 color)
        : x0_(static_cast<int>(std::floor(area.x0))),
          y0_(static_cast<int>(std::floor(area.y0))),
          width_(static_cast<int>(std::ceil(area.x1)) - x0_),
          height_(static_cast<int>(std::ceil(area.y1)) - y0_),
          pixels_(static_cast<std::size_t>(std::max(width_, 0) * std::max(height_, 0)), unpack(color)) {}

    void paint(const std::array<const ImDrawVert*, 3>& v, Rect clip) {
        const Rect area =
            intersection(clip, {float(x0_), float(y0_), float(x0_ + width_), float(y0_ + height_)});
        ui::for_pixels(v, area, [&](int x, int y, const std::array<float, 3>& w) {
            Pixel color{};
            for (std::size_t k = 0; k < 3; ++k) {
                const Pixel corner = unpack(v[k]->col);
                for (std::size_t c = 0; c < 4; ++c) color[c] += w[k] * corner[c];
            }
            Pixel& under = pixels_[static_cast<std::size_t>((y - y0_) * width_ + x - x0_)];
            const float alpha = color[3] / 255;
            for (std::size_t c = 0; c < 3; ++c) under[c] += alpha * (color[c] - under[c]);
        });
    }
    // How many pixels are not of the ground.
    int marked() const {
        std::vector<float> light = luminances();
        if (light.empty()) return 0;
        std::vector<float> sorted = light;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
        std::nth_element(sorted.begin(), middle, sorted.end());
        return static_cast<int>(std::ranges::count_if(light, [&](float l) { return apart(l, *middle); }));
    }
    int changed(const Ground& before) const {
        const std::vector<float> now = luminances(), then = before.luminances();
        int count = 0;
        for (std::size_t i = 0; i < now.size(); ++i) count += apart(now[i], then[i]) ? 1 : 0;
        return count;
    }

  private:
    using Pixel = std::array<float, 4>;
    static Pixel unpack(ImU32 color) {
        return {float(color & 255U), float((color >> 8) & 255U), float((color >> 16) & 255U),
                float(color >> 24)};
    }
    static bool apart(float a, float b) {
        return std::max(a, b) + 0.05F > kGround * (std::min(a, b) + 0.05F);
    }
    std::vector<float> luminances() const {  // WCAG 2.1's, by a table
        static const auto kLinear = [] {
            std::array<float, 256> out{};
            for (std::size_t i = 0; i < 256; ++i) {
                const double c = double(i) / 255;
                out[i] = static_cast<float>(c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
            }
            return out;
        }();
        std::vector<float> out;
        out.reserve(pixels_.size());
        const auto linear = [&](float c) {
            return kLinear[static_cast<std::size_t>(std::clamp(c + 0.5F, 0.0F, 255.0F))];
        };
        for (const Pixel& p : pixels_)
            out.push_back(0.2126F * linear(p[0]) + 0.7152F * linear(p[1]) + 0.0722F * linear(p[2]));
        return out;
    }
    int x0_, y0_, width_, height_;
    std::vector<Pixel> pixels_;
};

// Sentences about words that have a mark under or over them.
inline std::vector<std::string> words_among_marks(const ui::Context& context, const std::vector<Words>& all,
                                                  std::string_view layer) {
    struct Place {
        const Words* words;
        Rect area;
        Ground now, under;
        bool drawn = false;
    };
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    std::vector<Place> places;
    for (const Words& words : all) {
        const Rect seen = intersection(intersection(words.band, words.clip), {0, 0, display.x, display.y});
        if (words.glyphs == 0 || !(seen.width() > 1 && seen.height() > 1)) continue;
        const Ground blank(seen, context.color(Role::surface));
        places.push_back({&words, seen, blank, blank});
    }
    // Most triangles are small and far from any words: cells say which bands are near.
    constexpr float kCell = 32;
    const auto columns = static_cast<std::size_t>(display.x / kCell) + 1,
               rows = static_cast<std::size_t>(display.y / kCell) + 1;
    std::vector<std::vector<std::size_t>> cells(columns * rows);
    const auto cell = [&](float px, std::size_t count) {
        return std::min(static_cast<std::size_t>(std::max(px, 0.0F) / kCell), count - 1);
    };
    for (std::size_t i = 0; i < places.size(); ++i)
        for (std::size_t y = cell(places[i].area.y0, rows); y <= cell(places[i].area.y1, rows); ++y)
            for (std::size_t x = cell(places[i].area.x0, columns); x <= cell(places[i].area.x1, columns); ++x)
                cells[y * columns + x].push_back(i);
    std::vector<std::size_t> seen_in(places.size(), 0);
    for_triangles(layer, [&](const ImDrawList&, const auto& v, std::size_t number, Rect clip, bool glyph) {
        if (glyph) return;
        const auto [x0, x1] = std::minmax({v[0]->pos.x, v[1]->pos.x, v[2]->pos.x});
        const auto [y0, y1] = std::minmax({v[0]->pos.y, v[1]->pos.y, v[2]->pos.y});
        const Rect box = intersection({x0, y0, x1, y1}, clip);
        if (!(box.x0 < box.x1 && box.y0 < box.y1)) return;
        for (std::size_t y = cell(box.y0, rows); y <= cell(box.y1, rows); ++y)
            for (std::size_t x = cell(box.x0, columns); x <= cell(box.x1, columns); ++x)
                for (const std::size_t i : cells[y * columns + x]) {
                    Place& place = places[i];
                    if (std::exchange(seen_in[i], number + 1) == number + 1) continue;
                    if (!place.drawn && number > place.words->first)
                        place.drawn = true, place.under = place.now;
                    place.now.paint(v, clip);
                }
    });
    std::vector<std::string> out;
    const int few =
        static_cast<int>(std::lround(3 * context.scale * context.scale));  // where a mark only touches
    for (Place& place : places) {
        if (!place.drawn) place.under = place.now;
        if (place.under.marked() > few)
            out.push_back(place.words->place() + " lies over a mark");
        else if (place.now.changed(place.under) > few)
            out.push_back(place.words->place() + " has a mark over it");
    }
    return out;
}

}  // namespace fp8lab::test
