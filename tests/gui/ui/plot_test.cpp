// The plot widget without a display: the mouse is fed to ImGui, the result is read from state and
// draw data.
#include "labs/ui/plot/plot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "labs/ui/plot/hover.h"
#include "tests/unit/figure/recording_canvas.h"

namespace fp8lab::ui {
namespace {

struct Gui {
    Gui() {
        ImGui::CreateContext();
        ImGuiIO& io = ImGui::GetIO();
        io.IniFilename = nullptr;
        io.DisplaySize = {1000, 700};
        io.DeltaTime = 1.0F / 60;
        prepare_hand();
        unsigned char* pixels = nullptr;
        int width = 0, height = 0;
        io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
        context.probes.enabled = true;
        move({-100, -100});
    }
    ~Gui() { ImGui::DestroyContext(); }

    PlotResult frame() {
        PlotResult result;
        ImGui::NewFrame();
        begin_frame(context);
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize({1000, window_height});
        ImGui::Begin("stage", nullptr, ImGuiWindowFlags_NoDecoration & ~ImGuiWindowFlags_NoScrollbar);
        result = plot(context, "plot", figure, state, rect, options);
        ImGui::Dummy({10, content_height});
        scroll = ImGui::GetScrollY();
        ImGui::End();
        ImGui::Render();
        return result;
    }
    void move(Point at) { feed_mouse(at.x, at.y); }
    void button(int index, bool down) { feed_button(index, down); }
    PlotResult hover(Point at) {  // two frames: an item under the mouse is known one frame later
        move(at);
        frame();
        return frame();
    }
    PlotResult drag(int index, Point from, Point to) {
        hover(from);
        button(index, true);
        frame();
        move({(from.x + to.x) / 2, (from.y + to.y) / 2});
        frame();
        move(to);
        frame();
        button(index, false);
        frame();
        return frame();
    }
    PlotResult click(Point at) {
        hover(at);
        button(0, true);
        frame();
        button(0, false);
        return frame();
    }
    void pause() {  // longer than a double click takes
        for (int i = 0; i < 60; ++i) frame();
    }
    PlotResult wheel(Point at, float notches) {
        hover(at);
        feed_wheel(notches);
        frame();
        return frame();
    }
    Point center() const {
        const Rect r = context.probes.items.find("plot")->second.rect;
        return {(r.x0 + r.x1) / 2, (r.y0 + r.y1) / 2};
    }
    Point legend(const std::string& series) const {
        const Rect r = context.probes.items.find("plot.legend." + series)->second.rect;
        return {(r.x0 + r.x1) / 2, (r.y0 + r.y1) / 2};
    }

