// Draws ImGui's draw lists to pixels without a GPU, as the window's OpenGL backend does, for pictures in
// files. One sample per pixel; glyphs are at whole pixels, so the nearest texel is the exact one.
#pragma once

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/figure/figure.h"
#include "core/figure/paint.h"

namespace fp8lab::ui {

struct Picture {
    int width = 0, height = 0;
    std::vector<std::uint8_t> rgb;  // (height, width, 3), top row first
};

// Calls visit(x, y, weights) for each pixel of `area` (physical px, x1 and y1 excluded) whose centre the triangle has.
// weights: of the three vertices there. Of two triangles that share an edge, one takes the pixels on it.
template <class Visit>
void for_pixels(const std::array<const ImDrawVert*, 3>& triangle, Rect area, Visit visit) {
    // Twice the signed area of the triangle a, b, (x, y).
    const auto edge = [](ImVec2 a, ImVec2 b, double x, double y) {
        return (double(b.x) - double(a.x)) * (y - double(a.y)) -
               (double(b.y) - double(a.y)) * (x - double(a.x));
    };
    const auto owns = [](ImVec2 a, ImVec2 b) { return (a.y == b.y && b.x > a.x) || b.y < a.y; };  // clockwise
    auto v = triangle;
    double twice = edge(v[0]->pos, v[1]->pos, double(v[2]->pos.x), double(v[2]->pos.y));
    if (twice == 0 || !std::isfinite(twice)) return;
    const bool turned = twice < 0;
    if (turned) std::swap(v[1], v[2]), twice = -twice;
    const auto [left, right] = std::minmax({v[0]->pos.x, v[1]->pos.x, v[2]->pos.x});
    const auto [top, bottom] = std::minmax({v[0]->pos.y, v[1]->pos.y, v[2]->pos.y});
    const float x_lo = std::max(left, area.x0), x_hi = std::min(right, area.x1);
    const float y_lo = std::max(top, area.y0), y_hi = std::min(bottom, area.y1);
    if (!(x_lo < x_hi && y_lo < y_hi)) return;
    const auto first = [](float px) { return static_cast<int>(std::floor(px)); };
    const auto end = [](float px) { return static_cast<int>(std::ceil(px)); };
    const int x0 = first(x_lo), x1 = end(x_hi), y0 = first(y_lo), y1 = end(y_hi);
    for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) {
            std::array<double, 3> w{};
            bool inside = true;
            for (std::size_t k = 0; k < 3 && inside; ++k) {
                const ImVec2 a = v[(k + 1) % 3]->pos, b = v[(k + 2) % 3]->pos;
                w[k] = edge(a, b, x + 0.5, y + 0.5);
                inside = w[k] > 0 || (w[k] == 0 && owns(a, b));
            }
            if (!inside) continue;
            if (turned) std::swap(w[1], w[2]);
            visit(x, y, std::array{float(w[0] / twice), float(w[1] / twice), float(w[2] / twice)});
        }
}

// `atlas`: the texture of the lists.
Picture rasterize(const ImDrawData& draw_data, ImFontAtlas& atlas, Rgba ground);

struct PictureOptions {
    float width = 812, height = 420;  // logical px
    float scale = 1;
    Theme theme = Theme::light;
    View2D view = {};
};

// The figure as the window paints it, at any scale. Makes an ImGui context and fonts of its own and leaves
// the current one as it was. Throws Error{failed}: no fonts.
Picture paint_picture(const Figure& figure, const PictureOptions& options);

}  // namespace fp8lab::ui
