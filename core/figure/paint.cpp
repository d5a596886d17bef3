#include "core/figure/paint.h"

#include <algorithm>
#include <cmath>

#include "core/figure/paint_words.h"

namespace fp8lab {

namespace {

constexpr float kLine = 20;      // line height of 13 px text
constexpr float kSample = 24;    // width of a legend's line sample
constexpr float kTickGap = 12;   // between y labels and the plot
constexpr float kTickRow = 28;   // x labels under the axis
constexpr float kNameLine = 17;  // lines of AxisName

// Curves, points, stems, bars and bands; a heatmap and the marks are explained in words.
bool in_legend(const Series& series) {
    return series.shape.index() < 5 && series.style.in_legend && !display_name(series).empty();
}

float sample_width(const Series& series) {
    return std::holds_alternative<LineSeries>(series.shape) ? kSample : 12;
}

std::vector<std::string> wrap(std::string_view text, Font font, float width, Canvas& canvas) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string word(text.substr(0, end));
        text.remove_prefix(std::min(text.size(), end + 1));
        if (!lines.empty() && canvas.text_width(lines.back() + " " + word, font) <= width)
            lines.back() += " " + word;
        else
            lines.push_back(word);
    }
    return lines;
}

// Title left, legend (or subtitle) right on its line; what does not fit goes to lines of its own below.
float lay_out_header(const Figure& figure, const PaintOptions& options, Canvas& canvas, FigureLayout& out) {
    const Rect outer = out.outer;
    std::vector<LegendEntry> entries;
    float total = 0;
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
        const Series& series = figure.series[i];
        if (!in_legend(series)) continue;
        const float width = sample_width(series) + 8 + canvas.text_width(display_name(series), kSans13);
        total += width + (entries.empty() ? 0 : 20);
        entries.push_back({i, {0, 0, width, kLine}});
    }
    out.title = wrap(figure.title, kBold15, outer.width(), canvas);
    const float title_width = out.title.empty() ? 0 : canvas.text_width(out.title.front(), kBold15) + 24;
    const float subtitle_width = canvas.text_width(figure.subtitle, kSans13);
    const bool one_line = out.title.size() < 2;
    float y = outer.y0;
    const float below =
        y + options.title_height - 6 + (one_line ? 0 : 22 * static_cast<float>(out.title.size() - 1));
    float next = out.title.empty() && figure.subtitle.empty() ? y : below;
    float x = outer.x0;
    if (one_line && title_width + total <= outer.width())
        x = outer.x1 - total;
    else
        y = next;
    for (LegendEntry& entry : entries) {
        if (x > outer.x0 && x + entry.rect.width() > outer.x1 + 0.5F) x = outer.x0, y += kLine;
        entry.rect = {x, y, x + entry.rect.width(), y + kLine};
        x = entry.rect.x1 + 20;
        next = std::max(next, y + kLine);
    }
    out.subtitle = {outer.x1 - subtitle_width, outer.y0 + 1};
    if (!figure.subtitle.empty() &&
        (!entries.empty() || !one_line || title_width + subtitle_width > outer.width())) {
        out.subtitle = {outer.x0, next};
        next += kLine;
    }
    out.legend = std::move(entries);
    const bool empty = out.title.empty() && out.legend.empty() && figure.subtitle.empty();
    return empty ? outer.y0 : std::max(next, outer.y0 + options.title_height - 6) + 6;
}

// As many labels as stand apart: 16 px between neighbours.
std::vector<Tick> x_ticks_that_fit(const Axis& axis, Canvas& canvas) {
    const double width = axis.px_hi() - axis.px_lo();
    for (int most = std::clamp(static_cast<int>(width / 80), 2, 9);; --most) {
        std::vector<Tick> ticks = make_ticks(axis, most);
        double taken = 0;
        int labels = 0;
        for (const Tick& tick : ticks)
            if (!tick.label.empty())
                ++labels,
                    taken = std::max(taken, static_cast<double>(canvas.text_width(tick.label, kMono13)));
        if (most <= 2 || labels * (taken + 16) <= width) return ticks;
    }
}