    Context context;
    Figure figure;
    PlotState state;
    PlotOptions options;
    Rect rect = {50, 50, 850, 450};
    float window_height = 700, content_height = 10, scroll = 0;
};

Figure two_lines(Scale scale) {
    Figure figure{.id = "f",
                  .title = "Two lines",
                  .x = {.label = "x", .scale = scale},
                  .y = {.label = "y", .scale = scale}};
    figure.line("a", data({1, 10, 100}), data({1, 10, 100}));
    figure.line("b", data({1, 10, 100}), data({100, 10, 1}), {.color = {Role::bf16}, .dash = Dash::dash});
    return figure;
}

TEST_CASE("the wheel zooms at the cursor: the data under it stay, on every scale") {
    for (const Scale scale : {Scale::linear, Scale::log2, Scale::log10, Scale::symlog}) {
        CAPTURE(static_cast<int>(scale));
        Gui gui;
        gui.figure = two_lines(scale);
        const PlotResult first = gui.frame();
        const Point at = {
            std::floor(first.area.x0 + 0.3F * first.area.width()),  // ImGui's mouse is on whole pixels
            std::floor(first.area.y0 + 0.7F * first.area.height())};
        const PlotResult before = gui.hover(at);
        const PlotResult after = gui.wheel(at, 3);
        CHECK(after.x_at(at.x) == doctest::Approx(before.x_at(at.x)));
        CHECK(after.y_at(at.y) == doctest::Approx(before.y_at(at.y)));
        CHECK(after.extents.x.hi < before.extents.x.hi);
        CHECK(after.extents.x.lo > before.extents.x.lo);
        CHECK_FALSE(gui.state.follow);
    }
}

TEST_CASE("Shift, Ctrl and the axis strips choose the axis that the wheel zooms") {
    struct Row {
        bool shift, ctrl;
        float dx, dy;
        bool zooms_x, zooms_y;
    };
    for (const Row& row : {Row{true, false, 0, 0, true, false}, Row{false, true, 0, 0, false, true},
                           Row{false, false, -430, 0, false, true}, Row{false, false, 0, 190, true, false}}) {
        CAPTURE(row.dx);
        CAPTURE(row.dy);
        Gui gui;
        gui.figure = two_lines(Scale::linear);
        const PlotResult before = gui.frame();
        const Point center = gui.center();
        feed_modifiers(row.ctrl, row.shift);
        const float x = row.dx < 0 ? before.area.x0 - 20 : center.x,
                    y = row.dy > 0 ? before.area.y1 + 12 : center.y;
        const PlotResult after = gui.wheel({x, y}, 1);
        CHECK((after.extents.x != before.extents.x) == row.zooms_x);
        CHECK((after.extents.y != before.extents.y) == row.zooms_y);
    }
}

TEST_CASE("the wheel over a plot does not scroll the window around it") {
    Gui gui;
    gui.figure = two_lines(Scale::linear);
    gui.window_height = 500;
    gui.content_height = 2000;
    gui.frame();
    gui.wheel(gui.center(), -3);
    gui.frame();
    CHECK(gui.scroll == 0);
    gui.wheel({920, 300}, -3);  // beside the plot the window scrolls, so the check above can fail
    gui.frame();
    CHECK(gui.scroll > 0);
}

TEST_CASE("a left drag moves the data with the mouse, on linear and log axes") {
    for (const Scale scale : {Scale::linear, Scale::log10, Scale::log2, Scale::symlog}) {
        CAPTURE(static_cast<int>(scale));
        Gui gui;
        gui.figure = two_lines(scale);
        gui.frame();
        const Point from = gui.center(), to = {from.x + 60, from.y - 40};
        const PlotResult before = gui.frame();
        const PlotResult after = gui.drag(0, from, to);
        CHECK(after.x_at(to.x) == doctest::Approx(before.x_at(from.x)));
        CHECK(after.y_at(to.y) == doctest::Approx(before.y_at(from.y)));
    }
}

TEST_CASE("a right drag zooms to the box, Esc cancels it") {
    Gui gui;
    gui.figure = two_lines(Scale::log10);
    gui.frame();
    const Point a = gui.center(), b = {a.x + 100, a.y + 80};
    const PlotResult before = gui.frame();
    const PlotResult after = gui.drag(1, a, b);
    CHECK(after.extents.x.lo == doctest::Approx(before.x_at(a.x)));
    CHECK(after.extents.x.hi == doctest::Approx(before.x_at(b.x)));
    CHECK(after.extents.y.hi == doctest::Approx(before.y_at(a.y)));
    CHECK(after.extents.y.lo == doctest::Approx(before.y_at(b.y)));

    gui.hover(a);
    gui.button(1, true);
    gui.frame();
    gui.move(b);
    gui.frame();
    CHECK(gui.state.drag.box);
    feed_key(Key::escape, true);
    gui.frame();
    CHECK_FALSE(gui.state.drag.active);
    feed_key(Key::escape, false);
    gui.button(1, false);
    CHECK(gui.frame().extents.x == after.extents.x);
}

TEST_CASE("the x axis follows growing data until the user pans, and again after a double click") {
    Gui gui;
    const auto grow = [&](int n) {
        std::vector<double> xs;
        for (int i = 0; i < n; ++i) xs.push_back(i);
        gui.figure = {.id = "f"};
        gui.figure.line("a", data(xs), data(xs));
    };
    grow(10);
    CHECK(gui.frame().extents.x.hi == doctest::Approx(9 * 1.05));
    grow(20);
    CHECK(gui.frame().extents.x.hi == doctest::Approx(19 * 1.05));
    const Point center = gui.center();
    const PlotResult panned = gui.drag(0, center, {center.x + 50, center.y});
    CHECK_FALSE(gui.state.follow);
    grow(1000);
    CHECK(gui.frame().extents.x == panned.extents.x);
    gui.pause();
    gui.click(center);
    gui.click(center);
    CHECK(gui.state.follow);
    CHECK(gui.frame().extents.x.hi == doctest::Approx(999 * 1.05));
    CHECK(gui.frame().extents.y.hi == doctest::Approx(999 * 1.05));
}

TEST_CASE("a click in the legend hides a series and its part of the fit, a double click isolates one") {
    Gui gui;
    gui.figure = two_lines(Scale::linear);
    gui.figure.line("c", data({1, 2}), data({1, 1000}));
    gui.frame();
    CHECK(gui.frame().extents.y.hi > 1000);
    gui.click(gui.legend("c"));
    CHECK(gui.state.view.hidden == std::vector<std::string>{"c"});
    CHECK(gui.frame().extents.y.hi < 200);
    gui.pause();
    gui.click(gui.legend("c"));
    CHECK(gui.state.view.hidden.empty());
    gui.pause();
    gui.click(gui.legend("b"));
    gui.click(gui.legend("b"));
    CHECK(gui.state.view.hidden == std::vector<std::string>{"a", "c"});
}

TEST_CASE("the nearest sample is found within 12 px and no farther, a click returns it, a drag does not") {
    Gui gui;
    gui.figure = two_lines(Scale::log10);
    const PlotResult first = gui.frame();
    const Point sample = first.to_px(10, 10);
    const PlotResult near = gui.hover({sample.x + 8, sample.y});
    REQUIRE(near.nearest);
    CHECK(near.nearest->index == 1);
    CHECK(near.nearest->x == 10);
    CHECK_FALSE(gui.hover({sample.x + 13, sample.y}).nearest);
    const PlotResult clicked = gui.click({sample.x + 2, sample.y});
    REQUIRE(clicked.clicked);
    CHECK(clicked.clicked->y == 10);
    gui.pause();
    gui.hover({sample.x, sample.y});
    gui.button(0, true);
    gui.frame();
    gui.move({sample.x + 5, sample.y});
    gui.frame();
    gui.button(0, false);
    CHECK_FALSE(gui.frame().clicked);
}

TEST_CASE("a click in a heatmap returns its cell, row 0 on top") {
    Gui gui;
    gui.figure = {.id = "map"};
    gui.figure.heatmap("codes",
                       {.rows = 2, .cols = 4, .values = data({0, 1, 2, 3, 4, 5, 6, 7}), .lo = 0, .hi = 7});
    const Rect area = gui.frame().area;
    const PlotResult hit = gui.click({area.x0 + 0.6F * area.width(), area.y0 + 0.25F * area.height()});
    REQUIRE(hit.clicked);
    CHECK(hit.clicked->index == 2);
}

TEST_CASE("linked figures share the crosshair of the one under the mouse") {
    Gui gui;
    gui.figure = two_lines(Scale::linear);
    gui.frame();
    PlotState other;
    gui.hover(gui.center());
    link_cursors({&gui.state, &other});
    REQUIRE(gui.state.cursor_x);
    CHECK(other.cursor_x == gui.state.cursor_x);
    gui.hover({2, 2});
    CHECK_FALSE(gui.state.cursor_x);
    link_cursors({&gui.state, &other});
    CHECK_FALSE(other.cursor_x);
}

TEST_CASE("the tooltip has the digits that tables have, and values of narrow formats as they are") {
    Figure figure{.id = "digits"};
    figure.x = {.label = "x", .range = Range{0, 4}};
    figure.y = {.label = "y", .range = Range{0, 3}};
    figure.line("y", data({0, 1, 2, 3, 4}), data({0.001953125, 1.936955410000001, 1.0F / 3, 448, 2.5}), {});
    RecordingCanvas canvas;
    const FigureLayout layout = lay_out(figure, {}, canvas, {0, 0, 400, 300});
    const auto tooltip = [&](double x) {
        canvas.texts.clear();
        draw_crosshair(canvas, figure, {}, layout, x, true);
        std::string out;
        for (const auto& text : canvas.texts) out += text.words + "|";
        return out;
    };
    CHECK(tooltip(0).find("|0.001953125|") != std::string::npos);
    CHECK(tooltip(1).find("|1.937|") != std::string::npos);
    CHECK(tooltip(2).find("|0.3333|") != std::string::npos);
    CHECK(tooltip(3).find("|448|") != std::string::npos);
    CHECK(tooltip(4).find("|2.5|") != std::string::npos);
}

TEST_CASE("the tooltip gives the values of the figure below, named by its axis") {
    Gui gui;
    gui.figure = two_lines(Scale::linear);
    gui.frame();
    const auto vertices = [&] {
        gui.hover(gui.center());
        return ImGui::GetDrawData()->TotalVtxCount;
    };
    const int alone = vertices();
    const auto xs = std::get<LineSeries>(gui.figure.series.front().shape).x;
    Figure below{.id = "below", .y = {.label = "gap"}};
    below.line("FP8", xs, data(std::vector<double>(xs->size(), 2.5)));
    gui.options.below = &below;
    CHECK(vertices() - alone == 4 * 6);  // the glyphs of "gap" and "2.5"
}

TEST_CASE("zooming in stops at 64 ulp and never shows an empty axis") {
    Gui gui;
    gui.figure = {.id = "f"};
    gui.figure.line("a", data({1e6, 1e6 + 1}), data({0, 1}));
    gui.frame();
    const Point center = gui.center();
    for (int i = 0; i < 60; ++i) gui.wheel(center, 5);
    const Range x = gui.frame().extents.x;
    CHECK(x.hi - x.lo >= 64 * (std::nextafter(1e6, 2e6) - 1e6));
    CHECK(x.hi - x.lo < 1e-6);
}

// 16-bit indices: with and without the backend's vertex offsets, no index may point past what its command can
// reach.
TEST_CASE("a million points stay within 16-bit indices, with and without vertex offsets") {
    for (const bool offsets : {true, false})
        for (const int n : {100000, 1000000}) {
            CAPTURE(offsets);
            CAPTURE(n);
            Gui gui;
            if (!offsets) ImGui::GetIO().BackendFlags &= ~ImGuiBackendFlags_RendererHasVtxOffset;
            std::vector<double> xs, ys;
            for (int i = 0; i < n; ++i) xs.push_back(i), ys.push_back(std::sin(i * 0.7) + 0.001 * (i % 97));
            gui.figure = {.id = "f"};
            gui.figure.line("a", data(xs), data(ys))
                .line("b", data(xs), data(ys), {.dash = Dash::dash})
                .scatter("c", data(ys), data(ys));
            gui.frame();
            const ImDrawData* drawn = ImGui::GetDrawData();
            REQUIRE(drawn->CmdListsCount > 0);
            for (int l = 0; l < drawn->CmdListsCount; ++l) {
                const ImDrawList& list = *drawn->CmdLists[l];
                if (!offsets) CHECK(list.VtxBuffer.Size < 65536);
                for (const ImDrawCmd& command : list.CmdBuffer)
                    for (unsigned i = 0; i < command.ElemCount; ++i) {
                        const auto index =
                            command.VtxOffset + list.IdxBuffer[static_cast<int>(command.IdxOffset + i)];
                        if (index >= static_cast<unsigned>(list.VtxBuffer.Size))
                            FAIL("index " << index << " past the vertices");
                    }
                CHECK(std::all_of(list.VtxBuffer.begin(), list.VtxBuffer.end(), [](const ImDrawVert& v) {
                    return std::isfinite(v.pos.x) && std::isfinite(v.pos.y);
                }));
            }
        }
}

TEST_CASE("every scale draws the same figure, only larger") {
    Gui gui;
    gui.figure = two_lines(Scale::log10);
    gui.frame();
    const Rect one = gui.frame().area;
    gui.context.scale = 2;
    gui.rect = {50, 50, 950, 650};
    const Rect two = gui.frame().area;
    CHECK(two.x0 - gui.rect.x0 == doctest::Approx(2 * (one.x0 - 50)));
    CHECK(two.y0 - gui.rect.y0 == doctest::Approx(2 * (one.y0 - 50)));
}

TEST_CASE("figures with nothing to show, one point, constants or only NaN are drawn without harm") {
    const double nan = std::nan("");
    for (const auto& [xs, ys] :
         std::vector<std::pair<std::vector<double>, std::vector<double>>>{{{}, {}},
                                                                          {{1}, {1}},
                                                                          {{1, 2, 3}, {5, 5, 5}},
                                                                          {{nan}, {nan}},
                                                                          {{1, 2}, {nan, 3}},
                                                                          {{0, 1}, {-1, -2}},
                                                                          {{1, 2}, {INFINITY, -INFINITY}}})
        for (const Scale scale : {Scale::linear, Scale::log2, Scale::log10, Scale::symlog}) {
            Gui gui;
            gui.figure = {.id = "f", .title = "t", .x = {.label = "x"}, .y = {.label = "y", .scale = scale}};
            gui.figure.line("a", data(xs), data(ys))
                .scatter("b", data(xs), data(ys))
                .stems("c", data(xs), data(ys));
            gui.figure.bars("d", data(xs), data(ys))
                .bars("e", data(xs), data(ys), {}, true)
                .band("f", data(xs), data(ys), data(ys));
            gui.frame();
            gui.hover(gui.center());
            const PlotResult result = gui.wheel(gui.center(), 1);
            CHECK(result.extents.y.lo < result.extents.y.hi);
            CHECK(std::isfinite(result.extents.y.hi));
        }
}

TEST_CASE("a part of a figure has a button that shows the whole again") {
    Gui gui;
    gui.figure = two_lines(Scale::linear);
    const PlotResult whole = gui.frame();
    const auto there = [&] { return gui.context.probes.items.contains("plot.whole"); };
    CHECK_FALSE(there());
    gui.wheel(gui.center(), 3);
    REQUIRE(there());
    const Rect button = gui.context.probes.items.find("plot.whole")->second.rect;
    CHECK(gui.click({(button.x0 + button.x1) / 2, (button.y0 + button.y1) / 2}).extents.x.hi <=
          whole.extents.x.hi);
    const PlotResult after = gui.frame();
    CHECK(after.extents.x.lo == whole.extents.x.lo);
    CHECK(after.extents.x.hi == whole.extents.x.hi);
    CHECK(after.extents.y.hi == whole.extents.y.hi);
    CHECK(gui.state.follow);
    CHECK_FALSE(there());
}

TEST_CASE("a thumbnail takes no mouse and has no legend") {
    Gui gui;
    gui.figure = two_lines(Scale::linear);
    gui.options.bare = true;
    const PlotResult before = gui.frame();
    CHECK(before.area.x0 == gui.rect.x0);
    CHECK(gui.context.probes.items.count("plot.legend.a") == 0);
    CHECK(gui.wheel(gui.center(), 3).extents.x == before.extents.x);
}

}  // namespace
}  // namespace fp8lab::ui
