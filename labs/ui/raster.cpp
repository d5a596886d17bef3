#include "labs/ui/raster.h"

#include <algorithm>
#include <cmath>

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

class Rasterizer {
  public:
    Rasterizer(Picture& picture, Texture texture) : picture_(picture), texture_(texture) {}

    void triangle(const ImDrawVert& first, const ImDrawVert& second, const ImDrawVert& third, ImVec4 clip) {
        const std::array<const ImDrawVert*, 3> v = {&first, &second, &third};
        const Rect area{std::max(clip.x, 0.0F), std::max(clip.y, 0.0F),
                        std::min(clip.z, static_cast<float>(picture_.width)),
                        std::min(clip.w, static_cast<float>(picture_.height))};
        for_pixels(v, area, [&](int x, int y, const std::array<float, 3>& w) { shade(x, y, v, w); });
    }

  private:
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
