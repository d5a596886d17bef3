#include "labs/wide/model.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/seeded.h"

namespace fp8lab::wide {
namespace {

constexpr LabInfo kInfo = {"wide",
                           14,
                           "Stays wide",
                           "What stays wide",
                           "Three places where recipes keep 16 or 32 bits. What breaks there in eight?",
                           30,
                           "L12"};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kGB = 1e9;

// Which experiment a field belongs to; empty: to all.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kBelongs = {
    {{"keys", "attention"},    {"sigma", "attention"},   {"sink", "attention"},   {"cast", "attention"},
     {"format", "attention"},  {"row_sum", "attention"}, {"head", "attention"},   {"rho", "swiglu"},
     {"k", "swiglu"},          {"jump", "swiglu"},       {"margin", "swiglu"},    {"fix", "swiglu"},
     {"step", "swiglu"},       {"history", "swiglu"},    {"beta2", "optimiser"},  {"v_format", "optimiser"},
     {"v_round", "optimiser"}, {"v_scale", "optimiser"}, {"signal", "optimiser"}, {"v0", "optimiser"},
     {"steps", "optimiser"},   {"params", "optimiser"}}};

}  // namespace

const LabInfo& WideLab::info() const { return kInfo; }

WideLab::WideLab() : WideLab(std::make_shared<Normals>()) {}

WideLab::WideLab(std::shared_ptr<Normals> normals)
    : attention_job_([normals](const AttentionSpec& spec) { return attention_of(spec, *normals); }),
      sweep_job_([normals](const AttentionSpec& spec) { return sweep_of(spec, *normals); }),
      swiglu_job_([draws = std::make_shared<SwigluDraws>()](const SwigluSpec& spec) {
          return swiglu_of(spec, *draws);
      }),
      optimiser_job_([](const OptimiserSpec& spec) { return optimiser_of(spec); }) {}

bool WideLab::belongs(std::string_view field) const {
    for (const auto& [name, experiment] : kBelongs)
        if (name == field) return experiment == params_.experiment;
    return true;
}

std::string WideLab::why_not(std::string_view field) const {
    const bool eight_bits = params_.optimiser.format == "e4m3" || params_.optimiser.format == "e5m2";
    if (field == "v_scale" && !eight_bits)
        return fmt::format("{} needs no scale.", format_label(params_.optimiser.format));
    // A scale of the block's own amax would then hold each of them exactly.
    if (field == "v_scale" && params_.optimiser.signal == "forget")
        return "Without a gradient all v are equal.";
    if (field == "v_round" && params_.optimiser.format == "fp32") return "FP32 is what v is computed in.";
    if (field == "seed" && shows("optimiser") && params_.optimiser.format == "fp32" &&
        params_.optimiser.signal == "forget")
        return "Nothing is drawn: FP32 is not rounded.";
    if (field == "steps" && params_.optimiser.signal == "noise") return "Noise runs 5 000 steps.";
    if (field == "history" && (params_.swiglu.fix == "current" || params_.swiglu.fix == "smooth"))
        return "The scale has no history here.";
    return "";
}

namespace {

template <class Spec, class Result>
void refresh(const Spec& spec, bool visible, bool first, std::optional<Spec>& asked, Job<Spec, Result>& job,
             Result& result) {
    if (!visible && !first) return;  // what its job has refused is told when it is shown again
    if (visible ? asked != spec : !asked) job.request(*(asked = spec));
    if (auto taken = job.take()) result = std::move(*taken);
}

// The sweep is of all lengths, and of no output.
AttentionSpec of_sweep(AttentionSpec spec) {
    const AttentionSpec plain;
    spec.keys = plain.keys, spec.head = plain.head, spec.sum_after = plain.sum_after;
    return spec;
}

}  // namespace

void WideLab::update() {
    if (!why_not("v_scale").empty()) params_.optimiser.scale = "one";
    if (!why_not("v_round").empty()) params_.optimiser.rounding = "nearest";
    const AttentionSpec attention = params_.attention_spec();
    refresh(attention, shows("attention"), in_window_, asked_attention_, attention_job_, attention_);
    refresh(of_sweep(attention), shows("attention"), false, asked_sweep_, sweep_job_, sweep_);
    refresh(params_.swiglu_spec(), shows("swiglu"), in_window_, asked_swiglu_, swiglu_job_, swiglu_);
    refresh(params_.optimiser_spec(), shows("optimiser"), in_window_, asked_optimiser_, optimiser_job_,
            optimiser_);
}

bool WideLab::busy() const {
    return attention_job_.busy() || sweep_job_.busy() || swiglu_job_.busy() || optimiser_job_.busy();
}

void WideLab::set_wake(std::function<void()> wake) {
    in_window_ = true;
    attention_job_.start_worker(wake);
    sweep_job_.start_worker(wake);
    swiglu_job_.start_worker(wake);
    optimiser_job_.start_worker(std::move(wake));
}

void WideLab::reset() { params_ = {}; }

const SwigluStep& WideLab::step() const {
    static const SwigluStep kNone;
    return swiglu_.steps.empty() ? kNone : swiglu_.steps.at(static_cast<std::size_t>(params_.step));
}

