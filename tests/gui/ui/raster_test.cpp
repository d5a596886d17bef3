// Pictures without a GPU: each pixel once, and the same figure at every scale.
#include "labs/ui/raster.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/gui/gui.h"

using namespace fp8lab;

namespace {

std::array<int, 3> pixel(const ui::Picture& picture, int x, int y) {
    const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) +
                     static_cast<std::size_t>(x)) *
                    3;
    return {picture.rgb[at], picture.rgb[at + 1], picture.rgb[at + 2]};
}

ui::Picture drawn(const std::function<void(ImDrawList&)>& draw) {
    test::Gui gui({40, 30});
    gui.raw_frame([&](ui::Context&) { draw(*ImGui::GetBackgroundDrawList()); });
    return ui::rasterize(*ImGui::GetDrawData(), *ImGui::GetIO().Fonts, {0, 0, 0});
}

Figure curve() {
    Figure figure{.id = "f", .title = "A line", .x = {.label = "x"}, .y = {.label = "y"}};
    figure.line("e4m3", data({0, 1, 2}), data({0, 4, 1}), {.color = {Role::e4m3}, .width = 3});
    return figure;
}

}  // namespace

TEST_CASE("a rectangle covers its pixels and no other, the two triangles' common edge is drawn once") {
    const ui::Picture picture = drawn([](ImDrawList& list) {
        list.AddRectFilled({4, 5}, {20, 15}, IM_COL32(255, 255, 255, 128));
    });
    REQUIRE(picture.width == 40);
    REQUIRE(picture.height == 30);
    for (int y = 0; y < picture.height; ++y)
        for (int x = 0; x < picture.width; ++x) {
            const bool inside = x >= 4 && x < 20 && y >= 5 && y < 15;
            CHECK(pixel(picture, x, y) == (inside ? std::array{128, 128, 128} : std::array{0, 0, 0}));
        }
}

TEST_CASE("what is clipped is not drawn, and colours keep their channels") {
    const ui::Picture picture = drawn([](ImDrawList& list) {
        list.PushClipRect({10, 10}, {12, 12});
        list.AddRectFilled({0, 0}, {40, 30}, IM_COL32(10, 20, 30, 255));
        list.PopClipRect();
    });
    CHECK(pixel(picture, 10, 10) == std::array{10, 20, 30});
    CHECK(pixel(picture, 9, 10) == std::array{0, 0, 0});
    CHECK(pixel(picture, 12, 11) == std::array{0, 0, 0});
}

TEST_CASE("a fan around a point covers each pixel once") {
    const ui::Picture picture = drawn([](ImDrawList& list) {
        list.Flags &= ~ImDrawListFlags_AntiAliasedFill;
        list.AddCircleFilled({20, 15}, 12, IM_COL32(255, 255, 255, 100), 24);
    });
    std::set<int> seen;
    for (int y = 0; y < picture.height; ++y)
        for (int x = 0; x < picture.width; ++x) seen.insert(pixel(picture, x, y)[0]);
    CHECK(seen == std::set<int>{0, 100});
}

TEST_CASE(
    "a figure is painted at 1, 2 and 4 times the size, in its colours, and the window's context is left "
    "alone") {
    test::Gui gui;
    const ImGuiContext* before = ImGui::GetCurrentContext();
    for (const float scale : {1.0F, 2.0F, 4.0F}) {
        const ui::Picture picture = ui::paint_picture(curve(), {.width = 400, .height = 300, .scale = scale});
        CHECK(picture.width == static_cast<int>(400 * scale));
        CHECK(picture.height == static_cast<int>(300 * scale));
        CHECK(pixel(picture, 1, 1) == std::array{255, 255, 255});
        const Rgba ink = rgba(Theme::light, {Role::e4m3});
        std::size_t of_curve = 0;
        for (int y = 0; y < picture.height; ++y)
            for (int x = 0; x < picture.width; ++x)
                of_curve += pixel(picture, x, y) == std::array<int, 3>{ink.r, ink.g, ink.b} ? 1 : 0;
        CHECK(static_cast<float>(of_curve) > 400 * scale * scale);  // 3 px wide over most of the width
    }
    CHECK(ImGui::GetCurrentContext() == before);
}
