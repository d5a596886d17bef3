#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/figure/csv.h"
#include "core/figure/svg.h"

namespace fp8lab {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
    return n;
}

// Every tag is closed in order and every & starts an entity.
bool is_well_formed(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
        const std::size_t end = xml.find('>', at);
        if (end == std::string::npos) return false;
        const std::string tag = xml.substr(at + 1, end - at - 1);
        if (tag[0] == '/') {
            if (open.empty() || open.back() != tag.substr(1)) return false;
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(tag.substr(0, tag.find_first_of(" \n")));
        }
        if (count(tag, "\"") % 2 != 0) return false;
        at = end;
    }
    return open.empty() && count(xml, "&") == count(xml, "&amp;") + count(xml, "&lt;") + count(xml, "&gt;") +
                                                  count(xml, "&quot;");
}

TEST_CASE("CSV holds every sample, and its numbers read back to the same doubles") {
    const std::vector<double> xs = {0, 1, 2, 3, 4}, ys = {0.1, 1.0 / 3, 5e-324, std::nan(""), INFINITY};
    Figure f{.id = "loss", .title = "A finding", .x = {.label = "step"}};
    f.parameters = {{"seed", "4"}, {"note", "two\nlines"}};
    f.line("FP8##1", data(xs), data(ys));
    const std::vector<std::string> lines = lines_of(to_csv(f));
    const auto header = std::find(lines.begin(), lines.end(), "series,x,y");
    REQUIRE(header != lines.end());
    CHECK(std::all_of(lines.begin(), header, [](const std::string& line) { return line[0] == '#'; }));
    CHECK(std::find(lines.begin(), header, "# seed: 4") != header);
    CHECK(std::find(lines.begin(), header, "# note: two lines") != header);
    REQUIRE(lines.end() - header == 6);
    for (std::size_t i = 0; i < 5; ++i) {
        const std::string& line = header[static_cast<std::ptrdiff_t>(i) + 1];
        CHECK(line.substr(0, 4) == "FP8,");
        const double y = std::strtod(line.substr(line.rfind(',') + 1).c_str(), nullptr);
        CHECK((y == ys[i] || (std::isnan(y) && std::isnan(ys[i]))));
    }
}

TEST_CASE(
    "CSV adds columns for bars, bands and heatmaps only when there are any, names are quoted where needed") {
    Figure f;
    f.bars("after, \"E5M2\"", data({1, 2, 4}), data({10, 20})).band("b", data({0}), data({1}), data({2}));
    const std::vector<std::string> lines = lines_of(to_csv(f));
    REQUIRE(lines.size() == 4);
    CHECK(lines[0] == "series,x,x_hi,y,y_hi");
    CHECK(lines[1] == "\"after, \"\"E5M2\"\"\",1,2,10,");
    CHECK(lines[3] == "b,0,,1,2");
    Figure map;
    map.heatmap("m", {.rows = 1, .cols = 2, .values = data({5, 6})});
    CHECK(lines_of(to_csv(map)).back() == "m,1,0,6");
    CHECK(lines_of(to_csv(Figure{})) == std::vector<std::string>{"series,x,y"});
}

TEST_CASE("CSV is in full resolution whatever the screen shows") {
    std::vector<double> xs(50000);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<double>(i);
    Figure f;
    f.line("a", data(xs), data(xs));
    CHECK(lines_of(to_csv(f)).size() == 50001);
}

TEST_CASE("SVG is well-formed XML with text as text, its faces, and the parameters as metadata") {
    Figure f{.id = "f",
             .title = "a < b & \"c\"",
             .x = {.label = "|x|", .scale = Scale::log2},
             .y = {.label = "count"}};
    f.parameters = {{"seed", "4 & 5"}, {"recipe", "delayed:history=16"}};
    f.line("one <&>", data({1, 1024, 1 << 20}), data({1, 2, 3}),
           {.color = {Role::bf16}, .dash = Dash::dash, .end_label = "one 3"});
    f.xspan("window", 2, 64, {.color = {Role::e4m3}});
    for (const Theme theme : {Theme::dark, Theme::light, Theme::projector, Theme::contrast}) {
        const std::string svg = to_svg(f, {.theme = theme});
        CHECK(is_well_formed(svg));
        CHECK(count(svg, "<parameter name=\"seed\" value=\"4 &amp; 5\"/>") == 1);
        CHECK(count(svg, "delayed:history=16") == 1);
        CHECK(count(svg, ">a &lt; b &amp; &quot;c&quot;</text>") == 1);
        CHECK(count(svg, "font-family=\"Inter, sans-serif\"") > 2);
        CHECK(count(svg, "font-family=\"JetBrains Mono, monospace\"") > 2);
        CHECK(count(svg, "stroke-dasharray=\"7 4\"") == 2);  // the curve and its sample in the legend
        CHECK(count(svg, "nan") == 0);
    }
    CHECK_FALSE(is_well_formed("<a><b></a>"));
}

TEST_CASE("SVG has the curve at the pixels that its axes say") {
    Figure f{.x = {.range = Range{0, 10}, .visible = false}, .y = {.range = Range{0, 10}, .visible = false}};
    f.line("a", data({0, 5, 10}), data({0, 10, 5}));
    const std::string svg =
        to_svg(f, {.width = 232, .height = 132, .paint = {.bare = true}});  // 16 px margins
    CHECK(count(svg, "points=\"16.00,116.00 116.00,16.00 216.00,66.00\"") == 1);
}

TEST_CASE("an exponent is raised in SVG, and the text after it comes down again") {
    Figure f;
    f.title = "from 2^-6 on";
    const std::string svg = to_svg(f);
    CHECK(count(svg, "from 2<tspan dy=\"-6\" font-size=\"13\">-6</tspan><tspan dy=\"6\"> on</tspan>") == 1);
}

}  // namespace
}  // namespace fp8lab
