#include "labs/gpus/model.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/ranks/sums.h"
#include "labs/live/pace.h"

namespace fp8lab::gpus {

using table::Experiment, table::known, table::known_word, table::MetricRow;

const LabInfo Gpus::kInfo = {
    "gpus",
    15,
    "Many GPUs",
    "Many GPUs, one set of weights",
    "Every GPU has a batch of its own. What must travel between them, and in how many bits?",
    35,
    "L8",
    "",
    "it shows what travels between ranks, and a notebook is one process",
    true};

Source source_of(const Shipped& shipped, const Recorded& recorded) {
    for (const Recording& recording : shipped.recordings) {
        Source out{.gpu = recording.gpu,
                   .date = recording.date,
                   .comm_date = {},
                   .bf16 = {},
                   .fp8 = {},
                   .links = {}};
        out.bf16 = parts_of(recording, "bf16"), out.fp8 = parts_of(recording, "delayed");
        out.links = links_of(recorded, recording.gpu);
        for (const RecordedComm& comm : recorded.comm)
            if (comm.gpu == recording.gpu) out.comm_date = comm.date;
        if (out.known()) return out;
    }
    Source none;
    none.problem = recorded.problem;
    return none;
}

Times times_of(const Source& source, const StepSpec& spec) {
    Times out{.source = source, .fp8 = {}, .bf16 = {}};
    if (!source.known()) return out;
    StepSpec other = spec;
    other.gather_bytes = 2;
    out.fp8 = step_of(source.fp8, source.links, spec);
    out.bf16 = step_of(source.bf16, source.links, other);
    out.efficiency_pct = efficiency_pct(source.fp8, source.links, spec);
    other = spec;
    other.gpus = kMostGpus;
    out.efficiency_most_pct = efficiency_pct(source.fp8, source.links, other);
    return out;
}

Gpus::Gpus()
    : times(
          "", [this] { return params.step_spec(); },
          [source = source](const StepSpec& spec) { return times_of(source, spec); }, table::When::in_frame),
      paper(
          "", [this] { return params.step_spec(); },
          [source = source](const StepSpec& spec) {
              return paper_of({source.bf16, source.fp8, source.links, spec.network, spec.rows});
          },
          table::When::in_frame),
      sums(
          "", [this] { return params.seed; }, sums_of),
      drift(
          "", [this] { return params.drift_spec(); }, drift_of),
      training([this] {
          return Training::Plan{params.step > 0 ? params.arms() : std::vector<TrainSpec>{}, params.step};
      }),
      outcome_part([this] { outcome = outcome_of(params, training); }) {}

std::span<const Experiment<Gpus>> Gpus::experiments() {
    static const std::array<Experiment<Gpus>, 1> kOne = {
        {{.figure_ids = {"step", "sum", "scaling", "ranks", "paper"},
          .figures = &Gpus::figures,
          .metrics = &Gpus::metrics}}};
    return kOne;
}

bool Gpus::perform(std::string_view action) {
    problem.clear();
    if (action == "run") {
        if (params.step >= kSteps || training.stopped()) training.again();
        params.step = kSteps;
    } else if (action == "step") {
        params.step = std::min(outcome.step + 1, kSteps);
    } else if (action == "restart") {
        params.step = 0;
    } else if (const auto step = live::run_to_step(action)) {
        params.step = std::clamp(*step, 0, kSteps);
    } else {
        return false;
    }
    return true;
}

std::string Gpus::command() const {
    return "fp8lab train --backend cpu " + command_line(params.arms().back());
}

std::string Gpus::torchrun() const {
    return fmt::format(
        "torchrun --nproc_per_node={} train.py\n"
        "# in train.py, torchao: convert_to_float8_training(model,\n"
        "#     config=Float8LinearConfig(enable_fsdp_float8_all_gather={}))\n"
        "# then FSDP2: fully_shard(model, mp_policy=MixedPrecisionPolicy(reduce_dtype={}))\n",
        std::min(params.world(), kNode), params.sends_codes() ? "True" : "False",
        params.sum == "fp32" ? "torch.float32" : "torch.bfloat16");
}

Figure Gpus::thumbnail() const {
    const Params usual;
    Figure figure = scaling_figure(usual, times_of(source, usual.step_spec()), *recorded_on_several);
    figure.title.clear();
    return figure;
}

std::vector<Figure> Gpus::figures() const {
    return {step_figure(params, *times), sum_figure(params, *sums),
            scaling_figure(params, *times, *recorded_on_several), ranks_figure(params, outcome, *drift),
            paper_figure(*paper)};
}

void Gpus::add_sums(std::vector<MetricRow>& out) const {
    out.push_back(known("sum_error_pct", sums->error_pct(params.sum, params.world()), "%"));
    out.push_back(known("kept_pct", sums->kept_pct(params.sum, params.world()), "%"));
    for (const RankSum& sum : rank_sums())
        for (int ranks = 1; ranks <= kSumRanks; ranks *= 2) {
            const std::string prefix = fmt::format("sum.{}.{}.", sum.id, ranks);
            out.push_back(known(prefix + "error_pct", sums->error_pct(sum.id, ranks), "%"));
            out.push_back(known(prefix + "kept_pct", sums->kept_pct(sum.id, ranks), "%"));
        }
}

void Gpus::add_trained(std::vector<MetricRow>& out) const {
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    const auto when_there = [&](bool value) { return outcome.has_states ? (value ? 1.0 : 0.0) : unknown; };
    out.push_back(known("steps_done", outcome.step));
    out.push_back(known("tail", outcome.tail));
    out.push_back(known("gap_pct", outcome.gap_pct, "%"));
    out.push_back(known("reduced_gap_pct", outcome.usual_gap_pct, "%"));
    out.push_back(known("gradient_error_pct", outcome.gradient_error_pct, "%"));
    out.push_back(known("spread_pct", outcome.spread_pct, "%"));
    out.push_back(known("off_pct", outcome.has_states ? outcome.off_pct : unknown, "%"));
    out.push_back(known("bytes_equal", when_there(outcome.bytes_equal)));
    out.push_back(known("values_equal", when_there(outcome.values_equal)));
    out.push_back(known("loss_off_pct", outcome.loss_off_pct, "%"));
    out.push_back(
        known("checks_equal", outcome.checks_equal ? (*outcome.checks_equal ? 1.0 : 0.0) : unknown));
    out.push_back(known("drift.own_pct", drift->most_own_pct(), "%"));
    out.push_back(known("drift.same_pct", drift->most_same_pct(), "%"));
    out.push_back(known("drift.own_gap_pct", 100 * (drift->own_tail / drift->same_tail - 1), "%"));
    out.push_back(known("x1_lost_pct.bad", outcome.lost_bad_pct, "%"));
    out.push_back(known("x1_lost_pct.others", outcome.lost_others_pct, "%"));
    out.push_back(known("loss_next5_ratio", outcome.next5_ratio));
    out.push_back(known("first_nonfinite_step", outcome.first_nonfinite));
}

std::vector<MetricRow> Gpus::metrics() const {
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    const bool is_known = times->source.known();
    const auto time = [&](double value) { return is_known ? value : unknown; };
    const Sent sent = sent_of(params);
    constexpr double kMb = 1e6;
    std::vector<MetricRow> out = {
        known_word("times", is_known ? "simulated" : "not known"),
        known("step_ms", time(times->fp8.total()), "ms"),
        known("bf16_step_ms", time(times->bf16.total()), "ms"),
        known("network_shown_ms", time(times->fp8.shown()), "ms"),
        known("network_share_pct", time(100 * times->fp8.shown() / times->fp8.total()), "%"),
        known("efficiency_pct", time(times->efficiency_pct), "%"),
        known("efficiency_16384_pct", time(times->efficiency_most_pct), "%"),
        known("sent_mb.gradients", sent.gradients / kMb, "MB"),
        known("sent_mb.weights", sent.weights / kMb, "MB"),
        known("sent_mb.amax", sent.amax / kMb, "MB")};
    const auto add_fit = [&](const std::string& name, const Fit& fit) {
        out.push_back(known(name + "alpha_ms", time(fit.alpha_ms), "ms"));
        out.push_back(known(name + "beta_gbs", time(fit.beta_gbs), "GB/s"));
        out.push_back(known(name + "worst_pct", time(fit.worst_pct), "%"));
    };
    const Links& links = times->source.links;
    for (const int place : {0, 1}) {
        add_fit(fmt::format("fit.all_gather.{}.", place == 0 ? 2 : 4), links.gather[place]);
        add_fit(fmt::format("fit.reduce_scatter.{}.", place == 0 ? 2 : 4), links.reduce_scatter[place]);
    }
    add_sums(out);
    add_trained(out);
    for (const PaperCurve& curve : paper->curves) {
        const std::string prefix =
            fmt::format("paper.{}.{}.", kPaperModels.at(curve.model).id, curve.fp8 ? "fp8" : "bf16");
        for (const PaperPoint& point : curve.points) {
            if (point.gpus != 8 && point.gpus != 128 && point.gpus != 1024 && point.gpus != kMostGpus)
                continue;
            const std::string at = prefix + std::to_string(point.gpus) + ".";
            out.push_back(known(at + "step_ms", point.step_ms, "ms"));
            out.push_back(known(at + "network_share_pct", point.share_pct(), "%"));
            out.push_back(known(at + "memory_gb", point.memory / 1e9, "GB"));
        }
        out.push_back(known(prefix + "half_at_gpus", curve.half_at));
        out.push_back(known_word(prefix + "breaks", curve.breaks()));
    }
    return out;
}

LabEntry entry() { return entry_of<GpusLab>(Gpus::kInfo); }

}  // namespace fp8lab::gpus
