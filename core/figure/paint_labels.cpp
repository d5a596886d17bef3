// The words at the ends of curves: beside the last point where there is room, otherwise together over the
// curves.
#include <algorithm>
#include <cmath>

#include "core/figure/paint_words.h"

namespace fp8lab {

namespace {

constexpr float kPitch = 22, kGap = 12;

struct EndLabel {
    std::string_view name, value;  // "FP8 " and "0.0411"
    float width = 0;
    Point at;  // the curve's last point
    Style style;
};

EndLabel split(const std::string& text, Canvas& canvas) {
    std::size_t number = 0;  // the first word that starts like a number
    const auto starts_number = [&](std::size_t i) {
        const auto digit = [&](std::size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '9'; };
        if (text.compare(i, 3, "\u2212") == 0) return digit(i + 3);
        return digit(text[i] == '+' || text[i] == '-' ? i + 1 : i);
    };
    while (number < text.size() && !((number == 0 || text[number - 1] == ' ') && starts_number(number)))
        ++number;
    EndLabel out;
    out.name = std::string_view(text).substr(0, number);
    out.value = std::string_view(text).substr(number);
    out.width = canvas.text_width(out.name, kBold15) + canvas.text_width(out.value, kMono15);
    return out;
}

std::vector<EndLabel> end_labels(const Figure& figure, const View2D& view, const FigureLayout& layout,
                                 Canvas& canvas) {
    std::vector<EndLabel> out;
    for (const Series& series : figure.series) {
        const auto* line = std::get_if<LineSeries>(&series.shape);
        if (line == nullptr || series.style.end_label.empty() || !line->x || !line->y ||
            is_hidden(view, series))
            continue;
        std::size_t i = std::min(line->x->size(), line->y->size());
        double x = kNan, y = kNan;
        while (i-- > 0 && !(std::isfinite(x) && std::isfinite(y)))
            x = layout.x.to_px((*line->x)[i]), y = layout.y.to_px((*line->y)[i]);
        const Point at = {static_cast<float>(x), static_cast<float>(y)};
        const Rect plot = layout.plot;
        if (!(at.x >= plot.x0 && at.x <= plot.x1 + 1 && at.y >= plot.y0 - 1 && at.y <= plot.y1 + 1)) continue;
        EndLabel label = split(series.style.end_label, canvas);
        label.at = at;
        label.style = series.style;
        out.push_back(std::move(label));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const EndLabel& a, const EndLabel& b) { return a.at.y < b.at.y; });
    return out;
}

// Highest and lowest pixel of the visible curves right of `x`.
std::array<float, 2> curve_extent(const Figure& figure, const View2D& view, const FigureLayout& layout,
                                  float x) {
    std::array<double, 2> out = {kInfinity, -kInfinity};
    const double from = layout.x.from_px(static_cast<double>(x));
    for (const Series& series : figure.series) {
        const auto* line = std::get_if<LineSeries>(&series.shape);
        if (line == nullptr || !line->x || !line->y || is_hidden(view, series)) continue;
        for (std::size_t i = 0; i < std::min(line->x->size(), line->y->size()); ++i) {
            if (!((*line->x)[i] >= from)) continue;
            const double px = layout.y.to_px((*line->y)[i]);
            if (px < out[0]) out[0] = px;
            if (px > out[1]) out[1] = px;
        }
    }
    return {static_cast<float>(out[0]), static_cast<float>(out[1])};
}

// Beside the points: each at its own height, neighbours that overlap pushed apart by equal parts. Many in a low plot
// are closer together, so that the last does not reach the words of the axis.
std::vector<float> spread(const std::vector<EndLabel>& labels, const Rect& plot) {
    const float pitch = std::min(kPitch, plot.height() / static_cast<float>(labels.size()));
    std::vector<float> tops;
    for (const EndLabel& label : labels) tops.push_back(label.at.y - pitch / 2);
    for (std::size_t round = 0; round < 4 * labels.size(); ++round)
        for (std::size_t i = 1; i < tops.size(); ++i) {
            const float overlap = std::max(0.0F, tops[i - 1] + pitch - tops[i]);
            tops[i - 1] -= overlap / 2, tops[i] += overlap / 2;
        }
    for (std::size_t i = tops.size(); i-- > 0;)  // the last passes leave no overlap, inside the plot
        tops[i] = std::min(tops[i], (i + 1 < tops.size() ? tops[i + 1] : plot.y1) - pitch);
    for (std::size_t i = 0; i < tops.size(); ++i)
        tops[i] = std::max(tops[i], i > 0 ? tops[i - 1] + pitch : plot.y0);
    return tops;
}

// Over the curves, or under them where there is no room above.
std::vector<float> stacked(const std::vector<EndLabel>& labels, std::array<float, 2> curves,
                           const Rect& plot) {
    const float height = kPitch * static_cast<float>(labels.size());
    const float over = curves[0] - height - 6, under = std::min(curves[1] + 8, plot.y1 - height);
    std::vector<float> tops = {over >= plot.y0 ? over : under};
    while (tops.size() < labels.size()) tops.push_back(tops.back() + kPitch);
    return tops;
}

bool has_words(std::string_view text) { return text.find_first_not_of(' ') != text.npos; }

}  // namespace

std::vector<Rect> paint_end_labels(const Figure& figure, const View2D& view, const FigureLayout& layout,
                                   MarkedCanvas& canvas) {
    const std::vector<EndLabel> labels = end_labels(figure, view, layout, canvas);
    std::vector<Rect> taken;
    if (labels.empty()) return taken;
    const Rect plot = layout.plot;
    float width = 0, rightmost = 0;
    for (const EndLabel& label : labels)
        width = std::max(width, label.width), rightmost = std::max(rightmost, label.at.x);
    const auto curves = curve_extent(figure, view, layout, plot.x1 - width);
    const bool alone = !std::isfinite(curves[0]);  // no curve reaches under the words
    const bool beside = alone || rightmost + kGap + width <= plot.x1;
    const std::vector<float> tops = beside ? spread(labels, plot) : stacked(labels, curves, plot);
    const float left = std::min(rightmost + kGap, plot.x1 - width);
    for (const EndLabel& label : labels) {  // before all words: one may be beside the end of another curve
        paint_marker(canvas, label.at, Marker::disc, 5.5F, {Role::surface});
        paint_marker(canvas, label.at, Marker::disc, 4, toned(label.style.color, Tone::fill));
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const EndLabel& label = labels[i];
        const Point at = {beside ? left : plot.x1 - label.width, tops[i] + 2};
        const Color ink = {label.style.color.role, Tone::ink};
        taken.push_back({at.x, at.y, at.x + label.width, at.y + line_height(kBold15)});
        const bool words = has_words(label.name) || has_words(label.value);  // a blank only takes its place
        if (words && canvas.marked(taken.back())) paint_box(canvas, taken.back());
        canvas.text(at, label.name, ink, kBold15);
        canvas.text({at.x + canvas.text_width(label.name, kBold15), at.y}, label.value, ink, kMono15);
    }
    return taken;
}

}  // namespace fp8lab
