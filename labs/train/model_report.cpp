// What the lab shows of a run: figures, metrics, sentences.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/live/metrics.h"
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
void add_cost(MetricList& list, const History& history, std::size_t index) {
    const auto& cost = history.arms()[index].cost;
    if (!cost) return;
    const std::string arm(1, "abc"[index]);
    list.number("step_q1_ms_" + arm, cost->step_q1_ms, "ms");
    list.number("step_q3_ms_" + arm, cost->step_q3_ms, "ms");
    list.number("tflops_" + arm, tflops(*cost), "TFLOP/s");
    list.number("memory_" + arm, cost->memory_bytes, "bytes");
    if (const auto speedup = index > 0 ? speedup_of(history, index) : std::nullopt)
        list.number("speedup_" + arm, speedup->ratio);
}

// The two metrics of lost mass, their names made from `pattern`; absent where they are not known: a record of
// before has none.
void add_lost(MetricList& list, const std::string& pattern, double l1, double energy) {
    for (const auto& [part, value] : {std::pair{"l1", l1}, {"energy", energy}})
        if (!std::isnan(value)) list.number(fmt::format(fmt::runtime(pattern), part), value, "%");
}

// Of the experiment: the worst gradient, the tensor that is shown, and the health table.
void add_health(MetricList& list, const ArmTrack& arm, TensorId shown_id, int micro_batches) {
    if (const TensorTrack* worst = arm.worst_gradient()) {
        list.number("worst_underflow_pct", worst->underflow_mean_pct(), "%");
        list.word("worst_underflow_tensor", worst->spec.name);
        add_lost(list, "worst_lost_{}_pct", worst->lost_l1_mean_pct(), worst->lost_energy_mean_pct());
    }
    if (const TensorTrack* shown = arm.find(shown_id); shown && shown->measured > 0) {
        list.number("shown_underflow_pct", shown->underflow_pct.last(), "%");
        add_lost(list, "shown_lost_{}_pct", shown->lost_l1_pct.last(), shown->lost_energy_pct.last());
    }
    list.number("overflow_steps", arm.overflow_steps());
    for (const TensorTrack& tensor : arm.tensors) {
        if (!tensor.applies()) continue;
        const std::string& id = tensor.spec.name;
        list.number("amax_" + id, tensor.amax.last());
        list.number("scale_" + id, tensor.scale.last());
        if (tensor.measured == 0) continue;
        list.number("underflow_pct_" + id, tensor.underflow_mean_pct(), "%");
        add_lost(list, "lost_{}_pct_" + id, tensor.lost_l1_mean_pct(), tensor.lost_energy_mean_pct());
        list.number("overflow_steps_" + id, double(tensor.overflow_at.size()));
        if (!std::isnan(tensor.saturated_casts))
            list.number("saturated_casts_pct_" + id, tensor.saturated_casts_pct(micro_batches), "%");
    }
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
    if (history_.steps() > 0) return loss_thumbnail(history_, looks());
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
    return loss_thumbnail(*small_, arm_looks(spec.arms));
}

std::vector<Metric> TrainLab::metrics() const {
    const TrainSpec& now = spec();
    MetricList list;
    list.number("step", step());
    for (std::size_t i = 0; i < now.arms.size(); ++i) {
        const std::string arm(1, "abc"[i]);
        list.word("recipe_" + arm, now.arms[i].name);
        if (i >= history_.arms().size()) continue;
        const ArmTrack& track = history_.arms()[i];
        list.number("loss_" + arm, track.tail_loss());
        if (i > 0) list.number("gap_" + arm + "_pct", gap_pct(history_, i), "%");
        if (!track.decision.empty()) list.number("accuracy_" + arm, track.accuracy.last());
        list.stopped("stopped_" + arm, track);
        if (track.loss_scale > 0) {
            list.number("loss_scale_" + arm, static_cast<double>(track.loss_scale));
            list.number("skipped_" + arm, track.skipped);
        }
        if (track.accumulate_error_pct.is_known())
            list.number("accumulate_error_" + arm + "_pct", track.accumulate_error_pct.value(), "%");
        if (track.v_zero_pct.is_known()) {
            list.number("v_zero_" + arm + "_pct", track.v_zero_pct.value(), "%");
            list.number("large_updates_" + arm + "_ppm", track.large_updates_ppm.value(), "ppm");
        }
        list.word("provenance_" + arm, std::string(to_string(track.provenance)));
        list.number("step_ms_" + arm, ms_per_step(i), "ms");
        add_cost(list, history_, i);
    }
    if (history_.arms().size() > 1)
        add_health(list, history_.arms()[1], shown_tensor(), now.accumulate.micro_batches);
    list.number("steps_per_second", status().steps_per_second, "steps/s");
    return std::move(list.all);
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
    std::vector<std::string> out = Lab::metric_names();
    const TrainSpec& now = spec();
    for (std::size_t i = 0; i < now.arms.size(); ++i) {
        const std::string arm(1, "abc"[i]);
        add_names(out,
                  {"loss_{}", "gap_{}_pct", "stopped_{}", "loss_scale_{}", "skipped_{}",
                   "accumulate_error_{}_pct", "v_zero_{}_pct", "large_updates_{}_ppm", "provenance_{}",
                   "step_ms_{}", "step_q1_ms_{}", "memory_{}", "tflops_{}", "step_q3_ms_{}", "speedup_{}"},
                  arm);
        if (now.task == TaskKind::spiral) add_names(out, {"accuracy_{}"}, arm);
    }
    add_names(out, {"{}_underflow_pct", "{}_underflow_tensor", "{}_lost_l1_pct", "{}_lost_energy_pct"},
              "worst");
    add_names(out, {"{}_underflow_pct", "{}_lost_l1_pct", "{}_lost_energy_pct"}, "shown");
    out.emplace_back("overflow_steps");
    for (const OperandSpec& tensor : model_plan(now).tensors)
        add_names(out,
                  {"amax_{}", "scale_{}", "underflow_pct_{}", "lost_l1_pct_{}", "lost_energy_pct_{}",
                   "overflow_steps_{}", "saturated_casts_pct_{}"},
                  tensor.name);
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
