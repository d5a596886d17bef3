#include "labs/lower/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "labs/seeded.h"

namespace fp8lab::lower {
namespace {

constexpr LabInfo kInfo = {
    "lower", 11,  "Fewer bits", "Fewer bits", "Which layers can live with four bits, and how would you know?",
    30,      "L6"};

// Which experiments a field belongs to; one that is not listed: to all.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kBelongs = {
    {{"network", "mix ranges cascade"},
     {"file", "mix ranges cascade"},
     {"lower", "mix ranges"},
     {"low", "cascade"},
     {"high", "cascade"},
     {"tau", "cascade"},
     {"kv_model", "kv"},
     {"kv_gb", "kv"},
     {"cache", "kv"},
     {"kv_outlier", "kv"},
     {"kv_sharp", "kv"},
     {"kv_seed", "kv"},
     {"uniform", "mix ranges"},
     {"probe", "mix ranges"},
     {"budget", "mix"},
     {"act_scale", "mix ranges"},
     {"batches", "mix ranges"},
     {"percentile", "mix ranges"},
     {"margin", "mix ranges"},
     {"outlier_ratio", "mix ranges cascade"},
     {"smoothing", "mix ranges cascade"},
     {"contrast", "mix ranges cascade"}}};

}  // namespace

const LabInfo& LowerLab::info() const { return kInfo; }

LowerLab::LowerLab()
    : mix_job_(
          [make = MixMaker()](const Request& request) mutable { return make(request.spec, request.cloud); }),
      cloud_job_([setup = std::shared_ptr<const Setup>()](const CloudSpec& spec) mutable {
          return make_cloud(spec, setup);
      }),
      ranges_job_([before = Ranges()](const RangesSpec& spec) mutable {
          return before = ranges_of(spec, std::move(before));
      }),
      cascade_job_([setup = std::shared_ptr<const Setup>()](const CascadeSpec& spec) mutable {
          return cascade_sweep(spec, setup);
      }),
      kv_job_([](const KvCase& kv) { return kv_errors(kv); }) {
    update();
}

SetupSpec Params::setup() const {
    return {{network, network == "own" ? file : ""}, outlier_ratio, smoothing, contrast};
}

ScalesSpec Params::scales() const {
    if (act_scale != "calibrated" || !both()) return {};
    return {true, batches, margin, percentile};
}

MixSpec Params::mix() const {
    return {.setup = setup(),
            .both = both(),
            .uniform = uniform,
            .w = w,
            .a = a,
            .w_more = w_more,
            .a_more = a_more,
            .probe = probe,
            .scales = scales(),
            .budget = revealed ? budget : kMostBits};
}

RangesSpec Params::ranges() const {
    return {setup(), both(), {act_scale == "calibrated", batches, margin, percentile}};
}

KvCase Params::kv_case() const { return {std::stoi(kv_outlier), std::stoi(kv_sharp), kv_seed}; }

const Cloud* LowerLab::cloud() const {
    const bool here = params_.revealed && shows("mix") && cloud_ && cloud_->spec == params_.cloud();
    return here ? cloud_.get() : nullptr;
}

bool LowerLab::belongs(std::string_view field) const {
    for (const auto& [name, experiments] : kBelongs)
        if (name == field) return experiments.find(params_.experiment) != experiments.npos;
    return true;
}

std::string LowerLab::why_not(std::string_view field) const {
    if (field == "budget" && !params_.revealed)
        return "It finds the best mix by itself. Exercise 3 asks you to find it first.";
    const bool relu = !outcome_.setup || (outcome_.setup->network.activation == Activation::relu &&
                                          outcome_.setup->network.layers.size() > 1);
    if ((field == "smoothing" || field == "outlier_ratio") && !relu)
        return "Only a network with relu can move a scale from one layer to the next.";
    const bool calibration = field == "batches" || field == "percentile" || field == "margin";
    if ((field == "act_scale" || calibration) && !params_.both()) return "The activations stay in BF16.";
    // The dashed lines of the experiment ranges have calibrated scales in any case.
    if (calibration && params_.act_scale == "dynamic" && !shows("ranges"))
        return "Dynamic scales are computed from the tensor at hand.";
    return "";
}