// Words beside the ends of the x axis stay inside the plot's width.
float clamped(float centre, float width, const Rect& plot) {
    return std::max(plot.x0, std::min(centre - width / 2, plot.x1 - width));
}

void paint_sample(const Series& series, const Rect& rect, bool hidden, Canvas& canvas) {
    const Style& style = series.style;
    Color color = style.color;
    if (hidden) color.opacity *= 0.35F;
    const float y = rect.y0 + kLine / 2, x1 = rect.x0 + sample_width(series);
    if (std::holds_alternative<LineSeries>(series.shape)) {
        color.opacity =
            std::max(color.opacity, hidden ? 0.0F : 0.6F);  // thin raw data are still named readably
        const std::array<Point, 2> ends = {Point{rect.x0, y}, Point{x1, y}};
        canvas.line_strip(ends, color, style.width, style.dash, false);
        paint_marker(canvas, {rect.x0 + kSample / 2, y}, style.marker, style.marker_size,
                     toned(color, Tone::fill));
    } else if (std::holds_alternative<ScatterSeries>(series.shape) ||
               std::holds_alternative<StemSeries>(series.shape)) {
        const Marker marker = style.marker == Marker::none ? Marker::disc : style.marker;
        paint_marker(canvas, {rect.x0 + 6, y}, marker, style.marker_size, toned(color, Tone::fill));
    } else if (const auto* bars = std::get_if<BarSeries>(&series.shape); bars != nullptr && bars->outline) {
        const std::array<Point, 4> step = {Point{rect.x0, y + 5}, {rect.x0, y - 5}, {x1, y - 5}, {x1, y + 5}};
        canvas.line_strip(step, color, style.width, style.dash, false);
    } else {
        const Tone tone = std::holds_alternative<BandSeries>(series.shape) ? Tone::tint : Tone::fill;
        canvas.rect(Rect{rect.x0, y - 6, x1, y + 6}, color);
        const Rect inside = {rect.x0 + 1, y - 5, x1 - 1, y + 5};
        canvas.rect(inside, Color{Role::surface});
        canvas.rect(inside, toned(color, tone));
    }
}

void paint_header(const Figure& figure, const View2D& view, const FigureLayout& layout, Canvas& canvas) {
    float y = layout.outer.y0;
    for (const std::string& line : layout.title) {
        canvas.text({layout.outer.x0, y}, line, Color{Role::text}, kBold15);
        y += 22;
    }
    if (!figure.subtitle.empty()) canvas.text(layout.subtitle, figure.subtitle, Color{Role::muted}, kSans13);
    for (const LegendEntry& entry : layout.legend) {
        const Series& series = figure.series[entry.series];
        const bool hidden = is_hidden(view, series);
        paint_sample(series, entry.rect, hidden, canvas);
        const Color ink = hidden ? Color{Role::muted} : Color{series.style.color.role, Tone::ink};
        canvas.text({entry.rect.x0 + sample_width(series) + 8, entry.rect.y0 + 2}, display_name(series), ink,
                    kSans13);
    }
}

// Two strokes over the interrupted line.
void paint_break(const FigureLayout& layout, Canvas& canvas) {
    const auto& gap = layout.x.spec().gap;
    const Range shown = layout.x.range();
    if (!gap || gap->lo <= shown.lo || gap->hi >= shown.hi) return;
    const auto middle = static_cast<float>((layout.x.to_px(gap->lo) + layout.x.to_px(gap->hi)) / 2);
    const float y = layout.plot.y1 + 0.5F;
    canvas.rect(Rect{middle - 5, y - 1.5F, middle + 5, y + 1.5F}, Color{Role::surface});
    for (const float x : {middle - 3, middle + 3}) {
        const std::array<Point, 2> stroke = {Point{x - 2, y + 5}, {x + 2, y - 5}};
        canvas.line_strip(stroke, Color{Role::axis}, 1, Dash::solid, false);
    }
}

