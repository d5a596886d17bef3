// The figures "tiles" and "block" of L12: the codes of both maps, and one block in numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/four/model.h"

namespace fp8lab::four {
namespace {

constexpr double kGap = 4.4, kScaleGap = 0.6, kPictureGap = 8;  // columns between maps, and beside the scales
const Color kZero = {Role::under, Tone::fill, 0.3F};

// |code| of each cell of the map, row by row.
std::vector<double> codes_of(const Tensor& tensor, const BlockCast& cast, std::size_t rows,
                             std::size_t cols) {
    std::vector<double> out;
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cols; ++c) {
            const auto unit = static_cast<double>(cast.units[cast.block_of(r, c)]);
            const double back = std::fabs(static_cast<double>(cast.back[r * tensor.cols + c]));
            out.push_back(unit > 0 ? std::round(2 * back / unit) / 2 : 0);
        }
    return out;
}

void add_map(Figure& figure, const Outcome& o, const TilesLayout& layout, std::size_t which) {
    const Tensor& tensor = o.tensor[which];
    const BlockCast& cast = o.cast[which];
    const auto rows = static_cast<int>(layout.rows), cols = static_cast<int>(layout.cols);
    const std::string name = which == 0 ? "as it is" : "rotated";
    // The scales beside it: one column per block of a row, of 16x16 one cell per 16 rows.
    std::vector<double> scales;
    double largest = 0;
    for (std::size_t r = 0; r < layout.rows; ++r)
        for (int b = 0; b < layout.scale_columns; ++b) {
            scales.push_back(static_cast<double>(
                cast.units[cast.block_of(r, static_cast<std::size_t>(b) * cast.grid.width)]));
            largest = std::max(largest, scales.back());
        }
    if (largest > 0) {
        HeatmapSeries map{
            .rows = rows, .cols = layout.scale_columns, .values = data(scales), .lo = 0, .hi = largest};
        map.x0 = layout.scales[which];
        figure.heatmap("scales, " + name, std::move(map),
                       {.color = {Role::block, Tone::fill}, .in_legend = false});
    }
    HeatmapSeries map{.rows = rows,
                      .cols = cols,
                      .values = data(codes_of(tensor, cast, layout.rows, layout.cols)),
                      .lo = 0,
                      .hi = 6};
    map.x0 = layout.cells[which];
    map.zero = kZero;
    figure.heatmap("|code|, " + name, std::move(map),
                   {.color = {Role::block, Tone::fill}, .in_legend = false});
    std::vector<double> xs, ys;
    for (std::size_t r = 0; r < layout.rows; ++r)
        for (std::size_t c = 0; c < layout.cols; ++c)
            if (cast.clips(tensor.values[r * tensor.cols + c], cast.block_of(r, c))) {
                xs.push_back(layout.cells[which] + static_cast<double>(c) + 0.46);
                ys.push_back(layout.height - static_cast<double>(r) - 0.54);
            }
    figure.scatter("above 6 units, " + name, data(xs), data(ys),
                   {.color = {Role::sat, Tone::fill},
                    .marker = Marker::triangle_up,
                    .marker_size = 3.5F,
                    .in_legend = false});
    for (std::size_t c = cast.grid.width; c < layout.cols; c += cast.grid.width) {
        const double x = layout.cells[which] + static_cast<double>(c) - 0.05;
        figure.line("", data({x, x}), data({0, layout.height}),
                    {.color = {Role::axis}, .width = 1, .in_legend = false});
    }
}

void add_picture(Figure& figure, const std::string& name, std::span<const float> values, const Outcome& o,
                 double x0) {
    HeatmapSeries map{.rows = static_cast<int>(o.tensor[0].rows), .cols = static_cast<int>(o.tensor[0].cols)};
    std::vector<double> grey;
    for (const float value : values) grey.push_back(static_cast<double>(value));
    map.values = data(std::move(grey));
    map.x0 = x0, map.grey = true;
    figure.heatmap(name, std::move(map), {.in_legend = false});
}

void outline(Figure& figure, double x, double y0, double y1, double width, Role role) {
    figure.line("", data({x, x + width, x + width, x, x}), data({y0, y0, y1, y1, y0}),
                {.color = {role}, .width = 2, .in_legend = false});
}

std::string sentence_of(const char* name, const BlockCast& cast) {
    return fmt::format(
        "{}: zero {} %, gain {} %, SQNR {} dB; the amax of {} % of the blocks is above 6 units.", name,
        pct_text(cast.numbers.zero_pct, 0), pct_text(cast.numbers.gain_pct, 2), db_text(cast.numbers.sqnr_db),
        pct_text(cast.clip_pct, 0));
}

}  // namespace

