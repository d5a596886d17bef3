// What the lab shows of a run: figures, metrics, sentences.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/seeded.h"
#include "labs/train/model.h"

namespace fp8lab::train {
namespace {

// "tensor-core", or "bf16 tensor-core, nvfp4 gpu-emulated" where the arms differ.
std::string provenance_text(const History& history, const TrainSpec& spec) {
    const auto& arms = history.arms();
    if (arms.empty()) return std::string(to_string(Provenance::cpu_emulated));
    const auto same = [&](const ArmTrack& arm) { return arm.provenance == arms[0].provenance; };
    if (std::ranges::all_of(arms, same)) return std::string(to_string(arms[0].provenance));
    std::string text;
    for (std::size_t i = 0; i < arms.size(); ++i)
        text += fmt::format("{}{} {}", i > 0 ? ", " : "", spec.arms[i].name, to_string(arms[i].provenance));
    return text;
}

// What a step of the arm costs, measured on a GPU only.
void add_cost(std::vector<Metric>& metrics, const History& history, std::size_t index) {
    const auto& cost = history.arms()[index].cost;
    if (!cost) return;
    const std::string arm(1, "abc"[index]);
    metrics.push_back({.name = "step_q1_ms_" + arm, .value = cost->step_q1_ms, .unit = "ms"});
    metrics.push_back({.name = "step_q3_ms_" + arm, .value = cost->step_q3_ms, .unit = "ms"});
    metrics.push_back({.name = "tflops_" + arm, .value = tflops(*cost), .unit = "TFLOP/s"});
    metrics.push_back({.name = "memory_" + arm, .value = cost->memory_bytes, .unit = "bytes"});
    if (const auto speedup = index > 0 ? speedup_of(history, index) : std::nullopt)
        metrics.push_back({.name = "speedup_" + arm, .value = speedup->ratio});
}

// The two metrics of lost mass, their names made from `pattern`; absent where they are not known: a record of
// before has none.
void add_lost(std::vector<Metric>& metrics, const std::string& pattern, double l1, double energy) {
    for (const auto& [part, value] : {std::pair{"l1", l1}, {"energy", energy}})
        if (!std::isnan(value))
            metrics.push_back(
                {.name = fmt::format(fmt::runtime(pattern), part), .value = value, .unit = "%"});
}

}  // namespace

Picture TrainLab::picture(const TrainSpec& spec) const {
    std::vector<int> poisoned;
    for (const Poisoned& one : poisoned_)
        if (one.located) poisoned.push_back(changes_[one.change].step);
    std::vector<ControlMark> moved;
    for (const Moved& control : moved_) moved.push_back(control.mark);
    return {history_,
            spec,
            shown_tensor(),
            parameters(provenance_text(history_, spec)),
            std::move(poisoned),
            std::move(moved)};
}

std::vector<Figure> TrainLab::figures() const {
    const TrainSpec now = spec();
    std::vector<Figure> all = train::figures(picture(now));
    if (failed()) all.front().title = status().message;  // what was reached stays on the stage
    if (history_.steps() == 0 || !message().empty()) return all;
    return of_seed(static_cast<int>(now.seed), std::move(all),
                   {"loss", "gap", "underflow", "lost-l1", "lost-energy"});
}

Figure TrainLab::thumbnail() const {
    if (history_.steps() > 0) return loss_thumbnail(picture(spec()));
    Params params;
    params.steps = 200;
    params.batch = 32;
    TrainSpec spec = spec_of(params);
    spec.layers = {32, 16, 1};
    if (!small_) {
        const auto backend = cpu_backend();
        const auto trainer = backend->make_trainer(spec);
        trainer->step(spec.steps);
        small_.emplace().append(trainer->snapshot(), model_plan(spec));
    }
    return loss_thumbnail({*small_, spec, {}, {}});
}

std::vector<Metric> TrainLab::metrics() const {
    const TrainSpec now = spec();
    std::vector<Metric> all = {{.name = "step", .value = double(history_.steps())}};
    for (std::size_t i = 0; i < now.arms.size(); ++i) {
        const std::string arm(1, "abc"[i]);
        all.push_back({.name = "recipe_" + arm, .text = now.arms[i].name});
        if (i >= history_.arms().size()) continue;
        const ArmTrack& track = history_.arms()[i];
        all.push_back({.name = "loss_" + arm, .value = track.tail_loss()});
        if (i > 0) all.push_back({.name = "gap_" + arm + "_pct", .value = gap_pct(history_, i), .unit = "%"});
        if (!track.decision.empty())
            all.push_back({.name = "accuracy_" + arm, .value = track.accuracy.last()});
        if (track.stopped)
            all.push_back({.name = "stopped_" + arm,
                           .text = fmt::format("step {}, {}", track.stopped->step, track.stopped->tensor)});
        all.push_back({.name = "provenance_" + arm, .text = std::string(to_string(track.provenance))});
        all.push_back({.name = "step_ms_" + arm, .value = ms_per_step(i), .unit = "ms"});
        add_cost(all, history_, i);
    }
    if (history_.arms().size() > 1) {
        const ArmTrack& experiment = history_.arms()[1];
        if (const TensorTrack* worst = experiment.worst_gradient()) {
            all.push_back({.name = "worst_underflow_pct", .value = worst->underflow_mean_pct(), .unit = "%"});
            all.push_back({.name = "worst_underflow_tensor", .text = worst->spec.name});
            add_lost(all, "worst_lost_{}_pct", worst->lost_l1_mean_pct(), worst->lost_energy_mean_pct());
        }
        if (const TensorTrack* shown = experiment.find(shown_tensor()); shown && shown->measured > 0) {
            all.push_back({.name = "shown_underflow_pct", .value = shown->underflow_pct.last(), .unit = "%"});
            add_lost(all, "shown_lost_{}_pct", shown->lost_l1_pct.last(), shown->lost_energy_pct.last());
        }
        all.push_back({.name = "overflow_steps", .value = double(experiment.overflow_steps())});
        for (const TensorTrack& tensor : experiment.tensors) {  // the health table
            if (!tensor.applies()) continue;
            const std::string& id = tensor.spec.name;
            all.push_back({.name = "amax_" + id, .value = tensor.amax.last()});
            all.push_back({.name = "scale_" + id, .value = tensor.scale.last()});
            if (tensor.measured == 0) continue;
            all.push_back({.name = "underflow_pct_" + id, .value = tensor.underflow_mean_pct(), .unit = "%"});
            add_lost(all, "lost_{}_pct_" + id, tensor.lost_l1_mean_pct(), tensor.lost_energy_mean_pct());
            all.push_back({.name = "overflow_steps_" + id, .value = double(tensor.overflow_at.size())});
        }
    }
    all.push_back({.name = "steps_per_second", .value = status().steps_per_second, .unit = "steps/s"});
    return all;
}

std::vector<std::string> TrainLab::figure_ids() const {
    std::vector<std::string> out = Lab::figure_ids();
    const TrainSpec now = spec();
    if (now.task == TaskKind::spiral)
        for (std::size_t i = 0; i < now.arms.size(); ++i) out.push_back(fmt::format("boundary-{}", "abc"[i]));
    out.emplace_back("step");
    return out;
}

std::vector<std::string> TrainLab::metric_names() const {
    constexpr std::array kOfArm = {"loss_{}",       "gap_{}_pct",    "stopped_{}", "provenance_{}",
                                   "step_ms_{}",    "step_q1_ms_{}", "memory_{}",  "tflops_{}",
                                   "step_q3_ms_{}", "speedup_{}"};
    constexpr std::array kOfTensor = {"amax_{}",        "scale_{}",           "underflow_pct_{}",
                                      "lost_l1_pct_{}", "lost_energy_pct_{}", "overflow_steps_{}"};
    std::vector<std::string> out = Lab::metric_names();
    const TrainSpec now = spec();
    for (std::size_t i = 0; i < now.arms.size(); ++i) {
        for (const char* name : kOfArm) out.push_back(fmt::format(fmt::runtime(name), "abc"[i]));
        if (now.task == TaskKind::spiral) out.push_back(fmt::format("accuracy_{}", "abc"[i]));
    }
    for (const char* name :
         {"worst_underflow_pct", "worst_underflow_tensor", "worst_lost_l1_pct", "worst_lost_energy_pct",
          "shown_underflow_pct", "shown_lost_l1_pct", "shown_lost_energy_pct", "overflow_steps"})
        out.emplace_back(name);
    for (const OperandSpec& tensor : model_plan(now).tensors)
        for (const char* name : kOfTensor) out.push_back(fmt::format(fmt::runtime(name), tensor.name));
    return out;
}

double TrainLab::ms_per_step(std::size_t arm) const {
    if (arm >= history_.arms().size()) return std::numeric_limits<double>::quiet_NaN();
    if (const auto& cost = history_.arms()[arm].cost) return cost->step_ms;
    const auto times = history_.arms()[arm].step_ms.values();
    const auto tail = times.last(std::min(times.size(), kTailSteps));
    if (tail.empty()) return std::numeric_limits<double>::quiet_NaN();
    std::vector<double> sorted(tail.begin(), tail.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    return *middle;
}

std::vector<Figure> TrainLab::recorded_curves() const {
    const auto run = recorded_run().run;
    if (!run) return {};
    TrainSpec recorded;
    recorded.arms = run->arms;
    recorded.steps = run->steps();
    std::vector<Figure> out = curves({run->history, recorded, {}, {}, {}, {}});
    out.front().title = finding();
    return out;
}

std::string TrainLab::verdict() const {
    const auto& arms = history_.arms();
    const TensorTrack* worst = arms.size() > 1 ? arms[1].worst_gradient() : nullptr;
    const bool passes = std::abs(gap_pct(history_, 1)) <= kPassGapPct;
    if (!worst || worst->underflow_mean_pct() < kLostGradientPct || !passes) return {};
    const std::string share = lost_share(*worst);
    return fmt::format(
        "{} % of {}’s elements became 0, mean of the run. They are its smallest elements{}, and "
        "the loss does not show it.",
        format_number(worst->underflow_mean_pct(), 3, true), worst->spec.name,
        share.empty() ? "" : ": " + share);
}

}  // namespace fp8lab::train
