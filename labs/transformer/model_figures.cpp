// The pictures of L13. Every title states what the data show at that moment, with its number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/nn/models/transformer/model.h"
#include "labs/live/cost.h"
#include "labs/live/curves.h"
#include "labs/live/histogram.h"
#include "labs/seeded.h"
#include "labs/transformer/model.h"

namespace fp8lab::transformer {
namespace {

using live::ArmLook;
using live::ArmTrack;

constexpr float kOpacity = 0.22F;  // of the values of each batch
constexpr double kTogetherPct = 2, kBandPct = 5, kLearntPct = 99;

// Through the noise, as live::History has it of the losses: of the last 50 steps.
std::vector<double> mean_pct(std::span<const double> accuracy) {
    std::vector<double> out;
    for (std::size_t i = 0; i < accuracy.size(); ++i)
        out.push_back(100 * live::tail_mean(accuracy.first(i + 1), live::kMeanSteps));
    return out;
}

void add_accuracies(Figure& figure, const std::vector<ArmTrack>& arms, const std::vector<ArmLook>& looks) {
    figure.y = {.label = "accuracy %", .range = Range{0, 105}};
    figure.subtitle += "   grey: 99 %";
    // Not beyond the curves, whose labels are there.
    figure.line("99 %", data({0, arms.front().step.last()}), data({kLearntPct, kLearntPct}),
                {.color = {Role::axis}, .width = 1, .dash = Dash::dash, .in_legend = false});
    for (std::size_t i = arms.size(); i-- > 0;) {
        const auto values = arms[i].accuracy.values();
        std::vector<double> raw(values.begin(), values.end());
        for (double& value : raw) value *= 100;
        figure.line(looks[i].name + " each batch##raw" + std::to_string(i), arms[i].step.data(),
                    data(std::move(raw)), live::batch_style(looks[i], kOpacity));
    }
    for (std::size_t i = arms.size(); i-- > 0;) {
        std::vector<double> mean = mean_pct(arms[i].accuracy.values());
        const std::string label = fmt::format("{} {}", looks[i].name, format_number(mean.back(), 3, true));
        figure.line(looks[i].name + "##" + std::to_string(i), arms[i].step.data(), data(std::move(mean)),
                    live::mean_style(looks[i], label));
    }
}

void add_events(Figure& figure, const TransformerLab& lab, bool words) {
    Style style = kHairline;
    style.dash = Dash::dot;
    if (const auto aligned = lab.aligned_at()) {
        // The words are at the top, where the curves and their labels are in the first steps.
        constexpr int kCurvesAtTop = 100;
        style.in_legend = words && *aligned >= kCurvesAtTop;
        figure.vline("channel aligned##aligned", *aligned, style);
    }
    live::add_now(figure, lab.step(), kSteps);
}

}  // namespace

std::string TransformerLab::block_title() const {
    const Recipe& recipe = spec().arms.at(1);
    const std::string name = looks()[1].name;
    const std::vector<Operation> ops = operations();
    const auto down = std::ranges::find(ops, std::string_view("down"), &Operation::id);
    if (aligned_at() && down->x_lost_pct >= 10)
        return fmt::format("One channel of SwiGLU fills the window: {} % of what enters down becomes 0",
                           format_number(down->x_lost_pct, 2, true));
    int lost = 0, gradients = 0;
    for (std::size_t i = 0; i < health_[1].tensors().size(); ++i) {
        if (plan().tensors[i].tensor != TensorClass::dy ||
            !is_narrow(recipe, plan(), {static_cast<std::uint16_t>(i)}))
            continue;
        ++gradients;
        lost += health_[1].tensors()[i].lost_pct > 100.0 / 3 ? 1 : 0;
    }
    if (lost > 0)
        return fmt::format("{} of {} gradients lose more than a third of their elements", lost, gradients);
    const LinearCount linears = narrow_linears(plan(), recipe);
    if (linears.narrow == 0) return "No operation of arm B is in 8 bits or fewer";
    // For copying the losses are near 0, and their ratio says nothing.
    const bool gap_known = std::isfinite(gap_pct()) && spec().task != TaskKind::copying;
    if (params_.attention == "fp8")
        return fmt::format("Attention in FP8 as well{}",
                           gap_known ? ": the gap is " + live::signed_percent(gap_pct()) : "");
    const std::string which = linears.narrow == linears.all
                                  ? "The four linears"
                                  : fmt::format("{} of {} linears", linears.narrow, linears.all);
    return fmt::format("{} are {}: {:.1f} % of the FLOP{}", which, name,
                       flop_share_pct(plan(), recipe, spec().sizes.at("context")),
                       gap_known ? ", " + live::signed_percent(gap_pct()) + " of the loss" : "");
}

std::string TransformerLab::finding() const {
    const auto arm_looks = looks();
    if (failed()) return status().message;
    if (std::string state = live::state_sentence(history_, arm_looks); !state.empty()) return state;
    if (spec().task == TaskKind::copying) {
        const int a = learnt_at(0), b = learnt_at(1);
        if (a < 0 && b < 0) return "No arm has learnt to copy yet";
        if (a >= 0 && b >= 0) return fmt::format("Both learn to copy: step {}, step {}", a, b);
        return fmt::format("{} has learnt to copy: step {}", arm_looks[a >= 0 ? 0 : 1].name, std::max(a, b));
    }
    const double gap = gap_pct();
    if (std::abs(gap) < kTogetherPct) return "The two curves stay together";
    if (gap < 0) return live::gap_sentence(arm_looks, 1, gap);
    const std::string since = aligned_at() ? fmt::format("From step {} on ", *aligned_at()) : "";
    return fmt::format("{}{} falls behind: {}", since, arm_looks[1].name, live::signed_percent(gap));
}

// What is lost, as numbers for files; on the screen the view draws the flow.
Figure TransformerLab::block_figure() const {
    Figure figure{.id = "block", .title = block_title()};
    const std::vector<Operation> ops = operations();
    const auto cols = static_cast<int>(ops.size());
    figure.x = {.label = "operation", .range = Range{0, double(cols)}, .visible = false};
    figure.y = {.label = "lost %", .range = Range{0, 2}, .visible = false};
    std::vector<double> values;
    std::vector<std::string> labels;
    for (const double Operation::*part : {&Operation::x_lost_pct, &Operation::dy_lost_pct})
        for (const Operation& op : ops) {
            values.push_back(op.*part);
            labels.push_back(std::isfinite(op.*part) ? format_number(op.*part, 3, true) : "");
        }
    figure.heatmap("lost %",
                   {.rows = 2, .cols = cols, .values = data(std::move(values)), .hi = 100, .labels = labels},
                   {.color = {Role::under, Tone::fill}, .in_legend = false});
    for (const Operation& op : ops) {
        std::string words = fmt::format("{}, {}", op.name, op.format);
        if (std::isfinite(op.amax)) words += fmt::format(": amax of x {}", format_number(op.amax));
        if (std::isfinite(op.x_lost_pct))
            words += fmt::format(", x loses {} %", format_number(op.x_lost_pct, 3));
        if (std::isfinite(op.dy_lost_pct))
            words += fmt::format(", dy loses {} %", format_number(op.dy_lost_pct, 3));
        if (op.saturated_steps >= 0) words += fmt::format(", saturated in {} steps", op.saturated_steps);
        figure.words.push_back(words + ".");
    }
    return figure;
}

Figure TransformerLab::loss_figure(const live::History& history,
                                   const std::vector<ArmLook>& arm_looks) const {
    Figure figure{
        .id = "loss", .title = finding(), .subtitle = "thin: each batch   thick: mean of the last 50"};
    figure.x = live::step_axis(kSteps);
    figure.y = {.label = "loss", .scale = Scale::log10};
    const auto& arms = history.arms();
    const bool copying = spec().task == TaskKind::copying;
    if (arms.empty() || arms.front().step.size() == 0)
        figure.y.range = copying ? Range{0, 105} : Range{1, 5};
    else if (copying)
        add_accuracies(figure, arms, arm_looks);
    else
        live::add_losses(figure, history, arm_looks, kOpacity);
    if (copying) figure.y.label = "accuracy %", figure.y.scale = Scale::linear;
    live::widen(figure, 2);
    add_events(figure, *this, true);
    return figure;
}

Figure TransformerLab::gap_figure(const live::History& history, const std::vector<ArmLook>& arm_looks) const {
    const double gap = live::gap_pct(history, 1);
    const bool known = std::isfinite(gap);
    Figure figure = live::gap_figure(known ? live::gap_sentence(arm_looks, 1, gap) : "Gap of the losses",
                                     kSteps, history, {-2, 6.5}, {0, kBandPct}, "shaded: within 5 %");
    if (history.arms().size() > 1) {
        const ArmTrack& arm = history.arms()[1];
        figure.line(arm_looks[1].name, arm.step.data(), arm.gap_pct.data(),
                    {.color = {arm_looks[1].role}, .width = 2, .in_legend = false});
    }
    add_events(figure, *this, false);
    return figure;
}

Figure TransformerLab::histogram() const {
    Figure figure = live::histogram_figure(history_, spec(), selected());
    const auto& arms = history_.arms();
    if (arms.size() < 2 || !arms[1].watched) return figure;
    const TensorView& view = *arms[1].watched;
    if (view.id.index != selected().index && std::isnan(health_[1].tensors().at(selected().index).amax))
        return live::histogram_figure({}, spec(), selected(), "the GPU’s attention kernel does not store it");
    if (!view.format || width_bits(*view.format) > 8 || view.before.n == 0 || view.before.nonfinite > 0)
        return figure;
    const double lost = 100.0 * static_cast<double>(view.after.zeros - view.before.zeros) /
                        static_cast<double>(view.before.n);
    const std::string& name = plan().tensor(view.id).name;
    if (figure.title.ends_with("is saturated in this step")) return figure;
    if (lost >= 1)
        figure.title = fmt::format("{} % of {} is below the window", format_number(lost, 3, true), name);
    else if (std::isfinite(view.scale))
        figure.title = name + " fits into the window";
    return figure;
}

std::vector<Figure> TransformerLab::figures() const {
    const auto arm_looks = looks();
    std::vector<Figure> all = {block_figure(), loss_figure(history_, arm_looks),
                               gap_figure(history_, arm_looks), histogram()};
    if (live::has_costs(history_)) all.push_back(live::step_figure(history_, arm_looks));
    auto told = parameters(std::string(to_string(provenance())));
    if (const std::string gpu = device(); !gpu.empty()) told.insert(told.begin() + 3, {"device", gpu});
    if (const auto aligned = aligned_at())
        told.emplace_back("channel aligned after step", std::to_string(*aligned));
    for (Figure& figure : all) figure.parameters = told;
    if (step() == 0 || !message().empty()) return all;
    return of_seed(static_cast<int>(spec().seed), std::move(all), {"block", "loss", "gap"});
}

// This run's curves; before a run the operations on the residual stream, each in the colour of its format.
Figure TransformerLab::thumbnail() const {
    if (step() > 0) return live::loss_thumbnail(history_, looks());
    Figure figure{.id = "thumbnail", .title = {}};
    const std::vector<Operation> ops =
        transformer::operations(1, transformer_plan({.vocabulary = 2}), parse_recipe(defaults_.arm_b), {});
    figure.x.range = Range{0, double(ops.size())};
    figure.y.range = Range{0, 2};
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const auto x = static_cast<double>(i);
        figure.bars("operation##" + std::to_string(i), data({x + 0.12, x + 0.88}), data({1}),
                    {.color = {ops[i].role, Tone::fill}});
    }
    figure.line("residual stream", data({0, double(ops.size())}), data({1.5, 1.5}),
                {.color = {Role::bf16}, .dash = Dash::dash});
    return figure;
}

}  // namespace fp8lab::transformer