std::vector<std::string_view> lines_of(std::string_view words) {
    std::vector<std::string_view> out;
    for (;;) {
        const std::size_t end = words.find('\n');
        out.push_back(words.substr(0, end));
        if (end == words.npos) return out;
        words.remove_prefix(end + 1);
    }
}

float names_height(const AxisSpec& axis) {
    std::size_t lines = 0;
    for (const AxisName& name : axis.names) lines = std::max(lines, lines_of(name.words).size());
    return 8 + kNameLine * static_cast<float>(lines);
}

void paint_names(const Figure& figure, const FigureLayout& layout, Canvas& canvas) {
    const Rect plot = layout.plot;
    for (const AxisName& name : figure.x.names) {
        const auto x = static_cast<float>(layout.x.to_px(name.at));
        if (x < plot.x0 || x > plot.x1) continue;
        float y = plot.y1 + 6;
        const std::vector<std::string_view> lines = lines_of(name.words);
        for (std::size_t i = 0; i < lines.size(); ++i, y += kNameLine) {
            const bool number = i > 0 && i + 1 == lines.size();
            const Font font = number ? kMono13 : name.strong ? kBold13 : kSans13;
            const float width = canvas.text_width(lines[i], font);
            canvas.text({clamped(x, width, plot), y}, lines[i], number ? Color{Role::muted} : name.color,
                        font);
        }
    }
    const float width = canvas.text_width(figure.x.label, kSans13);
    canvas.text({plot.x1 - width, plot.y1 + names_height(figure.x) + 2}, figure.x.label, Color{Role::muted},
                kSans13);
}

void paint_x_axis(const Figure& figure, const FigureLayout& layout, Canvas& canvas) {
    const Rect plot = layout.plot;
    const auto is_heatmap = [](const Series& s) { return std::holds_alternative<HeatmapSeries>(s.shape); };
    const bool cells = std::any_of(figure.series.begin(), figure.series.end(), is_heatmap);
    if (figure.x.visible || !cells)
        canvas.rect(Rect{plot.x0, plot.y1, plot.x1, plot.y1 + 1}, Color{Role::axis});
    if (!figure.x.visible) return;
    if (!figure.x.names.empty()) return paint_names(figure, layout, canvas);
    paint_break(layout, canvas);
    for (const Tick& tick : layout.x_ticks) {
        const auto x = static_cast<float>(layout.x.to_px(tick.value));
        const float length = tick.label.empty() ? 3 : 5;
        canvas.rect(Rect{x, plot.y1 + 1, x + 1, plot.y1 + length}, Color{Role::axis});
        const float width = canvas.text_width(tick.label, kMono13);
        canvas.text({clamped(x, width, plot), plot.y1 + 10}, tick.label, Color{Role::muted}, kMono13);
    }
    const float width = canvas.text_width(figure.x.label, kSans13);
    const Point at = layout.x_label_in_row ? Point{layout.outer.x0, plot.y1 + 10}
                                           : Point{plot.x1 - width, plot.y1 + kTickRow + 2};
    canvas.text(at, figure.x.label, Color{Role::muted}, kSans13);
}

void paint_y_axis(const Figure& figure, const FigureLayout& layout, Canvas& canvas) {
    if (!figure.y.visible) return;
    for (const Tick& tick : layout.y_ticks) {
        if (tick.label.empty()) continue;
        const auto y = static_cast<float>(layout.y.to_px(tick.value));
        if (y < layout.plot.y1 - 1)
            canvas.rect(Rect{layout.plot.x0, y, layout.plot.x1, y + 1}, Color{Role::grid});
        const float width = canvas.text_width(tick.label, kMono13);
        // The label of a tick at the very top stays off the words above it.
        const float top = std::max(y - line_height(kMono13) / 2, layout.plot.y0);
        canvas.text({layout.plot.x0 - kTickGap - width, top}, tick.label, Color{Role::muted}, kMono13);
    }
    canvas.text({layout.outer.x0, layout.plot.y0 - kLine}, figure.y.label, Color{Role::muted}, kSans13);
}

bool has_window_name(const Series& series) {
    return std::holds_alternative<XSpan>(series.shape) && series.style.in_legend &&
           !display_name(series).empty();
}

}  // namespace