std::string pct_text(double pct, int decimals) {
    if (std::isnan(pct)) return "–";
    if (decimals == 0 && pct > 0 && pct < 0.95) decimals = 1;
    std::string out = fmt::format("{:.{}f}", std::fabs(pct), decimals);
    const bool zero = out.find_first_not_of("0.") == out.npos;
    return pct < 0 && !zero ? "−" + out : out;
}

std::string db_text(double db) {
    if (std::isnan(db)) return "no signal";
    if (std::isinf(db)) return "exact";
    return (db < -0.05 ? "−" : "") + fmt::format("{:.1f}", std::fabs(db));
}

std::string format_name(const Params& params) { return params.nvfp4() ? "NVFP4" : "MXFP4"; }

TilesLayout tiles_layout(const Outcome& o) {
    TilesLayout out;
    const Tensor& tensor = o.tensor[0];
    out.picture = tensor.picture;
    if (out.picture) {  // three pictures: the tensor, and what comes back as it is and rotated
        out.rows = tensor.rows, out.cols = tensor.cols;
        for (std::size_t i = 0; i < 2; ++i)
            out.cells[i] = static_cast<double>(i + 1) * (static_cast<double>(out.cols) + kPictureGap);
        out.end = out.cells[1] + static_cast<double>(out.cols);
    } else {
        out.rows = std::min(tensor.rows, kMapRows), out.cols = std::min(tensor.cols, kMapCols);
        out.scale_columns = static_cast<int>((out.cols + o.block_width() - 1) / o.block_width());
        const double map = out.scale_columns + kScaleGap + static_cast<double>(out.cols);
        for (std::size_t i = 0; i < 2; ++i) {
            out.scales[i] = static_cast<double>(i) * (map + kGap);
            out.cells[i] = out.scales[i] + out.scale_columns + kScaleGap;
        }
        out.end = out.cells[1] + static_cast<double>(out.cols);
    }
    out.height = static_cast<double>(out.rows);
    return out;
}

std::string tiles_title(const Outcome& o) {
    if (!o.problem.empty()) return "No maps of this tensor";
    const Numbers &plain = o.cast[0].numbers, &turned = o.cast[1].numbers;
    const double gained = turned.sqnr_db - plain.sqnr_db, fewer = plain.zero_pct - turned.zero_pct;
    const std::string format = format_name(o.params);
    if (std::isnan(gained)) return "Every element is 0: no signal";
    if (gained >= 0.1)
        return fewer >= 0.5 ? fmt::format("RHT gives {} {:.1f} dB and {} % fewer zeros", format, gained,
                                          pct_text(fewer, 0))
                            : fmt::format("RHT gives {} {:.1f} dB", format, gained);
    if (gained <= -0.1)
        return fewer > 0 ? fmt::format("Fewer zeros, yet more noise: RHT costs {} {:.1f} dB", format, -gained)
                         : fmt::format("More noise: RHT costs {} {:.1f} dB", format, -gained);
    return o.params.tensor.kind == "normal" && o.params.tensor.file.empty()
               ? "RHT changes nothing here: the data are Gaussian already"
               : "RHT changes nothing here";
}

