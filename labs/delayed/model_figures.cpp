// The timeline: what the window could hold in each step, and what came.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/figure/axis.h"
#include "labs/delayed/model.h"

namespace fp8lab::delayed {

namespace {

constexpr std::size_t kWordySteps = 12;  // more leave no room for words at every step

double finite_or_nan(float value) { return std::isfinite(value) ? static_cast<double>(value) : kNan; }

// A step t is drawn over [t, t + 1]: edges, and one value per interval with the last repeated.
Data edges_of(std::size_t steps) {
    std::vector<double> out;
    for (std::size_t t = 0; t <= steps; ++t) out.push_back(static_cast<double>(t));
    return data(std::move(out));
}
Data held(std::vector<double> values) {
    if (!values.empty()) values.push_back(values.back());
    return data(std::move(values));
}

double centre(std::size_t t) { return static_cast<double>(t) + 0.5; }

// Amaxes and window tops, with room for words; what of a window lies lower is said in words.
Range y_range(const Delayed& lab) {
    double lo = kInfinity, hi = 0;
    for (const Run* run : {&lab.a(), &lab.b()}) {
        for (std::size_t t = 0; t < run->steps.size(); ++t) {
            const double amax = finite_or_nan(run->steps[t].amax);
            if (!(amax > 0)) continue;
            lo = std::min(lo, amax), hi = std::max(hi, amax);
        }
    }
    if (!(hi > 0)) return {0.25, 512};
    double top = hi;
    for (const double value : lab.shown().tops)
        if (value <= hi * std::exp2(lab.shown().machine.margin) * 6)
            top = std::max(top, value);  // a higher one leaves through the figure's top
    for (const double value : lab.shown().tops) lo = std::min(lo, std::max(value, lo / 16));
    const double below = lab.shown().steps.size() <= kWordySteps ? 6 : 2;
    return {lo / below, top * std::max(1.8, std::pow(top / lo, 0.12))};
}

void add_window(Figure& figure, const Run& run, Range y) {
    const Role role = find_format(run.machine.format).role;
    const Data edges = edges_of(run.steps.size());
    std::vector<double> tops = run.tops, bottoms = run.bottoms;
    for (double& top : tops) top = std::min(top, 4 * y.hi);
    const Data top = held(tops);
    figure.band("window", edges, held(bottoms), top, {.color = {role}, .step = true, .in_legend = false});
    const std::string label = find_format(run.machine.format).label.data();
    figure.line("window top = " + screen_number(max_finite(find_format(run.machine.format))) + " / scale",
                edges, top, {.color = {role}, .width = 3, .step = true});
}

// Where the amax sticks out of the window: a shaft from the window's top with a triangle at the amax, or
// through the figure's top where it is not finite.
void add_faults(Figure& figure, const Run& run, Range y) {
    std::vector<double> xs, ys, tips_x, tips_y;
    for (std::size_t t = 0; t < run.steps.size(); ++t) {
        const bool finite = std::isfinite(run.steps[t].amax);
        if (finite && !run.steps[t].saturates) continue;
        const double amax =
            finite ? static_cast<double>(run.steps[t].amax) : y.hi / std::pow(y.hi / y.lo, 0.04);
        xs.insert(xs.end(), {centre(t), centre(t), kNan});
        ys.insert(ys.end(), {run.tops[t], amax, kNan});
        tips_x.push_back(centre(t)), tips_y.push_back(amax);
    }
    if (tips_x.empty()) return;
    const float width = run.steps.size() <= kWordySteps ? 4.0F : 2.0F;
    figure.line("saturated##shaft", data(std::move(xs)), data(std::move(ys)),
                {.color = {Role::sat}, .width = width, .in_legend = false});
    figure.scatter("saturated", data(std::move(tips_x)), data(std::move(tips_y)),
                   {.color = {Role::sat, Tone::line},
                    .marker = Marker::triangle_up,
                    .marker_size = 1.5F * width + 2,
                    .in_legend = false});
}

void add_amaxes(Figure& figure, const Run& run) {
    std::vector<double> xs, ys;
    for (std::size_t t = 0; t < run.steps.size(); ++t) {
        if (run.steps[t].saturates) continue;
        xs.push_back(centre(t));
        ys.push_back(finite_or_nan(run.steps[t].amax));
    }
    figure.scatter("amax", data(std::move(xs)), data(std::move(ys)),
                   {.color = {Role::text},
                    .marker = Marker::disc,
                    .marker_size = run.steps.size() <= kWordySteps ? 4.5F : 2.5F});
}

// The middle of the longest stretch of steps under one window: there no label is in the way.
double middle_of_plateau(const std::vector<double>& tops) {
    std::size_t best = 0, length = 0;
    for (std::size_t t = 0, from = 0; t < tops.size(); ++t) {
        if (tops[t] != tops[from]) from = t;
        if (t - from + 1 > length) best = from, length = t - from + 1;
    }
    return static_cast<double>(best) + static_cast<double>(length) / 2;
}

// The words at every step, where there are few.
void add_words(Figure& figure, const Delayed& lab, Range y) {
    const Run& run = lab.shown();
    const Role role = find_format(run.machine.format).role;
    const auto words = [&](double x, double at, std::string text, Role ink, Anchor anchor, float dx, float dy,
                           std::optional<Range> room = {}) {
        figure.add("", TextMark{x, at, std::move(text), anchor, false, dx, dy, room},
                   {.color = {ink, Tone::ink}, .in_legend = false});
    };
    if (run.steps.size() < 10 && run.steps[0].scale_used == 1 && run.machine.algo != "static" &&
        run.tops[0] > 4 * run.tops[1])
        words(0, std::min(run.tops[0], y.hi), "cold start", Role::muted, Anchor::left, 8, 33, Range{0, 1});
    const FormatInfo& format = find_format(run.machine.format);
    const double down = std::log2(max_finite(format) / min_subnormal(format));
    words(middle_of_plateau(run.tops), y.lo,
          fmt::format("the {} window reaches {} binades down", format.label, screen_number(down, 3)),
          Role::muted, Anchor::center, 0, -13);
    for (std::size_t t = 0; t < run.steps.size(); ++t) {
        const MachineStep& step = run.steps[t];
        const auto amax = static_cast<double>(step.amax);
        const auto left = static_cast<double>(t);
        if (t == 0 || run.tops[t] != run.tops[t - 1])
            words(left, std::min(run.tops[t], y.hi), screen_number(run.tops[t], 3), role, Anchor::left, 6,
                  run.tops[t] > y.hi ? 14 : 13);
        if (!std::isfinite(amax)) {
            words(centre(t), y.hi, step.amax > 0 ? "Inf" : "NaN", Role::sat, Anchor::left, 10, 20);
        } else if (step.saturates) {
            // Beside the arrow where it is long enough for words; else over it.
            const std::string factor = screen_number(amax / run.tops[t], 2) + "×";
            const bool is_long = std::log(amax / run.tops[t]) > 0.2 * std::log(y.hi / y.lo);
            words(centre(t), amax, screen_number(amax, 3) + (is_long ? "" : ", " + factor), Role::sat,
                  Anchor::center, 0, -18);
            if (is_long)
                words(centre(t), std::sqrt(amax * run.tops[t]), factor, Role::sat, Anchor::right, -8, 0,
                      Range{left + 0.15, centre(t)});
        } else if (amax > 0) {
            const bool line_here = lab.params.compare == "ab" && std::abs(lab.b().tops[t] / amax - 1) < 0.2;
            words(centre(t), amax, screen_number(amax, 3), Role::text,
                  line_here ? Anchor::center : Anchor::left, line_here ? 0 : 10, line_here ? -15 : 0);
        }
    }
}

void add_stale_scale(Figure& figure, const Run& run, Range y) {
    const StaleScale stale = stale_scale_of(run);
    if (stale.spike < 0) return;
    const auto first = static_cast<std::size_t>(stale.first);
    const double x0 = static_cast<double>(first), x1 = x0 + stale.count;
    const bool is_max = run.machine.algo == "max" && run.machine.interval == 1;
    const std::string words =
        is_max && stale.whole ? fmt::format("the spike sets the scale for exactly L = {} steps", stale.count)
                              : fmt::format("the spike sets the scale for {}{} steps",
                                            stale.whole ? "" : "at least ", stale.count);
    const double top = std::min(run.tops[first], y.hi);
    figure.add("", Bracket{x0 + 0.03, x1 - 0.03, top * std::pow(y.hi / y.lo, 0.075), words},
               {.color = {Role::text}, .in_legend = false});
    if (run.steps.size() > kWordySteps || stale.count < 3) return;
    const auto middle = first + static_cast<std::size_t>(stale.count) / 2;
    const double amax = finite_or_nan(run.steps[middle].amax), x = static_cast<double>(middle) - 0.25;
    figure.line("unused", data({x, x}), data({amax * 1.1, top / 1.1}),
                {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.scatter(
        "unused##up", data({x}), data({top / 1.15}),
        {.color = {Role::axis}, .marker = Marker::triangle_up, .marker_size = 4, .in_legend = false});
    figure.scatter(
        "unused##down", data({x}), data({amax * 1.15}),
        {.color = {Role::axis}, .marker = Marker::triangle_down, .marker_size = 4, .in_legend = false});
    const double at = std::sqrt(amax * top);
    const Range room{x, x + 1.1};  // further on B's window may end
    figure.add("",
               TextMark{x, at, screen_number(std::log2(top / amax), 2) + " binades", Anchor::left, false, 10,
                        -8, room},
               {.color = {Role::text}, .in_legend = false});
    figure.add("", TextMark{x, at, "unused", Anchor::left, false, 10, 9, Range{x, x + 0.7}},
               {.color = {Role::muted}, .in_legend = false});
}

void add_other(Figure& figure, const Delayed& lab, Range y) {
    std::vector<double> tops = lab.b().tops;
    for (double& top : tops) top = std::min(top, 4 * y.hi);
    const std::string name =
        lab.params.other == "notebook" ? "B  notebook’s order" : "B  " + rule_words(lab.b().machine);
    figure.line(name, edges_of(lab.b().steps.size()), held(std::move(tops)),
                {.color = {Role::truth}, .width = 2, .dash = Dash::dash, .step = true});
}

}  // namespace

std::string order_words(const MachineSpec& machine) {
    if (machine.algo == "current") return "look, use";
    if (machine.algo == "static") return "use";
    return machine.order == "notebook" ? "update, use" : "use, update";
}

std::string rule_words(const MachineSpec& machine) {
    std::string out(find_format(machine.format).label);
    if (machine.algo == "static")
        return out + fmt::format(", static {}", screen_number(machine.static_scale));
    const std::string margin = machine.margin == 0 ? "" : fmt::format(", margin {}", machine.margin);
    if (machine.algo == "current") return out + ", current" + margin;
    if (machine.algo == "ema") out += fmt::format(", EMA {}", screen_number(machine.ema, 3));
    if (machine.algo == "percentile") out += fmt::format(", p{}", screen_number(machine.percentile, 3));
    if (machine.algo == "most_recent") out += ", most recent";
    if (machine.algo == "max" || machine.algo == "percentile") out += fmt::format(", H {}", machine.history);
    if (machine.interval > 1 && machine.algo.starts_with("m"))
        out += fmt::format(", every {}", machine.interval);
    return out + margin + (machine.order == "notebook" ? ", notebook’s order" : "");
}

std::string cast_words(const MachineStep& step, const MachineSpec& machine) {
    if (!std::isfinite(step.amax)) return "not finite: saturated";
    const double max = max_finite(find_format(machine.format));
    const std::string text = screen_number(max);
    if (step.saturates) return "above " + text + ": saturated";
    return static_cast<double>(step.amax_scaled) <= max ? "fits: at most " + text : "rounds to " + text;
}

std::string finding(const Run& run) {
    const int saturated = run.saturated_steps(), steps = static_cast<int>(run.steps.size());
    const MachineSpec& machine = run.machine;
    const std::string of = fmt::format("{} of {} steps saturate", saturated, steps);
    if (machine.algo == "static") return "A scale that never changes: " + of;
    if (machine.algo == "current") return "The amax is measured before the cast: " + of;
    if (machine.order == "notebook") return "In the notebook’s order " + of;
    const auto poison = std::find_if(run.steps.begin(), run.steps.end(),
                                     [](const MachineStep& step) { return !std::isfinite(step.amax); });
    if (poison != run.steps.end()) {
        const auto frozen = std::count_if(run.steps.begin(), run.steps.end(), [](const MachineStep& step) {
            return step.outcome == Outcome::not_finite;
        });
        if (frozen > 1)
            return fmt::format("One step that is not finite keeps the scale unchanged for {} updates",
                               frozen);
    }
    if (saturated == 0 && machine.margin > 0)
        return fmt::format("A margin of 2^{} = ×{} absorbs every jump", machine.margin, 1 << machine.margin);
    if (saturated == 0) return "No amax is above the window";
    return fmt::format("The window is one step late: {} of {} steps saturate", saturated, steps);
}

Figure timeline_figure(const Delayed& lab) {
    const Run& run = lab.shown();
    const std::size_t steps = run.steps.size();
    Figure figure;
    figure.id = "timeline";
    figure.title = finding(run);
    figure.x = {.label = "step", .range = Range{0, static_cast<double>(steps)}};
    const Range y = y_range(lab);
    figure.y = {.label = "|x|", .scale = Scale::log2, .range = y};
    add_window(figure, run, y);
    if (lab.params.compare == "ab") add_other(figure, lab, y);
    add_faults(figure, run, y);
    add_amaxes(figure, run);
    if (steps <= kWordySteps) add_words(figure, lab, y);
    add_stale_scale(figure, run, y);
    return figure;
}

Figure casts_figure(const Delayed& lab) {
    const Run& run = lab.shown();
    Figure figure;
    figure.id = "casts";
    figure.title =
        fmt::format("On average {} % of the elements become 0 and {} % saturate",
                    screen_number(run.mean_underflow_pct(), 3), screen_number(run.mean_overflow_pct(), 3));
    figure.x = {.label = "step", .range = Range{0, static_cast<double>(run.steps.size())}};
    figure.y = {.label = "% of elements", .range = Range{0, 100}};
    std::vector<double> underflow, overflow;
    for (const CastStats& cast : run.casts) {
        underflow.push_back(cast.underflow_pct());
        overflow.push_back(cast.overflow_pct());
    }
    const Data edges = edges_of(run.steps.size());
    figure.bars("underflow %", edges, data(std::move(underflow)), {.color = {Role::under, Tone::fill}});
    figure.bars("saturated %", edges, data(std::move(overflow)), {.color = {Role::sat, Tone::fill}});
    return figure;
}

// On an axis of its own: decibels are no percentages.
Figure sqnr_figure(const Delayed& lab) {
    const Run& run = lab.shown();
    Figure figure;
    figure.id = "sqnr";
    figure.title = "SQNR of the cast in each step";
    figure.x = {.label = "step", .range = Range{0, static_cast<double>(run.steps.size())}};
    figure.y = {.label = "SQNR dB", .range = {}};
    std::vector<double> sqnr;
    for (const CastStats& cast : run.casts)
        sqnr.push_back(std::isfinite(cast.sqnr_db()) ? cast.sqnr_db() : kNan);
    figure.line("SQNR dB", edges_of(run.steps.size()), held(std::move(sqnr)),
                {.color = {Role::truth}, .width = 2, .step = true});
    return figure;
}

void drop_words(Figure& timeline) {
    std::erase_if(timeline.series, [](const Series& series) {
        return std::holds_alternative<TextMark>(series.shape) ||
               std::holds_alternative<Bracket>(series.shape) || series.name.starts_with("unused");
    });
}

Figure Delayed::thumbnail() const {
    Figure figure = timeline_figure(*this);
    drop_words(figure);
    return figure;
}

}  // namespace fp8lab::delayed
