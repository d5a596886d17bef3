#include "labs/lower/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/error.h"

namespace fp8lab::lower_lab {
namespace {

constexpr LabInfo kInfo = {
    "lower", 11,  "Fewer bits", "Fewer bits", "Which layers can live with four bits, and how would you know?",
    30,      "L6"};

// Which experiments a field belongs to; one that is not listed: to all.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kBelongs = {
    {{"uniform", "mix ranges"},
     {"probe", "mix ranges"},
     {"budget", "mix"},
     {"act_scale", "mix ranges"},
     {"batches", "mix ranges"},
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
      }) {
    update();
}

SetupSpec Params::setup() const {
    return {{network, network == "own" ? file : ""}, outlier_ratio, smoothing, contrast};
}

MixSpec Params::mix() const {
    return {.setup = setup(),
            .both = both(),
            .uniform = uniform,
            .w = w,
            .a = a,
            .probe = probe,
            .calibrated = act_scale == "calibrated",
            .batches = batches,
            .margin = margin,
            .budget = revealed ? budget : kMostBits};
}

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
    if ((field == "batches" || field == "margin") && params_.act_scale == "dynamic")
        return "Dynamic scales are computed from the tensor at hand.";
    if (field == "act_scale" && !params_.both()) return "The activations stay in BF16.";
    return "";
}

void LowerLab::update() {
    if (!why_not("smoothing").empty()) params_.smoothing = "off", params_.outlier_ratio = 1;
    if (params_.revealed && shows("mix") && asked_cloud_ != params_.cloud())
        cloud_job_.request(*(asked_cloud_ = params_.cloud()));
    if (auto taken = cloud_job_.take()) cloud_ = std::move(*taken);
    Request request{params_.mix(), nullptr};
    if (request.spec.budget < kMostBits && cloud_ && cloud_->spec == params_.cloud()) request.cloud = cloud_;
    if (asked_mix_ != request) mix_job_.request(*(asked_mix_ = request));
    if (auto taken = mix_job_.take()) outcome_ = std::move(*taken);
}

void LowerLab::set_wake(std::function<void()> wake) {
    mix_job_.start_worker(wake);
    cloud_job_.start_worker(std::move(wake));
}

void LowerLab::reset() {
    params_ = {};
    update();
}

void LowerLab::take(const Mix& mix) {
    params_.uniform = "mix";
    params_.budget = kMostBits;
    for (std::size_t l = 0; l < std::min(mix.weights.size(), kLayerFields); ++l) {
        params_.w[l] = mix.weights[l]->id;
        const bool as_w = !params_.both() || mix.activations[l] == mix.weights[l];
        params_.a[l] = as_w ? "w" : mix.activations[l]->id;
    }
}

void LowerLab::choose(std::size_t layer, bool activation, std::string_view format) {
    take(outcome_.mix);
    (activation ? params_.a : params_.w).at(layer) = format;
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

std::vector<std::string> LowerLab::figure_ids() const { return {"pareto"}; }

std::vector<Figure> LowerLab::figures() const { return {pareto_figure(outcome_, cloud())}; }

Figure LowerLab::thumbnail() const {
    Figure figure = pareto_figure(outcome_, nullptr);
    figure.title.clear();
    std::erase_if(figure.series,
                  [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    return figure;
}

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void add_output(std::vector<Metric>& out, const std::string& prefix, const OutputRow& row) {
    out.push_back({prefix + "bits", row.bits, "bit"});
    out.push_back({prefix + "divergence", row.score.divergence});
    out.push_back({prefix + "accuracy_pct", row.score.accuracy_pct, "%"});
    out.push_back({prefix + "changed", static_cast<double>(row.score.changed)});
}

}  // namespace

std::vector<Metric> LowerLab::metrics() const {
    std::vector<Metric> out;
    const Outcome& o = outcome_;
    add_output(out, "", o.own);
    out.push_back({"kb", o.own.kb, "KB"});
    out.push_back({"mean_abs", o.own.score.mean_abs});
    out.push_back({"max_abs", o.own.score.max_abs});
    out.push_back({"relative_pct", o.own.score.relative_pct, "%"});
    out.push_back({"accuracy_fp32_pct", o.accuracy_fp32_pct, "%"});
    for (std::size_t l = 0; l < kLayerFields; ++l) {
        const LayerRow* row = l < o.layers.size() ? &o.layers[l] : nullptr;
        const auto add = [&](const char* name, double LayerRow::*member, const char* unit) {
            out.push_back({fmt::format("{}_{}", name, l + 1), row ? row->*member : kNone, unit});
        };
        add("share_pct", &LayerRow::share_pct, "%");
        add("sensitivity", &LayerRow::sensitivity, "");
        add("underflow_pct_w", &LayerRow::underflow_pct_w, "%");
        add("underflow_pct_a", &LayerRow::underflow_pct_a, "%");
        add("sqnr_db_w", &LayerRow::sqnr_db_w, "dB");
        add("sqnr_db_a", &LayerRow::sqnr_db_a, "dB");
        add("saturated_pct_a", &LayerRow::saturated_pct_a, "%");
        add("rel_l2_w", &LayerRow::rel_l2_w, "");
    }
    for (const OutputRow& row : o.uniforms) add_output(out, std::string(row.format->id) + ".", row);
    const Cloud* all = cloud();
    const Neighbours near =
        all ? neighbours_of(all->all.points, o.own.bits, o.own.score.divergence) : Neighbours{};
    const auto at = [&](std::size_t i) { return near.count > 0 ? all->all.points[i].divergence : kNone; };
    out.push_back({"best_within", at(near.best)});
    out.push_back({"median_within", near.count > 0 ? near.median : kNone});
    out.push_back({"worst_within", at(near.worst)});
    out.push_back({"mixes_within", all ? static_cast<double>(near.count) : kNone});
    out.push_back({"rank", near.count > 0 ? static_cast<double>(near.rank) : kNone});
    return out;
}

LabEntry entry() { return entry_of<LowerLab>(kInfo); }

}  // namespace fp8lab::lower_lab
