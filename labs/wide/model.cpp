#include "labs/wide/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/seeded.h"

namespace fp8lab::wide {

using table::Experiment, table::MetricRow;

const LabInfo Wide::kInfo = {"wide",
                             14,
                             "Stays wide",
                             "What stays wide",
                             "Three places where recipes keep 16 or 32 bits. What breaks there in eight?",
                             30,
                             "L12"};

std::span<const Experiment<Wide>> Wide::experiments() {
    static const std::array<Experiment<Wide>, 3> kExperiments = {{
        {"attention", {"mass", "keys"}, &Wide::attention_figures, &Wide::attention_metrics},
        {"swiglu",
         {"timeline", "quadratic", "pair"},
         &Wide::swiglu_figures,
         &Wide::swiglu_metrics,
         &Wide::has_swiglu},
        {"optimiser",
         {"forget", "gap", "cliff"},
         &Wide::optimiser_figures,
         &Wide::optimiser_metrics,
         &Wide::has_optimiser},
    }};
    return kExperiments;
}

const SwigluStep& Wide::step() const {
    static const SwigluStep kNone;
    return has_swiglu() ? swiglu->steps.at(static_cast<std::size_t>(params.step)) : kNone;
}

Recipe Wide::recipe() const {
    const SwigluSpec& s = params.swiglu;
    Recipe out = parse_recipe(s.fix == "current" ? "current" : "delayed");
    out.margin = s.margin;
    if (s.fix != "current") out.history = s.history;
    out.name = recipe_text(out);
    return out;
}

std::vector<std::string> Wide::recipes() const {
    return has_swiglu() ? std::vector{recipe_text(recipe())} : std::vector<std::string>();
}

std::string Wide::te_code() const {
    std::string call = transformer_engine_code(recipe());
    const std::size_t end = call.find(')');
    call.insert(end,
                call.at(end - 1) == '(' ? "fp8_dpa=False, fp8_mha=False" : ", fp8_dpa=False, fp8_mha=False");
    return call;
}

std::vector<Figure> Wide::attention_figures() const {
    return of_seed(attention->spec.seed,
                   {mass_figure(*attention, cast()), keys_figure(*sweep, *attention, cast())}, {"mass"});
}

std::vector<Figure> Wide::swiglu_figures() const {
    return of_seed(swiglu->spec.seed,
                   {timeline_figure(*swiglu), quadratic_figure(*swiglu), pair_figure(*swiglu)}, {"timeline"});
}

std::vector<Figure> Wide::optimiser_figures() const {
    std::vector<Figure> out = {forget_figure(*optimiser), gap_figure(*optimiser), cliff_figure(*optimiser)};
    const OptimiserSpec& spec = optimiser->spec;
    const bool drawn = spec.signal == "noise" || spec.rounding == "stochastic";
    return drawn ? of_seed(spec.seed, std::move(out), {"forget", "gap"}) : out;
}

Figure Wide::thumbnail() const {
    Normals fresh;
    const AttentionSpec small{.keys = 2048, .head = 16};
    Figure figure = mass_figure(attention_of(small, fresh), 0);
    figure.title.clear();
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    return figure;
}

std::vector<MetricRow> Wide::attention_metrics() const {
    std::vector<MetricRow> out;
    const auto add_cast = [&](const std::string& prefix, const CastOutcome& cast) {
        out.push_back({prefix + "zero_pct", "%", [&cast] { return cast.zero_pct; }});
        out.push_back({prefix + "lost_pct", "%", [&cast] { return cast.lost_pct; }});
        out.push_back({prefix + "output_db", "dB", [&cast] { return cast.output_db; }});
    };
    add_cast("a.", attention->casts[cast()]);
    out.push_back({"a.log2_z", "", [this] { return attention->log2_z; }});
    out.push_back({"a.cut_ln", "", [this] { return attention->cut_log2(cast()) * std::log(2); }});
    out.push_back({"a.sink_mass_pct", "%", [this] { return attention->sink_mass_pct; }});
    for (std::size_t c = 0; c < kCasts.size(); ++c)
        add_cast(fmt::format("a.{}.", kCasts[c].id), attention->casts[c]);
    return out;
}

std::vector<MetricRow> Wide::swiglu_metrics() const {
    const auto amax = [this](std::size_t from, std::size_t to) {
        double largest = 0;
        for (std::size_t i = from; i < to; ++i) largest = std::max(largest, swiglu->steps[i].amax);
        return largest;
    };
    return {
        {"s.saturated_steps", "", [this] { return static_cast<double>(swiglu->saturated_steps()); }},
        {"s.saturated_at", "", {}, [this] { return swiglu->saturated_at(); }},
        {"s.amax_before", "", [amax] { return amax(0, kGrowthStep); }},
        {"s.amax_after", "", [amax] { return amax(kGrowthStep, kGrowthStep + 1); }},
        {"s.over", "", [this] { return step().over(); }},
        {"s.lost_l1_pct", "%", [this] { return step().lost_l1_pct; }},
        {"s.channel_db", "dB", [this] { return step().channel_db; }},
        {"s.zero_pct", "%", [this] { return step().zero_pct; }},
        {"s.inlier_e4m3_db", "dB", [this] { return swiglu->inliers[2].e4m3_db; }},
        {"s.inlier_int8_db", "dB", [this] { return swiglu->inliers[2].int8_db; }},
        {"s.amax_ratio", "", [this] { return swiglu->amax_ratio; }},
    };
}

std::vector<MetricRow> Wide::optimiser_metrics() const {
    constexpr double kGB = 1e9;
    const auto bytes = [this] { return params.optimiser_spec().bytes(); };
    return {
        {"o.v_end", "", [this] { return optimiser->v_end(); }},
        {"o.exact", "", [this] { return optimiser->exact.back(); }},
        {"o.error_pct", "%", [this] { return optimiser->error_pct(); }},
        {"o.step_pct", "%", [this] { return optimiser->step_pct(); }},
        {"o.half_gap_pct", "%", [this] { return optimiser->half_gap_pct(); }},
        {"o.bits", "bit", [this] { return params.optimiser_spec().bits(); }},
        {"o.stuck", "", [this] { return optimiser->chosen().stuck ? 1.0 : 0.0; }},
        {"o.bytes_per_param", "B", bytes},
        {"o.gb", "GB", [this, bytes] { return bytes() * params.params / kGB; }},
    };
}

LabEntry entry() { return entry_of<WideLab>(Wide::kInfo); }

}  // namespace fp8lab::wide
