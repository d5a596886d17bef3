// The figure "pareto" of L11, and the sentences over its tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/lower/model.h"

namespace fp8lab::lower {
namespace {

constexpr Range kBits{3.85, 16.25};
constexpr AxisBreak kNoFormat{8.75, 15.75, 0.12};  // only mixes with a layer in BF16 are in between
constexpr double kLeastShown = 6e-5;
constexpr double kAbove = 2.2;  // room for the knob above the largest divergence

std::string times_text(double ratio) {
    return ratio < 9.95 ? screen_number(ratio, 2) : fmt::format("{:.0f}", ratio);
}

// The axis begins a factor below the smallest mark, on a decade; marks further down are written at its foot.
Range divergences(const Outcome& o, const Cloud* cloud) {
    double least = kLeastShown, most = 1e-2;
    for (const OutputRow& row : o.uniforms) most = std::max(most, row.score.divergence);
    if (cloud)
        for (const MixPoint& point : cloud->all.points) most = std::max(most, point.divergence);
    most = std::max(most, o.own.score.divergence);
    return {least, kAbove * most};
}

Color ink(const LowFormat& format) { return {format.role, Tone::ink}; }

// A name is beside its mark: on the other side where it would cover that of a neighbour at nearly the same bits, and
// above or below the knob of the own mix, which is larger and may be at the right edge.
struct NamePlace {
    Anchor anchor;
    float dx, dy;
};
NamePlace name_place(const LowFormat& format, bool own, bool high) {
    if (own) return {Anchor::center, 0, high ? 24.0F : -24.0F};
    if (format.id == "e4m3" || format.id == "e5m2" || format.id == "int8") return {Anchor::right, -10, 0};
    return {Anchor::left, 10, format.id == "e2m1" ? 16.0F : 0.0F};
}

// A mark below the axis is an arrow at its foot, with its value.
void add_below(Figure& figure, const OutputRow& row, Range y) {
    const double foot = y.lo * std::pow(y.hi / y.lo, 0.03);
    figure.scatter(fmt::format("##{}", row.format->id), data({row.bits}), data({foot}),
                   {.color = {row.format->role, Tone::line},
                    .marker = Marker::triangle_down,
                    .marker_size = 5,
                    .in_legend = false});
    const auto put = [&](std::string words, float dy) {
        figure.add(
            "",
            TextMark{.x = row.bits, .y = foot, .text = std::move(words), .anchor = Anchor::center, .dy = dy},
            {.color = ink(*row.format), .in_legend = false});
    };
    put(divergence_text(row.score.divergence), -17);
    put(std::string(row.format->label), -34);
}

void add_uniforms(Figure& figure, const Outcome& o, Range y) {
    for (const OutputRow& row : o.uniforms) {
        const double value = row.score.divergence;
        if (value < y.lo) {
            add_below(figure, row, y);
            continue;
        }
        const NamePlace name =
            name_place(*row.format, uniform_of(o.mix) == row.format, value * value > y.lo * y.hi);
        figure.scatter(fmt::format("##{}", row.format->id), data({row.bits}), data({value}),
                       {.color = {row.format->role, Tone::line},
                        .marker = marker_of(*row.format),
                        .marker_size = 5,
                        .in_legend = false});
        figure.add("",
                   TextMark{.x = row.bits,
                            .y = value,
                            .text = std::string(row.format->id == "e2m1" ? "E2M1" : row.format->label),
                            .anchor = name.anchor,
                            .strong = false,
                            .dx = name.dx,
                            .dy = name.dy,
                            .boxed = true},
                   {.color = ink(*row.format), .in_legend = false});
    }
}

void add_cloud(Figure& figure, const Cloud& cloud, const Outcome& o, Range y) {
    std::vector<double> xs, ys, best_x, best_y;
    for (const MixPoint& point : cloud.all.points)
        if (!kNoFormat.holds(point.bits))
            xs.push_back(point.bits), ys.push_back(std::max(point.divergence, y.lo));
    const std::string dots =
        cloud.all.points.empty()
            ? std::string("one layer lowered after the other")
            : fmt::format("one of {} mixes", group_thousands(std::ssize(cloud.all.points)));
    if (!xs.empty())
        figure.scatter(
            dots, data(std::move(xs)), data(std::move(ys)),
            {.color = {Role::muted, Tone::line, 0.34F}, .marker = Marker::disc, .marker_size = 1.6F});
    const auto add_best = [&](const MixPoint& point) {
        if (point.bits > kNoFormat.lo) return;
        best_x.push_back(point.bits), best_y.push_back(std::max(point.divergence, y.lo));
    };
    for (const std::size_t i : cloud.frontier) add_best(cloud.all.points[i]);
    for (auto step = cloud.greedy.rbegin(); step != cloud.greedy.rend(); ++step) add_best(step->point);
    if (!best_x.empty()) best_x.push_back(kNoFormat.lo), best_y.push_back(best_y.back());
    figure.line(cloud.greedy.empty() ? "best for its bits" : dots, data(std::move(best_x)),
                data(std::move(best_y)), {.color = {Role::text}, .width = 2, .step = true});
    const Neighbours near = neighbours_of(cloud.all.points, o.own.bits, o.own.score.divergence);
    if (near.count < 2) return;
    const double worst = cloud.all.points[near.worst].divergence, own = o.own.score.divergence;
    const double ratio = worst / own, x = o.own.bits;
    if (!(ratio > 1)) return;
    figure.line("##bracket", data({x, x}), data({std::max(own, y.lo), worst}),
                {.color = {Role::text}, .width = 2, .in_legend = false});
    figure.line("##bracket-end", data({x - 0.04, x + 0.04}), data({worst, worst}),
                {.color = {Role::text}, .width = 2, .in_legend = false});
    const bool right = x < 6.9;
    const auto put = [&](double at, std::string words, bool strong) {
        figure.add("",
                   TextMark{.x = x,
                            .y = at,
                            .text = std::move(words),
                            .anchor = right ? Anchor::left : Anchor::right,
                            .strong = strong,
                            .dx = right ? 9.0F : -9.0F,
                            .boxed = true},
                   {.color = {Role::text}, .in_legend = false});
    };
    put(std::sqrt(worst * std::max(own, y.lo)), fmt::format("{}×", times_text(ratio)), true);
    put(worst, fmt::format("worst mix within 0.1 bit {}", divergence_text(worst)), false);
}

}  // namespace

std::string divergence_text(double value) {
    if (!std::isfinite(value)) return "–";
    if (value == 0) return "0";
    return value >= 9.995e-4 ? fmt::format("{:.4f}", value) : screen_number(value, 2);
}

Marker marker_of(const LowFormat& format) {
    if (format.weights.granularity == Granularity::block32 ||
        format.weights.granularity == Granularity::block16)
        return Marker::diamond;
    return format.role == Role::truth ? Marker::square : Marker::disc;
}

std::string pareto_title(const Outcome& o, const Cloud* cloud) {
    if (o.uniforms.empty()) return "";
    const bool classifies = o.setup->network.classifies;
    if (cloud && !cloud->all.points.empty()) {
        const Neighbours near = neighbours_of(cloud->all.points, o.own.bits, o.own.score.divergence);
        if (near.count > 1)
            return fmt::format("The same {:.1f} bits, placed well or badly: {} times apart", o.own.bits,
                               times_text(cloud->all.points[near.worst].divergence /
                                          cloud->all.points[near.best].divergence));
    }
    const LowFormat* uniform = uniform_of(o.mix);
    if (uniform)
        return fmt::format("{} everywhere: {:.2f} bits per weight, {} {} from FP32", uniform->label,
                           o.own.bits, divergence_text(o.own.score.divergence),
                           classifies ? "nats" : "of the squares");
    const auto nearest = std::ranges::min_element(
        o.uniforms, {}, [&](const OutputRow& row) { return std::fabs(row.bits - o.own.bits); });
    const double ratio = nearest->score.divergence / o.own.score.divergence;
    if (!(ratio > 0) || !std::isfinite(ratio)) return "Your mix, beside one format everywhere";
    return ratio >= 1 ? fmt::format("Your mix is {} times closer to FP32 than {} everywhere",
                                    times_text(ratio), nearest->format->label)
                      : fmt::format("Your mix is {} times further from FP32 than {} everywhere",
                                    times_text(1 / ratio), nearest->format->label);
}

Figure pareto_figure(const Outcome& o, const Cloud* cloud) {
    Figure figure{.id = "pareto",
                  .x = {.label = "bits per weight, scales included", .range = kBits, .gap = kNoFormat}};
    if (o.uniforms.empty()) return figure;
    const Range y = divergences(o, cloud);
    figure.title = pareto_title(o, cloud);
    figure.y = {.label = o.setup->network.classifies ? "divergence from FP32, nats"
                                                     : "squared error over FP32’s squares",
                .scale = Scale::log10,
                .range = y};
    if (cloud) add_cloud(figure, *cloud, o, y);
    add_uniforms(figure, o, y);
    const double own = std::max(o.own.score.divergence, y.lo), bits = o.own.bits;
    figure.scatter("##own", data({bits}), data({own}),
                   {.color = {Role::text}, .marker = Marker::ring, .marker_size = 8, .in_legend = false});
    const bool left = bits > 4.8;
    if (uniform_of(o.mix)) return figure;  // its mark has its name
    figure.add("",
               TextMark{.x = bits,
                        .y = own,
                        .text = "your mix " + divergence_text(o.own.score.divergence),
                        .anchor = left ? Anchor::right : Anchor::left,
                        .strong = true,
                        .dx = left ? -14.0F : 14.0F,
                        .dy = 20,
                        .boxed = true},
               {.color = {Role::text}, .in_legend = false});
    return figure;
}

std::string layers_title(const Outcome& o) {
    if (o.layers.size() < 2) return "The layer";
    const auto by = [](const LayerRow& row) { return row.sensitivity; };
    const std::string_view probe = find_low_format(o.spec.probe, "probe").label;
    const auto row_of = [&](auto it) { return static_cast<std::size_t>(it - o.layers.begin()); };
    const std::size_t least = row_of(std::ranges::min_element(o.layers, {}, by)),
                      most = row_of(std::ranges::max_element(o.layers, {}, by));
    // The layer that has the fewest bits of all, where it is the one that costs most.
    const auto bits = [&](std::size_t l) {
        return bits_per_element(o.mix.weights[l]->weights, o.layers[l].outputs, o.layers[l].inputs);
    };
    bool lowest = !uniform_of(o.mix);
    for (std::size_t l = 0; l < o.layers.size(); ++l) lowest = lowest && (l == most || bits(l) > bits(most));
    // Or one that costs far more than each other one.
    constexpr double kFar = 3;
    bool far = true;
    for (std::size_t l = 0; l < o.layers.size(); ++l)
        far = far && (l == most || o.layers[most].sensitivity > kFar * o.layers[l].sensitivity);
    lowest = lowest || far;
    const std::size_t shown = lowest ? most : least;
    return fmt::format("Layer {} holds {:.0f} % of the weights, and {} costs it {}", shown + 1,
                       o.layers[shown].share_pct, probe, lowest ? "most" : "least");
}

std::string outputs_title(const Outcome& o) {
    if (!o.setup->network.classifies)
        return fmt::format("Its outputs differ by {} % of their size",
                           screen_number(o.own.score.relative_pct, 2));
    const auto answers = [](int n) {
        return n == 1 ? std::string("1 answer") : fmt::format("{} answers", n);
    };
    std::string title = fmt::format("It changes {} of {}", answers(o.own.score.changed), o.rows());
    const auto nvfp4 =
        std::ranges::find(o.uniforms, "nvfp4", [](const OutputRow& row) { return row.format->id; });
    const LowFormat* uniform = uniform_of(o.mix);
    if (nvfp4 != o.uniforms.end() && (!uniform || uniform->id != "nvfp4"))
        title += fmt::format("; NVFP4 everywhere changes {}", nvfp4->score.changed);
    return title;
}

}  // namespace fp8lab::lower
