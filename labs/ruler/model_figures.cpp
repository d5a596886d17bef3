#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/ruler/model.h"

namespace fp8lab::ruler {

namespace {

constexpr double kPenUp = std::numeric_limits<double>::quiet_NaN();

void set_x_axis(Figure& figure, const Outcome& outcome, const Params& params, std::string label) {
    figure.x.label = std::move(label);
    figure.x.scale = params.axis == "linear" ? Scale::linear : Scale::log2;
    figure.x.range = outcome.axis;
}

// Vertical strokes from y0 to y1 at every x, as one series with the pen lifted between them.
void strokes(Figure& figure, std::string name, const std::vector<double>& at, double y0, double y1,
             Style style) {
    std::vector<double> xs, ys;
    xs.reserve(3 * at.size());
    ys.reserve(3 * at.size());
    for (const double x : at) {
        xs.insert(xs.end(), {x, x, kPenUp});
        ys.insert(ys.end(), {y0, y1, kPenUp});
    }
    figure.line(std::move(name), data(std::move(xs)), data(std::move(ys)), std::move(style));
}

std::string half_sentence(const Lane& lane) {
    const bool exact = lane.half.total % 2 == 0;
    return fmt::format("{} of {}’s positive values ({} of {}) are below {}", exact ? "Half" : "Nearly half",
                       lane.format.label, lane.half.below, lane.half.total, screen_number(lane.half.at));
}

std::string brush_text(const Interval& brushed) {
    const std::string values = fmt::format("{} value{}", brushed.count, brushed.count == 1 ? "" : "s");
    if (brushed.max_gap == 0) return values;
    // Scaled gaps that are equal differ in their last bit: what is read decides.
    const std::string least = screen_number(brushed.min_gap), most = screen_number(brushed.max_gap);
    return least == most ? fmt::format("{}, gap {}", values, most)
                         : fmt::format("{}, gaps {} to {}", values, least, most);
}

std::string lane_text(const Lane& lane) {
    return fmt::format("{}  {} of {} below {}", lane.format.label, lane.half.below, lane.half.total,
                       screen_number(lane.half.at));
}

// One lane a format, top down; each is 1 high, its marks in the lower part and its words above them.
constexpr double kMarkFoot = 0.06, kWords = 0.82;
// Where lanes are many they are low, and the words need a larger part of them.
double mark_head(double lanes) { return lanes < 4 ? 0.66 : 0.5; }

Figure lanes_figure(const Outcome& outcome, const Params& params) {
    Figure figure;
    figure.id = "ruler";
    const Lane& first = outcome.lanes.front();
    if (params.axis == "linear")
        figure.title = half_sentence(first);
    else if (first.format.kind == Kind::floating)
        figure.title = fmt::format("On a log axis the ruler is even: {} marks in every power of two",
                                   1 << first.format.mantissa_bits);
    else
        figure.title = "On a log axis even steps are uneven: twice as many marks in each power of two";
    const double lane_count = static_cast<double>(outcome.lanes.size()) + (params.fixed_point ? 1 : 0);
    const double head = mark_head(lane_count);
    const double headroom = 0.22 * lane_count;  // for the interval's words
    set_x_axis(figure, outcome, params, "|x|");
    figure.y.range = Range{0, lane_count + headroom};
    figure.y.visible = false;

    figure.xspan("interval", params.brush_lo, params.brush_hi,
                 {.color = {Role::axis, Tone::fill, 0.16F}, .in_legend = false});
    double foot = lane_count;
    const auto label = [&](const std::string& words, Role role) {
        figure.text(outcome.axis.lo, foot + kWords, words, {.color = {role, Tone::ink}, .in_legend = false});
    };
    for (const Lane& lane : outcome.lanes) {
        foot -= 1;
        strokes(figure, std::string(lane.format.label), lane.marks, foot + kMarkFoot, foot + head,
                {.color = {lane.role}, .width = 1, .in_legend = false});
        label(lane_text(lane), lane.role);
    }
    if (params.fixed_point) {
        foot -= 1;
        const double middle = foot + (kMarkFoot + head) / 2,
                     end = std::min(outcome.axis.hi, outcome.window.hi);
        const Style style = {.color = {Role::under, Tone::line, 0.6F}, .width = 1, .in_legend = false};
        if (outcome.fixed_point.empty())
            figure.line("fixed point", data({outcome.axis.lo, end}), data({middle, middle}), style);
        else
            strokes(figure, "fixed point", outcome.fixed_point, foot + kMarkFoot, foot + head, style);
        label(fmt::format("notebook’s fixed point: misses {} of {}", missed_by_fixed_point(first.format),
                          first.half.total),
              Role::under);
    }
    Series bracket{
        "interval##words",
        Bracket{params.brush_lo, params.brush_hi, lane_count + headroom / 4, brush_text(first.brushed)},
        {.in_legend = false}};
    figure.series.push_back(std::move(bracket));
    return figure;
}

// A mark of the binade 2^k stands in row k at its significand; the subnormals share the row of the lowest
// binade, whose gap they have, and continue it down to 0.
Figure binades_figure(const Outcome& outcome) {
    Figure figure;
    figure.id = "ruler";
    const Lane& first = outcome.lanes.front();
    figure.title = first.format.kind == Kind::floating
                       ? fmt::format("{} marks in every power of two, so the gap doubles from row to row",
                                     1 << first.format.mantissa_bits)
                       : std::string("Twice as many marks from row to row, so the gap stays the same");
    figure.subtitle = "left of 1: subnormals";
    figure.x.label = "value / 2^k";
    figure.x.range = Range{0, 2};
    figure.y.label = "k";
    const auto lowest_row = [](const FormatInfo& format) { return std::ilogb(min_normal(format)); };
    figure.y.range = Range{lowest_row(first.format) - 1.5, std::ilogb(max_finite(first.format)) + 1.5};
    // Formats share many values: the first is drawn as discs, the others as rings around them.
    for (std::size_t i = outcome.lanes.size(); i-- > 0;) {
        const FormatInfo& format = outcome.lanes[i].format;
        std::vector<double> xs, ys;
        for (const double value : positive_marks(format, 1.0)) {
            const int row = std::max(std::ilogb(value), lowest_row(format));
            xs.push_back(std::ldexp(value, -row));
            ys.push_back(row);
        }
        figure.scatter(std::string(format.label), data(std::move(xs)), data(std::move(ys)),
                       {.color = {outcome.lanes[i].role, Tone::fill},
                        .marker = i == 0 ? Marker::disc : Marker::ring,
                        .marker_size = 3.0F + 2.5F * static_cast<float>(i)});
    }
    return figure;
}

}  // namespace

Figure ruler_figure(const Outcome& outcome, const Params& params) {
    return params.axis == "binades" ? binades_figure(outcome) : lanes_figure(outcome, params);
}

Figure gap_figure(const Outcome& outcome, const Params& params) {
    Figure figure;
    figure.id = "gaps";
    const Lane& first = outcome.lanes.front();
    const Interval all = interval(first.marks, 0, first.marks.back());
    figure.title =
        all.min_gap == all.max_gap
            ? fmt::format("{}’s gap is {} everywhere", first.format.label, screen_number(all.min_gap))
            : fmt::format("{}’s gap grows from {} to {}", first.format.label, screen_number(all.min_gap),
                          screen_number(all.max_gap));
    set_x_axis(figure, outcome, params, "|x|");
    figure.y.label = "gap";
    figure.y.scale = Scale::log2;
    for (const Lane& lane : outcome.lanes) {
        std::vector<double> xs, gaps;
        for (std::size_t i = 0; i + 1 < lane.marks.size(); ++i) {
            const double gap = lane.marks[i + 1] - lane.marks[i];
            if (!gaps.empty() && gap == gaps.back()) continue;  // the step goes on
            xs.push_back(lane.marks[i]);
            gaps.push_back(gap);
        }
        xs.push_back(lane.marks.back());
        gaps.push_back(gaps.back());
        figure.line(std::string(lane.format.label), data(std::move(xs)), data(std::move(gaps)),
                    {.color = {lane.role}, .width = &lane == &first ? 3.0F : 2.0F, .step = true});
    }
    return figure;
}

Figure data_figure(const Outcome& outcome, const Params& params) {
    Figure figure;
    figure.id = "data";
    const Lane& first = outcome.lanes.front();
    const CastStats& stats = first.cast.stats;
    const std::string_view name = first.format.label;
    if (stats.overflow > 0)
        figure.title = fmt::format("{} % of the tensor is beyond the end of {}’s ruler",
                                   format_number(stats.overflow_pct()), name);
    else if (stats.underflow_pct() >= 1)
        figure.title = fmt::format("{} % of the tensor is too small for {}’s first mark and becomes 0",
                                   format_number(stats.underflow_pct()), name);
    else
        figure.title =
            fmt::format("The tensor is within {}’s ruler: SQNR {} dB", name, format_number(stats.sqnr_db()));
    set_x_axis(figure, outcome, params, "|x|");
    figure.y.label = "elements";
    const std::vector<double>& heights = outcome.data.all;
    const double tallest =
        std::max(1.0, heights.empty() ? 0.0 : *std::max_element(heights.begin(), heights.end()));
    figure.y.range = Range{0, 1.3 * tallest};  // room for the handle and the words above the bars

    const Histogram& counts = outcome.data;
    const double normal_from = std::min(min_normal(first.format) / params.scale, outcome.window.hi);
    const Color tint = {first.role, Tone::tint};
    figure.xspan("window", normal_from, outcome.window.hi, {.color = tint, .in_legend = false});
    figure.xspan("window##subnormal", outcome.window.lo, normal_from,
                 {.color = {first.role, Tone::tint, 0.5F}, .in_legend = false});
    const auto bars = [&](std::string label, const std::vector<double>& counted, Role role, bool in_legend) {
        figure.bars(std::move(label), data(counts.edges), data(counted),
                    {.color = {role, Tone::fill}, .in_legend = in_legend});
    };
    // Beside the ruler's end: outside, where the handle never is, if there is room.
    const double hi = outcome.window.hi,
                 share = params.axis == "linear"
                             ? hi / outcome.axis.hi
                             : std::log2(hi / outcome.axis.lo) / std::log2(outcome.axis.hi / outcome.axis.lo);
    if (hi <= outcome.axis.hi)
        figure.text(hi, 1.07 * tallest, fmt::format(" ends at {} ", screen_number(hi)),
                    {.color = {first.role, Tone::ink}, .in_legend = false},
                    share < 0.85 ? Anchor::left : Anchor::right);
    bars("elements", counts.all, Role::text, false);
    bars("becomes 0", counts.underflow, Role::under, stats.underflow > 0);
    bars("saturates", counts.saturated, Role::sat, stats.overflow > 0);
    return figure;
}

Figure Ruler::thumbnail() const {
    Figure figure = lanes_figure(*outcome, params);
    std::erase_if(figure.series, [](const Series& series) {
        return std::holds_alternative<TextMark>(series.shape) ||
               std::holds_alternative<Bracket>(series.shape) || std::holds_alternative<XSpan>(series.shape);
    });
    figure.y.range = Range{0, static_cast<double>(outcome->lanes.size()) - 0.2};
    return figure;
}

}  // namespace fp8lab::ruler
