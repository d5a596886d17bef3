#include "labs/train/model_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/live/cost.h"

namespace fp8lab::train {
namespace {

// ---- loss ----

void add_poison(Figure& figure, const Picture& picture) {
    for (const int step : picture.poisoned) figure.vline("batch \u00d7 1000##" + std::to_string(step), step);
}

// A line at each step where a control was moved, with its value beside it: below the top, in three rows by turns,
// so that neighbours do not meet.
void add_moved(Figure& figure, const Picture& picture, bool with_words) {
    if (picture.moved.empty()) return;
    constexpr std::size_t kRows = 3;
    std::vector<ControlMark> lines;  // one a step
    for (const ControlMark& mark : picture.moved) {
        if (lines.empty() || lines.back().step != mark.step)
            lines.push_back(mark);
        else
            lines.back().label += ", " + mark.label;
    }
    const double top = fit(figure).y.hi;
    Style style = kHairline;
    style.in_legend = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const double step = lines[i].step;
        figure.vline(lines[i].label + "##moved" + std::to_string(i), step, style);
        if (!with_words) continue;
        TextMark words{.x = step, .y = top, .text = lines[i].label, .dx = 6};
        words.dy = 28 + 20 * static_cast<float>(i % kRows);
        if (i + kRows < lines.size()) words.room = Range{step, double(lines[i + kRows].step)};
        figure.add("", std::move(words), {.color = {Role::text}});
    }
}

Figure loss_figure(const Picture& picture) {
    Figure figure{
        .id = "loss", .title = finding(picture), .subtitle = "thin: each batch   thick: mean of the last 50"};
    figure.x = step_axis(picture.spec.steps);
    figure.y = {.label = "loss", .scale = Scale::log10, .range = {}};
    if (picture.history.steps() == 0) figure.y.range = Range{0.02, 2};
    add_losses(figure, picture.history, arm_looks(picture.spec.arms), 0.2F);
    widen(figure, 4);
    add_moved(figure, picture, true);
    add_poison(figure, picture);
    add_now(figure, picture.history.steps(), picture.spec.steps);
    return figure;
}

// ---- gap ----

// As live::gap_sentence(); from a factor of two on, "FP8's loss is 12 times BF16's".
std::string gap_sentence(const Picture& picture, std::size_t arm) {
    const auto looks = arm_looks(picture.spec.arms);
    const double gap = gap_pct(picture.history, arm);
    if (!(gap >= 100)) return live::gap_sentence(looks, arm, gap);
    return fmt::format("{}\u2019s loss is {} times {}\u2019s", looks[arm].name,
                       format_number(1 + gap / 100, 2, true), looks[0].name);
}

Figure gap_figure(const Picture& picture) {
    const auto looks = arm_looks(picture.spec.arms);
    const auto& arms = picture.history.arms();
    const bool known = std::isfinite(gap_pct(picture.history, 1));
    Figure figure = live::gap_figure(
        known ? gap_sentence(picture, 1) : "Gap of the losses", picture.spec.steps, picture.history,
        {-1.5, 6.5}, {-kPassGapPct, kPassGapPct}, "shaded: within 5 %, the limit of the exercises");
    for (std::size_t i = arms.size(); i-- > 1;) {
        const double gap = gap_pct(picture.history, i);
        std::string label = std::isfinite(gap) ? signed_percent(gap) : "";
        if (arms.size() > 2 && !label.empty()) label = looks[i].name + " " + label;
        figure.line(looks[i].name + "##" + std::to_string(i), arms[i].step.data(), arms[i].gap_pct.data(),
                    {.color = {looks[i].role},
                     .width = 2,
                     .dash = i > 1 ? Dash::dot : Dash::solid,
                     .in_legend = false,
                     .end_label = std::move(label)});
    }
    // A poisoned batch is in the mean of the steps after it, and makes a plateau of them.
    for (const int step : picture.poisoned)
        figure.xspan("batch \u00d7 1000 is in this mean##" + std::to_string(step), step,
                     step + double(kTailSteps), {.color = {Role::sat}});
    add_moved(figure, picture, false);
    add_now(figure, picture.history.steps(), picture.spec.steps);
    return figure;
}

// ---- the series of every tensor ----

using Column = Growing TensorTrack::*;

Figure tensor_figure(const Picture& picture, std::string id, std::string title, AxisSpec y, Column steps,
                     Column column) {
    Figure figure{.id = std::move(id), .title = std::move(title)};
    figure.x = step_axis(picture.spec.steps);
    figure.y = std::move(y);
    const auto& arms = picture.history.arms();
    if (arms.empty()) return figure;
    const std::size_t arm = arms.size() > 1 ? 1 : 0;
    for (const TensorTrack& track : arms[arm].tensors) {
        if (!track.applies()) continue;
        const ModelPlan plan = model_plan(picture.spec);
        figure.line(
            track.spec.name, (track.*steps).data(), (track.*column).data(),
            {.color = {tensor_role(picture.spec.arms[arm], plan, track.id)}, .width = 1.5F, .step = true});
    }
    return figure;
}

// What of the worst gradient became 0: "elements", "absolute sum" or "energy".
std::string underflow_title(const Picture& picture, std::string_view what,
                            double (TensorTrack::*mean)() const) {
    const auto& arms = picture.history.arms();
    const TensorTrack* worst = arms.size() > 1 ? arms[1].worst_gradient() : nullptr;
    if (!worst || std::isnan((worst->*mean)()))
        return fmt::format("Share of the {} that became 0 in the cast", what);
    return fmt::format("{}: {} % of the {} became 0, mean of the run", worst->spec.name,
                       format_number((worst->*mean)(), 3, true), what);
}

// ---- decision boundaries ----

std::string boundary_title(const Picture& picture, std::size_t arm, const std::vector<ArmLook>& looks) {
    const auto& arms = picture.history.arms();
    const auto& mine = arms[arm].decision;
    const auto& reference = arms[0].decision;
    if (arm == 0 || reference.size() != mine.size()) return "Where " + looks[arm].name + " says class 1";
    double same = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) same += (mine[i] > 0.5F) == (reference[i] > 0.5F) ? 1 : 0;
    return fmt::format("The arms agree on {} %",
                       format_number(100 * same / static_cast<double>(mine.size()), 3, true));
}

