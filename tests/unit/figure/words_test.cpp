#include "core/figure/words.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/figure/svg.h"

namespace fp8lab {
namespace {

bool says(const Figure& figure, const std::string& sentence) {
    for (const std::string& one : to_words(figure))
        if (one == sentence) return true;
    for (const std::string& one : to_words(figure)) MESSAGE(one);
    return false;
}

TEST_CASE("a figure is told as title, axes and one sentence a series") {
    Figure f{.id = "loss", .title = "The curves stay together", .subtitle = "thin: each batch"};
    f.x = {.label = "step", .range = Range{0, 2000}};
    f.y = {.label = "loss", .scale = Scale::log10, .range = Range{0.01, 1}};
    f.line("FP8##2", data({0, 1000, 1999}), data({1.25, 0.03, 0.041}));
    const auto words = to_words(f);
    REQUIRE(words.size() == 4);
    CHECK(words[0] == "The curves stay together.");
    CHECK(words[1] == "thin: each batch.");
    CHECK(words[2] ==
          "The x axis, step, runs from 0 to 2000. The y axis, loss, runs from 0.01 to 1, in powers of ten.");
    CHECK(words[3] ==
          "FP8: 3 points, from 1.25 at x = 0 to 0.041 at x = 1999; lowest 0.03 at x = 1000, highest 1.25 at "
          "x = 0.");
}

TEST_CASE("a figure that has words of its own is told by them, not by its series") {
    Figure f{.id = "codes", .title = "254 of 256 codes are numbers", .words = {"16 rows of 16 codes"}};
    f.line("outline", data({0, 1, 1, 0, 0}), data({0, 0, 1, 1, 0}));
    CHECK(to_words(f) == std::vector<std::string>{"254 of 256 codes are numbers.", "16 rows of 16 codes."});
}

TEST_CASE("what is not a number is counted, not told as one") {
    Figure f;
    f.line("a", data({0, 1, 2, 3}), data({std::nan(""), 2, INFINITY, 1}));
    CHECK(says(f,
               "a: 4 points, from 2 at x = 1 to 1 at x = 3; lowest 1 at x = 3, highest 2 at x = 1; 1 NaN; 1 "
               "infinite."));
    Figure none;
    none.line("a", data({}), data({}))
        .scatter("", data({1}), data({-2}))
        .line("c", data({1, 5}), data({3, 3}));
    CHECK(says(none, "a: no points yet."));
    CHECK(says(none, "Points: 1 point, \u22122 at x = 1."));
    CHECK(says(none, "c: 2 points, all at 3, x from 1 to 5."));
    Figure all_nan;
    all_nan.line("d", data({1, 2}), data({std::nan(""), std::nan("")}));
    CHECK(says(all_nan, "d: 2 points; 2 NaN."));
}

TEST_CASE("every shape and mark has its sentence") {
    Figure f;
    f.bars("after", data({0, 1, 2, 4}), data({5, 9, 2}))
        .band("spread", data({0, 10}), data({-1, 0}), data({1, 3}))
        .heatmap("map", {.rows = 2, .cols = 2, .values = data({1, 2, std::nan(""), 4})})
        .vline("amax", 448)
        .hline("5 %", 5)
        .xspan("window", 1, 8)
        .yspan("pass", 0, 5)
        .text(2, 3, "look here");
    f.add("", Bracket{1, 4, 9, "exactly L = 4 steps"});
    for (const char* sentence :
         {"after: 3 bars from 0 to 4; highest 9 from 1 to 2, lowest 2 from 2 to 4.",
          "spread: a band from \u22121 to 1 at x = 0, from 0 to 3 at x = 10.",
          "map: 2 rows of 2 cells; least 1 in row 0, column 0, most 4 in row 1, column 1; 1 empty.",
          "amax: a line at x = 448.", "5 %: a level at y = 5.", "window: the range from x = 1 to 8.",
          "pass: the range from y = 0 to 5.", "Note at x = 2, y = 3: look here.",
          "Bracket from x = 1 to 4: exactly L = 4 steps."})
        CHECK(says(f, sentence));
}

TEST_CASE("notes that label an axis are one sentence") {
    Figure f;
    for (const char* label : {"0", "1", "2", "3"}) f.text(0, 0, label);
    f.hline("x", 1);
    f.text(2, 3, "a finding");
    CHECK(says(f, "Labels: 0, 1, 2, 3."));
    CHECK(says(f, "Note at x = 2, y = 3: a finding."));
}

TEST_CASE("an axis with names is told by them") {
    Figure figure{.id = "schemes", .x = {.label = "bits"}, .y = {.label = "nats"}};
    figure.x.names = {{.at = 1, .words = "INT4\n4.50"}, {.at = 2, .words = "NVFP4"}};
    figure.scatter("marks", data({1, 2}), data({3, 4}));
    CHECK(says(figure, "The x axis, bits, has INT4 4.50; NVFP4. The y axis, nats, runs from 2.95 to 4.05."));
}

TEST_CASE("the table is the first rows of the CSV, in 4 digits") {
    Figure f{.id = "t"};
    f.line("a, \"b\"", data({1, 2, 3}), data({1.0 / 3, -2, std::nan("")}));
    const FigureTable table = to_table(f, 2);
    CHECK(table.header == std::vector<std::string>{"series", "x", "y"});
    CHECK(table.total == 3);
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0] == std::vector<std::string>{"a, \"b\"", "1", "0.3333"});
    CHECK(table.rows[1][2] == "\u22122");
    CHECK(to_table(f, 9).rows.back()[2] == "NaN");
    CHECK(to_table(Figure{}, 5).total == 0);
}

TEST_CASE("the SVG of a figure tells it too") {
    Figure f{.id = "t", .title = "A & B"};
    f.hline("5 %", 5);
    const std::string svg = to_svg(f, {});
    CHECK(svg.find("<desc>A &amp; B. The x axis") != std::string::npos);
    CHECK(svg.find("5 %: a level at y = 5.</desc>") != std::string::npos);
}

}  // namespace
}  // namespace fp8lab