std::string_view display_name(const Series& series) {
    return std::string_view(series.name).substr(0, series.name.find("##"));
}

Color toned(Color color, Tone tone) {
    if (color.tone == Tone::line) color.tone = tone;
    return color;
}

FigureLayout lay_out(const Figure& figure, const View2D& view, Canvas& canvas, Rect rect,
                     const PaintOptions& options) {
    FigureLayout out;
    out.outer = out.plot = rect;
    out.bare = options.bare;
    const Extents extents = fit(figure, view);
    if (!options.bare) {
        const bool named_window = std::any_of(figure.series.begin(), figure.series.end(), has_window_name);
        const bool y_label = figure.y.visible && !figure.y.label.empty();
        const float x_label_width = canvas.text_width(figure.x.label, kSans13);
        float gutter = figure.y.visible ? options.y_tick_width : 0;
        out.plot.y0 = lay_out_header(figure, options, canvas, out) + (named_window || y_label ? kLine : 8);
        const float full_gutter = gutter + (figure.y.visible ? kTickGap : 0);
        const bool named = !figure.x.names.empty();
        out.x_label_in_row = !named && x_label_width + 8 <= full_gutter;
        const bool label_row = figure.x.visible && !figure.x.label.empty() && !out.x_label_in_row;
        const float ticks = named ? names_height(figure.x) : kTickRow;
        out.plot.y1 -= figure.x.visible ? ticks + (label_row ? kLine : 0) : 4;
        out.plot.y1 = std::max(out.plot.y1, out.plot.y0 + 1);
        const Axis y(figure.y, extents.y, static_cast<double>(out.plot.y1), static_cast<double>(out.plot.y0));
        out.y_ticks = make_ticks(y, std::clamp(static_cast<int>(out.plot.height() / 40), 2, 5));
        if (figure.y.visible) {
            for (const Tick& tick : out.y_ticks)
                gutter = std::max(gutter, canvas.text_width(tick.label, kMono13));
            out.plot.x0 = std::min(out.plot.x0 + gutter + kTickGap, out.plot.x1 - 1);
        }
    }
    out.x = Axis(figure.x, extents.x, static_cast<double>(out.plot.x0), static_cast<double>(out.plot.x1));
    out.y = Axis(figure.y, extents.y, static_cast<double>(out.plot.y1), static_cast<double>(out.plot.y0));
    if (!options.bare && figure.x.names.empty()) out.x_ticks = x_ticks_that_fit(out.x, canvas);
    return out;
}

void paint(const Figure& figure, const View2D& view, const FigureLayout& layout, Canvas& canvas) {
    const auto is_ground = [](const Series& s) {  // what the grid is drawn on
        return std::holds_alternative<XSpan>(s.shape) || std::holds_alternative<YSpan>(s.shape);
    };
    MarkedCanvas marked(canvas, layout.outer);
    const auto paint_where = [&](bool ground) {
        for (const Series& series : figure.series)
            if (is_ground(series) == ground && !is_hidden(view, series)) paint_series(series, layout, marked);
    };
    paint_where(true);
    if (!layout.bare) {
        paint_header(figure, view, layout, canvas);
        paint_y_axis(figure, layout, canvas);
    }
    paint_where(false);
    if (!layout.bare) paint_x_axis(figure, layout, marked);
    std::vector<Rect> taken;
    if (!layout.bare) {
        taken = paint_end_labels(figure, view, layout, marked);
        const float label = figure.y.visible ? canvas.text_width(figure.y.label, kSans13) : 0;
        taken.push_back(
            {layout.outer.x0, layout.plot.y0 - kLine, layout.outer.x0 + label, layout.plot.y0 - 4});
    }
    paint_notes(figure, view, layout, marked, taken);
}

void paint(const Figure& figure, const View2D& view, Canvas& canvas, Rect rect, const PaintOptions& options) {
    paint(figure, view, lay_out(figure, view, canvas, rect, options), canvas);
}

}  // namespace fp8lab
