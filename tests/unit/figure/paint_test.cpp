#include "core/figure/paint.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/unit/figure/recording_canvas.h"

namespace fp8lab {
namespace {

constexpr Rect kStage = {0, 0, 812, 320};

Figure loss() {
    Figure f{.id = "loss",
             .title = "The two curves stay together",
             .x = {.label = "step"},
             .y = {.label = "loss", .scale = Scale::log10}};
    std::vector<double> steps, a, b;
    for (int i = 0; i < 100; ++i)
        steps.push_back(i), a.push_back(std::exp(-i / 20.0) + 0.04), b.push_back(a.back() * 1.03);
    f.line("FP8", data(steps), data(b), {.color = {Role::e4m3}, .width = 3, .end_label = "FP8 0.0411"});
    f.line("BF16", data(steps), data(a),
           {.color = {Role::bf16}, .dash = Dash::dash, .end_label = "BF16 0.0397"});
    return f;
}

TEST_CASE("title, labels, legend and end labels stand in the figure and do not overlap") {
    for (const float width : {260.0F, 420.0F, 812.0F, 1200.0F}) {
        CAPTURE(width);
        RecordingCanvas canvas;
        paint(loss(), {}, canvas, {0, 0, width, 320});
        for (const char* words : {"curves", "step", "loss", "FP8 ", "0.0411", "BF16 ", "0.0397", "0.1"}) {
            CAPTURE(words);
            CHECK(canvas.find(words) != nullptr);
        }
        for (std::size_t i = 0; i < canvas.texts.size(); ++i) {
            const auto& a = canvas.texts[i];
            CAPTURE(a.words);
            CHECK(a.rect.x0 >= 0);
            CHECK(a.rect.x1 <= width + 0.5F);
            CHECK(a.rect.y1 <= 320);
            for (std::size_t j = i + 1; j < canvas.texts.size(); ++j) {
                const auto& b = canvas.texts[j];
                CAPTURE(b.words);
                const bool apart = a.rect.x1 <= b.rect.x0 + 1 || b.rect.x1 <= a.rect.x0 + 1 ||
                                   a.rect.y1 <= b.rect.y0 + 2 || b.rect.y1 <= a.rect.y0 + 2;
                CHECK(apart);
            }
        }
        CHECK(canvas.clips == 0);
    }
}

TEST_CASE("a text mark stays in the plot, and is left out where its room is narrower than its words") {
    for (const Anchor anchor : {Anchor::left, Anchor::center, Anchor::right}) {
        for (const double x : {0.0, 5.0, 10.0}) {
            Figure figure{.id = "marks", .x = {.range = Range{0, 10}}, .y = {.range = Range{0, 1}}};
            figure.add("", TextMark{.x = x, .y = 0.5, .text = "kept", .anchor = anchor});
            figure.add("", TextMark{.x = x, .y = 0.2, .text = "fits", .anchor = anchor, .room = Range{4, 5}});
            figure.add("",
                       TextMark{.x = x, .y = 0.5, .text = "wide", .anchor = anchor, .room = Range{4, 4.1}});
            RecordingCanvas canvas;
            const FigureLayout layout = lay_out(figure, {}, canvas, kStage);
            paint(figure, {}, layout, canvas);
            for (const char* words : {"kept", "fits"}) {
                REQUIRE(canvas.find(words));
                CHECK(canvas.find(words)->rect.x0 >= layout.plot.x0);
                CHECK(canvas.find(words)->rect.x1 <= layout.plot.x1);
            }
            CHECK_FALSE(canvas.find("wide"));
        }
    }
}

TEST_CASE("a note that would cover another is left out: brackets first, then what states the finding") {
    Figure figure{.id = "marks", .x = {.range = Range{0, 10}}, .y = {.range = Range{0, 1}}};
    figure.add("", TextMark{.x = 5, .y = 0.5, .text = "first"});
    figure.add("", TextMark{.x = 5.01, .y = 0.5, .text = "second"});
    figure.add("", TextMark{.x = 5.01, .y = 0.5, .text = "finding", .strong = true});
    figure.add("", TextMark{.x = 5, .y = 0.2, .text = "far"});
    RecordingCanvas canvas;
    paint(figure, {}, canvas, kStage);
    CHECK(canvas.find("finding"));
    CHECK(canvas.find("far"));
    CHECK_FALSE(canvas.find("first"));
    CHECK_FALSE(canvas.find("second"));
}

TEST_CASE(
    "names below an axis stand under their places in place of ticks, those outside the view are left out") {
    Figure figure{.id = "schemes",
                  .x = {.label = "bits", .range = Range{0.5, 3.5}},
                  .y = {.label = "nats", .range = Range{0, 1}}};
    figure.x.names = {
        {.at = 1, .words = "INT4\ng32\n4.50", .color = {Role::block, Tone::ink}, .strong = true},
        {.at = 2, .words = "NVFP4"},
        {.at = 9, .words = "away"}};
    for (const double x : {1.0, 2.0, 3.0}) figure.scatter("", data({x}), data({0.5}));
    RecordingCanvas canvas;
    const FigureLayout layout = lay_out(figure, {}, canvas, kStage);
    paint(figure, {}, layout, canvas);
    CHECK(layout.x_ticks.empty());
    CHECK_FALSE(canvas.find("away"));
    for (const auto& [words, at] : {std::pair{"INT4", 1.0}, {"g32", 1.0}, {"4.50", 1.0}, {"NVFP4", 2.0}}) {
        CAPTURE(words);
        const auto* text = canvas.find(words);
        REQUIRE(text);
        CHECK((text->rect.x0 + text->rect.x1) / 2 == doctest::Approx(layout.x.to_px(at)).epsilon(0.01));
        CHECK(text->rect.y0 > layout.plot.y1);
        CHECK(text->rect.y1 <= kStage.y1);
    }
    CHECK(canvas.find("INT4")->rect.y1 <= canvas.find("g32")->rect.y0 + 2);
    CHECK(canvas.find("4.50")->rect.y1 <= canvas.find("bits")->rect.y0 + 2);
    CHECK(canvas.find("INT4")->color == Color{Role::block, Tone::ink});
    CHECK(canvas.find("g32")->color == Color{Role::block, Tone::ink});
    CHECK(canvas.find("4.50")->color == Color{Role::muted});
}

TEST_CASE("curves carry their second cue: dash and width, legend in ink") {
    RecordingCanvas canvas;
    paint(loss(), {}, canvas, kStage);
    bool wide = false, dashed = false;
    for (const auto& strip : canvas.strips) {
        wide = wide || (strip.color.role == Role::e4m3 && strip.width == 3 && strip.dash == Dash::solid &&
                        strip.points.size() > 50);
        dashed = dashed ||
                 (strip.color.role == Role::bf16 && strip.dash == Dash::dash && strip.points.size() > 50);
    }
    CHECK(wide);
    CHECK(dashed);
    REQUIRE(canvas.find("BF16"));
    CHECK(canvas.find("BF16")->color == Color{Role::bf16, Tone::ink});
}

TEST_CASE("at most 5 grid lines, y labels right-aligned 12 px left of the plot") {
    RecordingCanvas canvas;
    const Figure figure = loss();
    const FigureLayout layout = lay_out(figure, {}, canvas, kStage);
    int lines = 0;
    for (const Tick& tick : layout.y_ticks) lines += !tick.label.empty();
    CHECK(lines >= 2);
    CHECK(lines <= 5);
    paint(figure, {}, layout, canvas);
    REQUIRE(canvas.find("0.3"));
    CHECK(canvas.find("0.3")->rect.x1 == doctest::Approx(layout.plot.x0 - 12));
    CHECK(layout.plot.x0 == 56);  // 44 + 12: stacked figures share it
}

TEST_CASE("a hidden series is not drawn but stays in the legend") {
    RecordingCanvas canvas;
    paint(loss(), {.hidden = {"FP8"}}, canvas, kStage);
    for (const auto& strip : canvas.strips)
        CHECK((strip.color.role != Role::e4m3 || strip.points.size() == 2));  // the sample only
    CHECK(canvas.find("FP8") != nullptr);
}

TEST_CASE("what follows ## in a name is not shown, and a name of ## alone is not in the legend") {
    RecordingCanvas canvas;
    Figure f;
    f.line("FP8##1", data({0, 1}), data({0, 1})).line("##2", data({0, 1}), data({0, 1}));
    const FigureLayout layout = lay_out(f, {}, canvas, kStage);
    CHECK(layout.legend.size() == 1);
    paint(f, {}, layout, canvas);
    CHECK(canvas.find("##") == nullptr);
}

TEST_CASE("a thumbnail is the data alone, in the whole rectangle") {
    RecordingCanvas canvas;
    paint(loss(), {}, canvas, kStage, {.bare = true});
    CHECK(canvas.texts.empty());
    CHECK(canvas.strips.size() == 2);
}

TEST_CASE("bars reach from their base to their heights, equal heatmap cells above 4,096 are merged") {
    RecordingCanvas canvas;
    Figure bars{.x = {.range = Range{0, 2}}, .y = {.range = Range{0, 10}}};
    bars.bars("n", data({0, 1, 2}), data({5, 10}));
    const FigureLayout layout = lay_out(bars, {}, canvas, kStage, {.bare = true});
    paint(bars, {}, layout, canvas);
    REQUIRE(canvas.rects.size() == 2);
    CHECK(canvas.rects[0].y0 == doctest::Approx(160));
    CHECK(canvas.rects[0].y1 == doctest::Approx(320));
    CHECK(canvas.rects[1].y0 == doctest::Approx(0));

    RecordingCanvas map_canvas;
    Figure map;
    std::vector<double> values(200 * 200, 0.25);
    values[200 * 100 + 100] = 1;
    map.heatmap("m", {.rows = 200, .cols = 200, .values = data(values)});
    paint(map, {}, map_canvas, {0, 0, 200, 200}, {.bare = true});
    CHECK(map_canvas.rects.size() == 202);  // one a row, three in the row with the odd cell
}

TEST_CASE("maps side by side, a picture's greys and cells of zero") {
    RecordingCanvas canvas;
    Figure figure;
    figure.heatmap("codes",
                   {.rows = 1, .cols = 2, .values = data({0, 6}), .lo = 0, .hi = 6, .zero = Color{Role::sat}},
                   {.color = {Role::block}});
    figure.heatmap("picture", {.rows = 1, .cols = 2, .values = data({0, 1}), .x0 = 4, .grey = true});
    CHECK(fit(figure).x == Range{0, 6});
    paint(figure, {}, canvas, {0, 0, 6, 1}, {.bare = true});
    REQUIRE(canvas.rects.size() == 4);
    CHECK(canvas.fills[0] == rgba(canvas.theme(), {Role::sat}));
    CHECK(canvas.fills[1] == rgba(canvas.theme(), {Role::block, Tone::fill}));
    CHECK(canvas.fills[2] == Rgba{0, 0, 0});
    CHECK(canvas.fills[3] == Rgba{255, 255, 255});
    CHECK(canvas.rects[2].x0 == doctest::Approx(4));
}

TEST_CASE("more than 2,000 markers become small squares, no more than there is room for") {
    RecordingCanvas canvas;
    std::vector<double> xs, ys;
    for (int i = 0; i < 100000; ++i)
        xs.push_back(std::fmod(i * 0.6180339887, 1)), ys.push_back(std::fmod(i * 0.4142135624, 1));
    Figure f;
    f.scatter("s", data(xs), data(ys));
    paint(f, {}, canvas, {0, 0, 100, 100}, {.bare = true});
    CHECK(canvas.polygons == 0);
    CHECK(canvas.rects.size() > 1500);
    CHECK(canvas.rects.size() <= 54 * 54);
}

TEST_CASE("a band is filled between its curves, a step band up to the next x") {
    RecordingCanvas canvas;
    Figure f{.x = {.range = Range{0, 4}}, .y = {.range = Range{0, 10}}};
    f.band("w", data({0, 2, 4}), data({0, 0, 0}), data({5, 10, 10}), {.color = {Role::e4m3}, .step = true});
    paint(f, {}, canvas, {0, 0, 400, 100}, {.bare = true});
    REQUIRE(canvas.rects.size() == 2);
    CHECK(canvas.rects[0].x1 == doctest::Approx(200));
    CHECK(canvas.rects[0].y0 == doctest::Approx(50));
    CHECK(canvas.rects[1].y0 == doctest::Approx(0));
}

TEST_CASE("the edges of a band are straight in px on logarithmic axes, as lines are") {
    RecordingCanvas canvas;
    Figure f{.x = {.scale = Scale::log2, .range = Range{1, 16}},
             .y = {.scale = Scale::log10, .range = Range{1, 100}}};
    f.band("w", data({1, 16}), data({1, 10}), data({10, 100}));
    paint(f, {}, canvas, {0, 0, 400, 100}, {.bare = true});
    REQUIRE(canvas.rects.size() == 400);
    for (const Rect& column : canvas.rects) {
        const float passed = (column.x0 + 0.5F) / 400;  // of the way from the lower left to the upper right
        CHECK(column.y0 == doctest::Approx(50 - 50 * passed));
        CHECK(column.y1 == doctest::Approx(100 - 50 * passed));
    }
}

TEST_CASE("a zoomed band shows nothing of what lies outside the view") {
    std::vector<double> x, lo, hi;  // 0 to 1, but for a peak at each end
    for (int i = 0; i <= 4000; ++i)
        x.push_back(i), lo.push_back(0), hi.push_back(i < 20 || i > 3980 ? 10 : 1);
    for (const bool step : {false, true})
        for (const Range range : {Range{1000, 1100}, Range{1000, 3000}}) {  // 1/4 and 5 samples a column
            CAPTURE(step);
            CAPTURE(range.hi);
            RecordingCanvas canvas;
            Figure f{.x = {.range = Range{0, 4000}}, .y = {.range = Range{0, 10}}};
            f.band("w", data(x), data(lo), data(hi), {.color = {Role::e4m3}, .step = step});
            paint(f, {.x = range}, canvas, {0, 0, 400, 100}, {.bare = true});
            REQUIRE(canvas.rects.size() == 1);
            CHECK(canvas.rects[0].y0 == doctest::Approx(90));
            CHECK(canvas.rects[0].x0 == doctest::Approx(0));
            CHECK(canvas.rects[0].x1 == doctest::Approx(400));
        }
}

}  // namespace
}  // namespace fp8lab
