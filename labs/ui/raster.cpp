#include "labs/ui/raster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "labs/ui/fonts.h"
#include "labs/ui/plot/imgui_canvas.h"

namespace fp8lab::ui {
namespace {

struct Texture {
    unsigned char* alpha = nullptr;
    int width = 0, height = 0;
    float at(float u, float v) const {
        const int x = std::clamp(static_cast<int>(u * static_cast<float>(width)), 0, width - 1);
        const int y = std::clamp(static_cast<int>(v * static_cast<float>(height)), 0, height - 1);
        return static_cast<float>(alpha[y * width + x]) / 255;
    }
};

// Twice the signed area of the triangle a, b, (x, y).
double edge(ImVec2 a, ImVec2 b, double x, double y) {
    return (double(b.x) - double(a.x)) * (y - double(a.y)) - (double(b.y) - double(a.y)) * (x - double(a.x));
}

// Of a clockwise triangle (y down): a pixel's centre on the edge belongs to it. Of two triangles that share
// the edge, one takes it.
bool owns(ImVec2 a, ImVec2 b) { return (a.y == b.y && b.x > a.x) || b.y < a.y; }

class Rasterizer {
  public:
    Rasterizer(Picture& picture, Texture texture) : picture_(picture), texture_(texture) {}

    void triangle(const ImDrawVert& first, const ImDrawVert& second, const ImDrawVert& third, ImVec4 clip) {
        std::array<const ImDrawVert*, 3> v = {&first, &second, &third};
        double area = edge(v[0]->pos, v[1]->pos, double(v[2]->pos.x), double(v[2]->pos.y));
        if (area == 0 || !std::isfinite(area)) return;
        if (area < 0) std::swap(v[1], v[2]), area = -area;
        const auto [left, right] = std::minmax({v[0]->pos.x, v[1]->pos.x, v[2]->pos.x});
        const auto [top, bottom] = std::minmax({v[0]->pos.y, v[1]->pos.y, v[2]->pos.y});
        const int x0 = first_pixel(std::max(left, clip.x)),
                  x1 = end_pixel(std::min(right, clip.z), picture_.width);
        const int y0 = first_pixel(std::max(top, clip.y)),
                  y1 = end_pixel(std::min(bottom, clip.w), picture_.height);
        for (int y = y0; y < y1; ++y)
            for (int x = x0; x < x1; ++x) {
                std::array<double, 3> w{};
                bool inside = true;
                for (std::size_t k = 0; k < 3 && inside; ++k) {
                    const ImVec2 a = v[(k + 1) % 3]->pos, b = v[(k + 2) % 3]->pos;
                    w[k] = edge(a, b, x + 0.5, y + 0.5);
                    inside = w[k] > 0 || (w[k] == 0 && owns(a, b));
                }
                if (inside) shade(x, y, v, {float(w[0] / area), float(w[1] / area), float(w[2] / area)});
            }
    }

  private:
    static int first_pixel(float edge_px) { return std::max(0, static_cast<int>(std::floor(edge_px))); }
    static int end_pixel(float edge_px, int size) {
        return std::min(size, static_cast<int>(std::ceil(std::max(edge_px, 0.0F))));
    }

    void shade(int x, int y, const std::array<const ImDrawVert*, 3>& v, const std::array<float, 3>& w) {
        std::array<float, 4> color{};
        float tu = 0, tv = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            tu += w[k] * v[k]->uv.x;
            tv += w[k] * v[k]->uv.y;
            for (std::size_t c = 0; c < 4; ++c)
                color[c] += w[k] * static_cast<float>((v[k]->col >> (8 * c)) & 0xFFU);
        }
        const float alpha = color[3] / 255 * texture_.at(tu, tv);
        const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(picture_.width) +
                         static_cast<std::size_t>(x)) *
                        3;
        for (std::size_t c = 0; c < 3; ++c) {
            std::uint8_t& under = picture_.rgb[at + c];
            under = static_cast<std::uint8_t>(
                std::lround(alpha * color[c] + (1 - alpha) * static_cast<float>(under)));
        }
    }

    Picture& picture_;
    Texture texture_;
};

// Another ImGui context for a while.
class ContextForAWhile {
  public:
    ContextForAWhile() : before_(ImGui::GetCurrentContext()), own_(ImGui::CreateContext()) {
        ImGui::SetCurrentContext(own_);
    }
    ~ContextForAWhile() {
        ImGui::DestroyContext(own_);
        ImGui::SetCurrentContext(before_);
    }
    ContextForAWhile(const ContextForAWhile&) = delete;
    ContextForAWhile& operator=(const ContextForAWhile&) = delete;

  private:
    ImGuiContext* before_;
    ImGuiContext* own_;
};

}  // namespace

Picture rasterize(const ImDrawData& draw_data, ImFontAtlas& atlas, Rgba ground) {
    Picture picture{static_cast<int>(draw_data.DisplaySize.x), static_cast<int>(draw_data.DisplaySize.y), {}};
    const auto pixels = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height);
    for (std::size_t i = 0; i < pixels; ++i)
        picture.rgb.insert(picture.rgb.end(), {ground.r, ground.g, ground.b});
    Texture texture;
    atlas.GetTexDataAsAlpha8(&texture.alpha, &texture.width, &texture.height);
    Rasterizer raster(picture, texture);
    for (int n = 0; n < draw_data.CmdListsCount; ++n) {
        const ImDrawList& list = *draw_data.CmdLists[n];
        for (const ImDrawCmd& command : list.CmdBuffer) {
            const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
            const ImDrawIdx* indices = list.IdxBuffer.Data + command.IdxOffset;
            for (unsigned i = 0; i + 2 < command.ElemCount; i += 3)
                raster.triangle(vertices[indices[i]], vertices[indices[i + 1]], vertices[indices[i + 2]],
                                command.ClipRect);
        }
    }
    return picture;
}

Picture paint_picture(const Figure& figure, const PictureOptions& options) {
    constexpr float kMargin = 16;  // as the SVG's
    const ContextForAWhile context;
    Context own;
    own.theme = options.theme;
    own.scale = options.scale;
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {std::round(own.px(options.width)), std::round(own.px(options.height))};
    io.DeltaTime = 1.0F / 60;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    load_fonts(own);
    ImGui::NewFrame();
    begin_frame(own);
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(io.DisplaySize);
    ImGui::Begin("picture", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoBackground);
    ImGuiCanvas canvas(own);
    paint(figure, options.view, canvas,
          {kMargin, kMargin, options.width - kMargin, options.height - kMargin});
    ImGui::End();
    ImGui::Render();
    return rasterize(*ImGui::GetDrawData(), *io.Fonts, rgba(options.theme, {Role::surface}));
}

}  // namespace fp8lab::ui