Recipe WideLab::recipe() const {
    const SwigluSpec& s = params_.swiglu;
    Recipe out = parse_recipe(s.fix == "current" ? "current" : "delayed");
    out.margin = s.margin;
    if (s.fix != "current") out.history = s.history;
    out.name = recipe_text(out);
    return out;
}

std::string WideLab::te_code() const {
    std::string call = transformer_engine_code(recipe());
    const std::size_t end = call.find(')');
    call.insert(end,
                call.at(end - 1) == '(' ? "fp8_dpa=False, fp8_mha=False" : ", fp8_dpa=False, fp8_mha=False");
    return call;
}

std::vector<Figure> WideLab::figures() const {
    if (shows("swiglu"))
        return of_seed(swiglu_.spec.seed,
                       {timeline_figure(swiglu_), quadratic_figure(swiglu_), pair_figure(swiglu_)},
                       {"timeline"});
    if (shows("optimiser")) {
        std::vector<Figure> out = {forget_figure(optimiser_), gap_figure(optimiser_),
                                   cliff_figure(optimiser_)};
        const OptimiserSpec& spec = optimiser_.spec;
        const bool drawn = spec.signal == "noise" || spec.rounding == "stochastic";
        return drawn ? of_seed(spec.seed, std::move(out), {"forget", "gap"}) : out;
    }
    return of_seed(attention_.spec.seed,
                   {mass_figure(attention_, cast()), keys_figure(sweep_, attention_, cast())}, {"mass"});
}

std::vector<std::string> WideLab::figure_ids() const {
    return {"mass", "keys", "timeline", "quadratic", "pair", "forget", "gap", "cliff"};
}

Figure WideLab::thumbnail() const {
    Normals normals;
    const AttentionSpec small{.keys = 2048, .head = 16};
    Figure figure = mass_figure(attention_of(small, normals), 0);
    figure.title.clear();
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    return figure;
}

std::vector<Metric> WideLab::metrics() const {
    std::vector<Metric> out;
    const auto add = [&](std::string name, bool known, double value, std::string unit = {}) {
        out.push_back({std::move(name), known ? value : kNan, std::move(unit)});
    };
    const bool a = shows("attention"), s = shows("swiglu") && !swiglu_.steps.empty(),
               o = shows("optimiser") && !optimiser_.exact.empty();
    const auto add_cast = [&](const std::string& prefix, const CastOutcome& cast) {
        add(prefix + "zero_pct", a, cast.zero_pct, "%");
        add(prefix + "lost_pct", a, cast.lost_pct, "%");
        add(prefix + "output_db", a, cast.output_db, "dB");
    };
    add_cast("a.", attention_.casts[cast()]);
    add("a.log2_z", a, attention_.log2_z);
    add("a.cut_ln", a, attention_.cut_log2(cast()) * std::log(2));
    add("a.sink_mass_pct", a, attention_.sink_mass_pct, "%");
    for (std::size_t c = 0; c < kCasts.size(); ++c)
        add_cast(fmt::format("a.{}.", kCasts[c].id), attention_.casts[c]);

    double before = 0, after = 0;
    for (std::size_t i = 0; s && i <= kGrowthStep; ++i)
        (i < kGrowthStep ? before : after) = std::max(i < kGrowthStep ? before : 0, swiglu_.steps[i].amax);
    add("s.saturated_steps", s, swiglu_.saturated_steps());
    out.push_back({.name = "s.saturated_at", .text = s ? swiglu_.saturated_at() : "not computed"});
    add("s.amax_before", s, before);
    add("s.amax_after", s, after);
    add("s.over", s, s ? step().over() : 0);
    add("s.lost_l1_pct", s, step().lost_l1_pct, "%");
    add("s.channel_db", s, step().channel_db, "dB");
    add("s.zero_pct", s, step().zero_pct, "%");
    const InlierRow inliers = s ? swiglu_.inliers[2] : InlierRow{};
    add("s.inlier_e4m3_db", s, inliers.e4m3_db, "dB");
    add("s.inlier_int8_db", s, inliers.int8_db, "dB");
    add("s.amax_ratio", s, swiglu_.amax_ratio);

    const OptimiserSpec spec = params_.optimiser_spec();
    add("o.v_end", o, o ? optimiser_.v_end() : 0);
    add("o.exact", o, o ? optimiser_.exact.back() : 0);
    add("o.error_pct", o, o ? optimiser_.error_pct() : 0, "%");
    add("o.step_pct", o, optimiser_.step_pct(), "%");
    add("o.half_gap_pct", o, optimiser_.half_gap_pct(), "%");
    add("o.bits", o, spec.bits(), "bit");
    add("o.stuck", o, optimiser_.chosen().stuck ? 1 : 0);
    add("o.bytes_per_param", o, spec.bytes(), "B");
    add("o.gb", o, spec.bytes() * params_.params / kGB, "GB");
    return out;
}

LabEntry entry() { return entry_of<WideLab>(kInfo); }

}  // namespace fp8lab::wide
