// Draws ImGui's draw lists to pixels without a GPU, as the window's OpenGL backend does, for pictures in
// files. One sample per pixel; glyphs are at whole pixels, so the nearest texel is the exact one.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <vector>

#include "core/figure/figure.h"
#include "core/figure/paint.h"

namespace fp8lab::ui {

struct Picture {
    int width = 0, height = 0;
    std::vector<std::uint8_t> rgb;  // (height, width, 3), top row first
};

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