namespace {

template <class Spec, class Result, class Kept>
void refresh(const Spec& spec, bool visible, std::optional<Spec>& asked, Job<Spec, Result>& job,
             Kept& result) {
    if (!visible) return;  // an error of its job is shown when it is visible again
    if (asked != spec) job.request(*(asked = spec));
    if (auto taken = job.take()) result = std::move(*taken);
}

}  // namespace

bool LowerLab::busy() const {
    return mix_job_.busy() || cloud_job_.busy() || ranges_job_.busy() || cascade_job_.busy() ||
           kv_job_.busy();
}

void LowerLab::update() {
    if (!why_not("smoothing").empty()) params_.smoothing = "off", params_.outlier_ratio = 1;
    refresh(params_.cloud(), params_.revealed && shows("mix"), asked_cloud_, cloud_job_, cloud_);
    refresh(params_.ranges(), shows("ranges"), asked_ranges_, ranges_job_, ranges_);
    refresh(params_.cascade(), shows("cascade"), asked_cascade_, cascade_job_, cascade_);
    refresh(params_.kv_case(), shows("kv"), asked_kv_, kv_job_, kv_);
    Request request{params_.mix(), nullptr};
    if (request.spec.budget < kMostBits && cloud_ && cloud_->spec == params_.cloud()) request.cloud = cloud_;
    if (asked_mix_ != request) mix_job_.request(*(asked_mix_ = request));
    if (auto taken = mix_job_.take()) outcome_ = std::move(*taken);
}

void LowerLab::set_wake(std::function<void()> wake) {
    mix_job_.start_worker(wake);
    cloud_job_.start_worker(wake);
    ranges_job_.start_worker(wake);
    cascade_job_.start_worker(wake);
    kv_job_.start_worker(std::move(wake));
}

void LowerLab::reset() { params_ = {}; }

void LowerLab::take(const Mix& mix) {
    Params& p = params_;
    p.uniform = "mix";
    p.budget = kMostBits;
    const std::size_t n = mix.weights.size();
    for (std::size_t l = 0; l < n; ++l) {
        set_format_of_layer(p.w, p.w_more, l, n, mix.weights[l]->id);
        const bool as_w = !p.both() || mix.activations[l] == mix.weights[l];
        set_format_of_layer(p.a, p.a_more, l, n, as_w ? "w" : mix.activations[l]->id);
    }
}

void LowerLab::choose(std::size_t layer, bool activation, std::string_view format) {
    take(outcome_.mix);
    Params& p = params_;
    set_format_of_layer(activation ? p.a : p.w, activation ? p.a_more : p.w_more, layer,
                        outcome_.mix.weights.size(), format);
}

void LowerLab::perform(std::string_view action) {
    if (action == "reveal") {
        params_.revealed = true;
    } else if (action == "take_best") {
        params_.revealed = true;
        update();
        const Cloud* all = cloud();
        if (!all) return;
        if (const auto best = best_under(*all, outcome_.own.bits)) take(*best);
    } else {
        Lab::perform(action);
    }
}

std::vector<std::string> LowerLab::figure_ids() const {
    return {"pareto", "outliers", "contrast",  "saturated", "cascade",
            "cost",   "margins",  "kv_memory", "kv_error"};
}

std::vector<Figure> LowerLab::figures() const {
    const Params& p = params_;
    if (shows("ranges")) {
        const double db = outcome_.layers.size() > 1 ? outcome_.layers[1].sqnr_db_a : std::nan("");
        return {outliers_figure(ranges_, p.outlier_ratio, db), contrast_figure(ranges_, p.contrast),
                saturated_figure(ranges_)};
    }
    if (shows("cascade"))
        return {cascade_figure(cascade_, p.tau), cost_figure(cascade_, p.tau),
                margins_figure(cascade_, p.tau)};
    if (shows("kv"))
        return of_seed(p.kv_seed, {kv_memory_figure(p.kv), kv_error_figure(kv_, p.kv_case())}, {"kv_error"});
    return {pareto_figure(outcome_, cloud())};
}

Figure LowerLab::thumbnail() const {
    Figure figure = pareto_figure(outcome_, nullptr);
    figure.title.clear();
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    return figure;
}

LabEntry entry() { return entry_of<LowerLab>(kInfo); }

}  // namespace fp8lab::lower
