#include "labs/live/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/units.h"

namespace fp8lab::live {
namespace {

// Products in the arm's colour, its casts in a lighter one; what no format changes is grey.
Color part_color(std::string_view name, std::size_t part, Role arm) {
    if (name == "GEMM") return {arm, Tone::fill};
    if (name == "casts") return {arm, Tone::fill, 0.5F};
    return {Role::muted, Tone::fill, part % 2 == 0 ? 0.7F : 0.3F};
}

std::string factor(double ratio) { return fmt::format("{:.{}f}", ratio, ratio < 9.995 ? 2 : 1); }

// One stacked bar on `bottom`: name, time, quartiles and memory above it, the larger shares below.
void add_bar(Figure& figure, const ArmCost& cost, const ArmLook& look, double bottom, double longest,
             bool last, bool low) {
    const double top = bottom + (low ? 0.38 : 0.28);
    double from = 0,
           sum = 0;  // the parts may run side by side: shares are of what they take one after the other
    for (const auto& [name, ms] : cost.parts) sum += ms;
    for (std::size_t i = 0; i < cost.parts.size(); ++i) {
        const auto& [name, ms] = cost.parts[i];
        figure.band(fmt::format("{}##{}", name, look.name), data({from, from + ms}), data({bottom, bottom}),
                    data({top, top}), {.color = part_color(name, i, look.role), .in_legend = last});
        if (!low && ms >= 0.13 * longest) {
            figure.add("",
                       TextMark{.x = from + ms / 2,
                                .y = bottom,
                                .text = fmt::format("{:.0f} %", 100 * ms / sum),
                                .anchor = Anchor::center,
                                .dy = 11},
                       {.color = {Role::muted}, .in_legend = false});
        }
        from += ms;
    }
    figure.add("",
               TextMark{.x = 0,
                        .y = top,
                        .text = fmt::format("{} {} ms", look.name, step_text(cost.step_ms)),
                        .strong = true,
                        .dy = -11},
               {.color = {look.role, Tone::ink}, .in_legend = false});
    figure.add(
        "",
        TextMark{.x = longest,
                 .y = top,
                 .text = fmt::format("IQR {}, {}", format_number(cost.step_q3_ms - cost.step_q1_ms, 2, true),
                                     format_bytes(static_cast<std::uint64_t>(cost.memory_bytes))),
                 .anchor = Anchor::right,
                 .dy = -11},
        {.color = {Role::muted}, .in_legend = false});
}

}  // namespace

bool has_costs(const History& history) {
    return std::ranges::any_of(history.arms(), [](const ArmTrack& arm) { return arm.cost.has_value(); });
}

std::string step_text(double ms) { return fmt::format("{:.{}f}", ms, ms < 0.0995 ? 3 : ms < 99.5 ? 2 : 0); }

double tflops(const ArmCost& cost) { return cost.step_ms > 0 ? cost.flop / cost.step_ms / 1e9 : 0; }

std::optional<Speedup> speedup_of(const History& history, std::size_t arm) {
    const auto& arms = history.arms();
    if (arm >= arms.size() || !arms[0].cost || !arms[arm].cost) return std::nullopt;
    const ArmCost &first = *arms[0].cost, &own = *arms[arm].cost;
    if (!(own.step_q1_ms > 0 && own.step_ms > 0 && own.step_q3_ms > 0)) return std::nullopt;
    return Speedup{first.step_ms / own.step_ms, first.step_q1_ms / own.step_q3_ms,
                   first.step_q3_ms / own.step_q1_ms};
}

std::string speedup_sentence(const History& history, const std::vector<ArmLook>& looks) {
    const auto speedup = speedup_of(history, 1);
    if (!speedup || looks.size() < 2) return {};
    return fmt::format("{} is {} times as fast as {}", looks[1].name, factor(speedup->ratio), looks[0].name);
}

std::string speedup_details(const History& history, const std::vector<ArmLook>& looks) {
    const auto speedup = speedup_of(history, 1);
    if (!speedup || looks.size() < 2) return {};
    return fmt::format("{}: {} to {} from quartile to quartile, {} steps.", speedup_sentence(history, looks),
                       factor(speedup->lo), factor(speedup->hi),
                       group_thousands(history.arms()[1].cost->steps));
}

Figure step_figure(const History& history, const std::vector<ArmLook>& looks, bool low) {
    const std::string sentence = speedup_sentence(history, looks);
    Figure figure{.id = "step", .title = sentence.empty() ? "Inside one step" : sentence};
    double longest = 0;
    std::size_t bars = 0;
    for (const ArmTrack& arm : history.arms()) {
        if (!arm.cost) continue;
        double sum = 0;
        for (const auto& [name, ms] : arm.cost->parts) sum += ms;
        longest = std::max({longest, sum, arm.cost->step_ms});
        ++bars;
    }
    low = low || bars > 2;
    figure.x = {.label = "ms", .range = Range{0, longest > 0 ? 1.02 * longest : 1}, .visible = !low};
    figure.y = {.range = Range{0, static_cast<double>(bars)}, .visible = false};
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < history.arms().size() && i < looks.size(); ++i) {
        const auto& cost = history.arms()[i].cost;
        if (!cost) continue;
        ++drawn;
        const double bottom = static_cast<double>(bars - drawn) + (low ? 0.06 : 0.35);
        add_bar(figure, *cost, looks[i], bottom, longest, drawn == bars, low);
    }
    return figure;
}

}  // namespace fp8lab::live
