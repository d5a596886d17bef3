// Notes of a figure and the marks under them.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/figure/paint_words.h"
#include "tests/unit/figure/recording_canvas.h"

using namespace fp8lab;

namespace {

constexpr Rect kStage{0, 0, 600, 400};

Figure empty() { return {.id = "notes", .x = {.range = Range{0, 10}}, .y = {.range = Range{0, 10}}}; }

bool meet(Rect a, Rect b) { return a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0; }

// Whether a rectangle of the surface's colour holds the words, painted before them or after.
bool has_ground(const RecordingCanvas& canvas, Rect words) {
    const Rgba surface = rgba(Theme::dark, {Role::surface});
    for (std::size_t i = 0; i < canvas.rects.size(); ++i) {
        const Rect r = canvas.rects[i];
        const Rgba fill = canvas.fills[i];
        if (fill.r == surface.r && fill.g == surface.g && fill.b == surface.b && fill.a > 200 &&
            r.x0 <= words.x0 && r.x1 >= words.x1)
            return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a note that has nothing under it stays where it was put, without a ground") {
    Figure figure = empty();
    figure.line("far", data({0, 10}), data({9, 9}), {.in_legend = false});
    figure.add("", TextMark{.x = 5, .y = 5, .text = "here", .dx = 8});
    RecordingCanvas canvas;
    const FigureLayout layout = lay_out(figure, {}, canvas, kStage);
    paint(figure, {}, layout, canvas);
    REQUIRE(canvas.find("here"));
    CHECK(canvas.find("here")->rect.x0 == doctest::Approx(layout.x.to_px(5) + 8));
    CHECK_FALSE(has_ground(canvas, canvas.find("here")->rect));
}

TEST_CASE("a note moves off curves, points, bars and brackets, and stays near its point") {
    const auto moved = [](auto&& add) {
        Figure figure = empty();
        add(figure);
        figure.add("", TextMark{.x = 5, .y = 5, .text = "moves", .dx = 8});
        RecordingCanvas canvas;
        const FigureLayout layout = lay_out(figure, {}, canvas, kStage);
        paint(figure, {}, layout, canvas);
        REQUIRE(canvas.find("moves"));
        const Rect words = canvas.find("moves")->rect;
        const auto at = [&](double x, double y) {
            return Point{static_cast<float>(layout.x.to_px(x)), static_cast<float>(layout.y.to_px(y))};
        };
        CHECK_FALSE(has_ground(canvas, words));
        CHECK(words.y0 > at(5, 5).y - 90);
        CHECK(words.y1 < at(5, 5).y + 90);
        return std::pair{words, at(5, 5)};
    };
    const Style plain{.color = {Role::e4m3}, .in_legend = false};
    {
        const auto [words, at] = moved([&](Figure& f) { f.line("", data({0, 10}), data({5, 5}), plain); });
        CHECK_FALSE(meet(words, {at.x - 1000, at.y - 1, at.x + 1000, at.y + 1}));
    }
    {
        const auto [words, at] = moved([&](Figure& f) {
            f.scatter("", data({5, 5.3}), data({5, 5}), plain);
        });
        CHECK_FALSE(meet(words, {at.x - 4, at.y - 4, at.x + 4, at.y + 4}));
    }
    {
        const auto [words, at] = moved([&](Figure& f) { f.bars("", data({5.1, 5.6}), data({9}), plain); });
        CHECK(words.x1 < at.x + 6);  // left of the bar
    }
    {
        const auto [words, at] = moved([&](Figure& f) { f.vline("", 5.4, plain); });
        CHECK(words.x1 < at.x + 20);
    }
}

TEST_CASE("a note among marks everywhere has a ground, painted after the marks and before its words") {
    Figure figure = empty();
    figure.add("", TextMark{.x = 5, .y = 5, .text = "stays"});
    for (int i = 0; i < 200; ++i)  // a line each 0.05, after the note
        figure.line("", data({0, 10}), data({0.05 * i, 0.05 * i}),
                    {.color = {Role::e4m3}, .in_legend = false});
    RecordingCanvas canvas;
    const FigureLayout layout = lay_out(figure, {}, canvas, kStage);
    paint(figure, {}, layout, canvas);
    REQUIRE(canvas.find("stays"));
    CHECK(canvas.find("stays")->rect.x0 == doctest::Approx(layout.x.to_px(5)));
    CHECK(has_ground(canvas, canvas.find("stays")->rect));
}

TEST_CASE("grids, tints and faint raw data are no marks") {
    Figure figure = empty();
    figure.xspan("", 2, 8, {.color = {Role::e4m3}, .in_legend = false});
    for (int i = 0; i < 200; ++i)
        figure.line("", data({0, 10}), data({0.05 * i, 0.05 * i}),
                    {.color = {Role::muted, Tone::line, 0.15F}, .in_legend = false});
    figure.add("", TextMark{.x = 5, .y = 5, .text = "here"});
    RecordingCanvas canvas;
    const FigureLayout layout = lay_out(figure, {}, canvas, kStage);
    paint(figure, {}, layout, canvas);
    CHECK(canvas.find("here")->rect.x0 == doctest::Approx(layout.x.to_px(5)));
    CHECK_FALSE(has_ground(canvas, canvas.find("here")->rect));
}

TEST_CASE("a note has a line for each of its text, the lines after the first are muted and move with it") {
    Figure figure = empty();
    figure.line("", data({0, 10}), data({5, 5}), {.color = {Role::e4m3}, .in_legend = false});
    figure.add("", TextMark{.x = 5, .y = 5, .text = "first\nsecond", .anchor = Anchor::center},
               {.color = {Role::text}, .in_legend = false});
    RecordingCanvas canvas;
    paint(figure, {}, canvas, kStage);
    const auto *first = canvas.find("first"), *second = canvas.find("second");
    REQUIRE((first && second));
    CHECK(second->rect.y0 == first->rect.y0 + 16);
    CHECK(second->color.role == Role::muted);
    CHECK((first->rect.x0 + first->rect.x1) / 2 == doctest::Approx((second->rect.x0 + second->rect.x1) / 2));
}