Figure tiles_figure(const Outcome& o, const Marked& marked) {
    const TilesLayout layout = tiles_layout(o);
    Figure figure{.id = "tiles",
                  .title = tiles_title(o),
                  .x = {.label = "columns", .range = Range{0, std::max(layout.end, 1.0)}, .visible = false},
                  .y = {.label = "rows", .visible = false}};
    // Below and above the maps a row of words, in cells of the map.
    const double below = 0.1 * layout.height, above = 0.09 * layout.height;
    figure.y.range = Range{-below, std::max(layout.height, 1.0) + above};
    if (!o.problem.empty()) {
        figure.words = {figure.title + ".", o.problem};
        return figure;
    }
    const auto words = [&](double x, double y, std::string text, bool strong) {
        figure.add("", TextMark{.x = x, .y = y, .text = std::move(text), .strong = strong},
                   {.color = {strong ? Role::text : Role::muted}, .in_legend = false});
    };
    const double head = layout.height + 0.55 * above, foot = -0.6 * below;
    if (layout.picture) {
        add_picture(figure, "picture", o.tensor[0].values, o, 0);
        add_picture(figure, "cast as it is", o.cast[0].back, o, layout.cells[0]);
        add_picture(figure, "cast rotated", o.turned_back, o, layout.cells[1]);
        words(0, head, "The picture, 8 bits", true);
        words(layout.cells[0], head, format_name(o.params) + ", as it is", true);
        words(layout.cells[1], head, format_name(o.params) + ", rotated and back", true);
    } else {
        for (std::size_t r = 0; r < 2; ++r) {
            add_map(figure, o, layout, r);
            words(layout.scales[r], head, r == 0 ? "As it is" : "Rotated: RHT, 16×16", o.shown() == r);
        }
    }
    for (std::size_t r = 0; r < 2; ++r) {
        const Numbers& numbers = o.cast[r].numbers;
        words(layout.cells[r], foot,
              fmt::format("zero {} %   gain {} %   SQNR {} dB", pct_text(numbers.zero_pct, 0),
                          pct_text(numbers.gain_pct, 2), db_text(numbers.sqnr_db)),
              false);
        const double y = layout.height - static_cast<double>(marked.row);
        if (marked.width > 0 && !layout.picture)
            outline(figure, layout.cells[r] + static_cast<double>(marked.col) - 0.1, y + 0.1, y - 1.1,
                    static_cast<double>(marked.width), r == o.shown() ? Role::text : Role::axis);
    }
    figure.words = {figure.title + ".", sentence_of("As it is", o.cast[0]),
                    sentence_of("Rotated", o.cast[1])};
    if (!o.note.empty()) figure.words.push_back(o.note);
    return figure;
}

Figure block_figure(const Outcome& o, const Marked& marked) {
    Figure figure{.id = "block", .x = {.label = "column"}, .y = {.label = "x in units"}};
    if (!o.problem.empty()) {
        figure.title = "No block of this tensor";
        return figure;
    }
    const Tensor& tensor = o.tensor[o.shown()];
    const BlockCast& cast = o.cast[o.shown()];
    figure.title = marked.unit == 0 ? "The marked block has scale 0: it becomes 0"
                   : marked.top > 6 * (1 + 1e-6)
                       ? fmt::format("Its amax needs {:.2f} units, and the codes end at 6", marked.top)
                       : fmt::format("Its amax needs {:.2f} units: the codes reach it", marked.top);
    std::vector<double> columns, xs, backs;
    for (std::size_t c = marked.col; c < marked.col + marked.width; ++c) {
        const std::size_t i = marked.row * tensor.cols + c;
        const double unit = marked.unit > 0 ? static_cast<double>(marked.unit) : 1;
        columns.push_back(static_cast<double>(c));
        xs.push_back(static_cast<double>(tensor.values[i]) / unit);
        backs.push_back(static_cast<double>(cast.back[i]) / unit);
    }
    figure.x.range =
        Range{static_cast<double>(marked.col) - 0.5, static_cast<double>(marked.col + marked.width) - 0.5};
    figure.y.range = Range{-7, 7};
    const Data at = data(columns);
    figure.hline("6", 6, {.color = {Role::sat}, .width = 1, .dash = Dash::dash});
    figure.hline("−6", -6, {.color = {Role::sat}, .width = 1, .dash = Dash::dash, .in_legend = false});
    figure.hline("", 0, {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.stems("code", at, data(backs),
                 {.color = {Role::block}, .width = 3, .marker = Marker::square, .marker_size = 4});
    figure.scatter("x / unit", at, data(xs),
                   {.color = {Role::text}, .marker = Marker::ring, .marker_size = 4});
    return figure;
}

}  // namespace fp8lab::four
