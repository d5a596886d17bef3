#include "labs/live/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fp8lab::live {

AxisSpec step_axis(int steps) { return {.label = "step", .range = Range{0, double(steps)}}; }

void add_now(Figure& figure, int done, int steps) {
    if (done == 0 || done >= steps) return;
    figure.vline("now", done - 1, {.color = {Role::axis}, .width = 1, .dash = Dash::dot, .in_legend = false});
}

Style batch_style(const ArmLook& look, float opacity) {
    return {.color = {look.role, Tone::line, opacity}, .width = 1, .in_legend = false};
}

Style mean_style(const ArmLook& look, std::string end_label) {
    return {.color = {look.role},
            .width = look.width,
            .dash = look.dash,
            .in_legend = false,
            .end_label = std::move(end_label)};
}

void add_losses(Figure& figure, const History& history, const std::vector<ArmLook>& looks, float opacity) {
    const auto& arms = history.arms();
    for (std::size_t i = arms.size(); i-- > 0;)
        figure.line(looks[i].name + " each batch##raw" + std::to_string(i), arms[i].step.data(),
                    arms[i].loss.data(), batch_style(looks[i], opacity));
    for (std::size_t i = arms.size(); i-- > 0;) {  // the reference last: its dashes lie on top
        const std::string value = arms[i].stopped ? "NaN" : loss_text(arms[i].mean.last());
        figure.line(looks[i].name + "##" + std::to_string(i), arms[i].step.data(), arms[i].mean.data(),
                    mean_style(looks[i], looks[i].name + " " + value));
    }
}

void widen(Figure& figure, double factor) {
    if (const Range shown = fit(figure).y; !figure.y.range && shown.hi < factor * shown.lo)
        figure.y.range = Range{shown.hi / factor, shown.hi};
}

Figure loss_thumbnail(const History& history, const std::vector<ArmLook>& looks) {
    Figure figure{.id = "thumbnail", .title = {}};
    figure.y.scale = Scale::log10;
    for (std::size_t i = history.arms().size(); i-- > 0;) {
        const ArmTrack& arm = history.arms()[i];
        figure.line(looks[i].name, arm.step.data(), arm.mean.data(),
                    {.color = {looks[i].role}, .width = looks[i].width, .dash = looks[i].dash});
    }
    return figure;
}

Figure gap_figure(std::string title, int steps, const History& history, Range range, Range band,
                  const std::string& words) {
    for (const ArmTrack& arm : history.arms()) {
        const auto gaps = arm.gap_pct.values();
        for (std::size_t i = std::min<std::size_t>(20, gaps.size()); i < gaps.size(); ++i) {
            if (!std::isfinite(gaps[i])) continue;
            range.lo = std::min(range.lo, 1.35 * gaps[i]);
            range.hi = std::max(range.hi, 1.35 * gaps[i]);
        }
    }
    Figure figure{.id = "gap", .title = std::move(title), .subtitle = "means of the last 100 steps"};
    figure.x = step_axis(steps);
    figure.y = {.label = "gap %", .range = range};
    // A band that is too low for its words would have the curve run through them.
    const bool high = band.hi - band.lo > 0.2 * (range.hi - range.lo);
    figure.yspan(high ? words : "", band.lo, band.hi, {.color = {Role::e4m3}});
    figure.hline("no gap", 0, {.color = {Role::axis}, .width = 1, .in_legend = false});
    return figure;
}

std::string gap_sentence(const std::vector<ArmLook>& looks, std::size_t arm, double gap_pct) {
    return fmt::format("{} is {} % {} {}", looks[arm].name, percent_text(gap_pct),
                       gap_pct < 0 ? "below" : "above", looks[0].name);
}

std::string state_sentence(const History& history, const std::vector<ArmLook>& looks) {
    if (history.steps() == 0) return "Run it and watch whether the curves stay together";
    for (std::size_t i = 0; i < history.arms().size(); ++i)
        if (const auto& stopped = history.arms()[i].stopped)
            return fmt::format("{} stopped at step {}: {} is not finite", looks[i].name, stopped->step,
                               stopped->tensor);
    return {};
}

}  // namespace fp8lab::live