Figure boundary_figure(const Picture& picture, std::size_t arm, const std::vector<ArmLook>& looks) {
    constexpr std::array<std::string_view, 3> kIds = {"boundary-a", "boundary-b", "boundary-c"};
    Figure figure{.id = std::string(kIds.at(arm)), .title = boundary_title(picture, arm, looks)};
    figure.x = {.label = "x", .range = Range{0, kDecisionGrid}, .visible = false};
    figure.y = {.label = "y", .range = Range{0, kDecisionGrid}, .visible = false};
    const auto& grid = picture.history.arms()[arm].decision;
    figure.heatmap(looks[arm].name,
                   {.rows = kDecisionGrid,
                    .cols = kDecisionGrid,
                    .values = data({grid.begin(), grid.end()}),
                    .y_down = false},
                   {.color = {looks[arm].role, Tone::fill}, .in_legend = false});
    return figure;
}

}  // namespace

std::string finding(const Picture& picture) {
    const auto& arms = picture.history.arms();
    if (std::string state = state_sentence(picture.history, arm_looks(picture.spec.arms)); !state.empty())
        return state;
    for (std::size_t i = 1; i < arms.size(); ++i) {
        if (!(std::abs(gap_pct(picture.history, i)) <= kPassGapPct)) return gap_sentence(picture, i);
    }
    for (std::size_t i = 1; i < arms.size(); ++i) {
        const TensorTrack* worst = arms[i].worst_gradient();
        if (worst && worst->underflow_mean_pct() >= kLostGradientPct)
            return fmt::format("The curves agree, and {} % of {}’s elements became 0{}",
                               format_number(worst->underflow_mean_pct(), 3, true), worst->spec.name,
                               std::isnan(worst->lost_l1_mean_pct())
                                   ? ""
                                   : fmt::format(", {} % of its absolute sum",
                                                 format_number(worst->lost_l1_mean_pct(), 2, true)));
    }
    return arms.size() == 2 ? "The two curves stay together" : "The curves stay together";
}

std::vector<Figure> curves(const Picture& picture) { return {loss_figure(picture), gap_figure(picture)}; }

std::vector<Figure> figures(const Picture& picture) {
    std::vector<Figure> all = curves(picture);
    all.push_back(histogram_figure(picture.history, picture.spec, picture.tensor));
    all.push_back(tensor_figure(picture, "amax", "The largest element of every tensor",
                                {.label = "amax", .scale = Scale::log2, .range = {}}, &TensorTrack::step,
                                &TensorTrack::amax));
    all.push_back(tensor_figure(picture, "scale", "The scale that each cast used",
                                {.label = "scale", .scale = Scale::log2, .range = {}}, &TensorTrack::step,
                                &TensorTrack::scale));
    const auto add_underflow = [&](const char* id, const char* label, const char* what,
                                   double (TensorTrack::*mean)() const, Column column) {
        all.push_back(tensor_figure(picture, id, underflow_title(picture, what, mean),
                                    {.label = label, .range = {}}, &TensorTrack::underflow_step, column));
    };
    add_underflow("underflow", "underflow %", "elements", &TensorTrack::underflow_mean_pct,
                  &TensorTrack::underflow_pct);
    add_underflow("lost-l1", "lost L1 %", "absolute sum", &TensorTrack::lost_l1_mean_pct,
                  &TensorTrack::lost_l1_pct);
    add_underflow("lost-energy", "lost energy %", "energy", &TensorTrack::lost_energy_mean_pct,
                  &TensorTrack::lost_energy_pct);
    const auto looks = arm_looks(picture.spec.arms);
    for (std::size_t i = 0; i < picture.history.arms().size(); ++i) {
        if (!picture.history.arms()[i].decision.empty()) all.push_back(boundary_figure(picture, i, looks));
    }
    if (has_costs(picture.history)) all.push_back(step_figure(picture.history, looks));
    for (Figure& figure : all) figure.parameters = picture.parameters;
    return all;
}

}  // namespace fp8lab::train
