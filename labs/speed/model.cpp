#include "labs/speed/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "labs/speed/model_figures.h"

namespace fp8lab::speed {
namespace {

constexpr LabInfo kInfo{
    .id = "speed",
    .number = 9,
    .short_title = "Is it faster?",
    .title = "Is it faster here?",
    .question = "The peak doubles on paper. Which of your products get it, and what do the casts take back?",
    .minutes = 25,
    .after = "L8",
    .gpu = "GPU too"};

// "H200, recorded 2026-11-22".
std::string label_of(const Recording& recording) {
    return fmt::format("{}, recorded {}", short_gpu_name(recording.gpu), recording.date);
}

std::vector<Choice> choices_of(const Shipped& shipped) {
    std::vector<Choice> out;
    for (const Recording& recording : shipped.recordings) out.push_back({recording.id, label_of(recording)});
    return out;
}

double apart(double a, double b) { return std::abs(std::log(a / b)); }

int nearest(const std::vector<int>& values, double to) {
    return *std::ranges::min_element(values, {}, [&](int value) { return apart(value, to); });
}

// "13" of "13.1.0"; 0: not known.
int major_of(const std::string& version) { return std::atoi(version.c_str()); }

}  // namespace

SpeedLab::SpeedLab() : SpeedLab(shipped(), {}) {}

SpeedLab::SpeedLab(std::shared_ptr<const Shipped> shipped, Backends backends)
    : shipped_(std::move(shipped)),
      backends_(std::move(backends)),
      recordings_(choices_of(*shipped_)),
      live_(backends_) {
    // A recording first, also where there is a GPU: the same scene shows the same everywhere.
    params_.source = recordings_.empty() ? std::string(kLive) : recordings_.front().id;
    defaults_ = asked_ = params_;
    outcome_ = outcome_of(params_, source_of(params_.source), source_of(params_.over));
}

const LabInfo& SpeedLab::info() const { return kInfo; }

Source SpeedLab::source_of(const std::string& id) const {
    if (id == kLive) return {nullptr, &times_};
    return {shipped_->find(id), nullptr};
}

void SpeedLab::set_wake(std::function<void()> wake) { live_.start_worker(std::move(wake)); }

void SpeedLab::update() {
    const bool fresh = live_.take(times_);
    if (!fresh && asked_ == params_) return;
    asked_ = params_;
    outcome_ = outcome_of(params_, source_of(params_.source), source_of(params_.over));
}

void SpeedLab::perform(std::string_view action) {
    if (action == "measure")
        measure(false);
    else if (action == "measure_grid")
        measure(true);
    else if (action == "measure_step")
        params_.source = kLive, live_.measure_step(params_.layer(), params_.recipe);
    else if (action == "stop")
        live_.stop();
    else
        Lab::perform(action);
    update();
}

// The chosen layer first, then those that the roofline shows beside it.
void SpeedLab::measure(bool every_m) {
    params_.source = kLive;
    const Layer layer = params_.layer();
    std::vector<Layer> layers = {layer};
    if (params_.pad && padded(layer) != layer) layers.push_back(padded(layer));
    constexpr double kMostProducts = 0x1p43;  // M N K, as in a recording
    if (every_m)
        for (int m = 16; m <= 32768; m *= 2)
            if (m != layer.m && double(m) * params_.n * params_.k <= kMostProducts)
                layers.push_back({m, params_.n, params_.k});
    Params plain = params_;
    plain.groups = 1, plain.data = "normal";
    std::vector<LayerProbe> probes;
    for (const Layer& one : layers) probes.push_back(probe_of(params_, one));
    for (const Layer& one : {kNotebook, kMiddle})
        if (!times_.find(probe_of(plain, one)) && one != layer) probes.push_back(probe_of(plain, one));
    live_.measure(std::move(probes));
}

void SpeedLab::reset() { params_ = defaults_; }

Provenance SpeedLab::provenance() const {
    return params_.source == kLive && !times_.layers.empty() ? Provenance::tensor_core : Provenance::recorded;
}

std::string SpeedLab::device() const {
    const Source source = source_of(params_.source);
    if (!source.recorded()) return source.gpu();
    const std::string here = gpu_reason().empty() ? "" : ". No GPU here.";
    return fmt::format("{}, driver {}{}", source.recording->gpu, source.recording->driver, here);
}

// ---- controls that stop at recorded values ----

void SpeedLab::choose_m(double m) {
    const auto& all = outcome_.all_m;
    params_.m = !outcome_.recorded || all.empty() ? static_cast<int>(std::lround(m)) : nearest(all, m);
}

void SpeedLab::step_m(int direction) {
    const auto& all = outcome_.all_m;
    if (!outcome_.recorded || all.empty()) return choose_m(direction > 0 ? 2.0 * params_.m : params_.m / 2.0);
    const auto above = std::ranges::upper_bound(all, params_.m),
               from = std::ranges::lower_bound(all, params_.m);
    if (direction > 0 && above != all.end()) params_.m = *above;
    if (direction < 0 && from != all.begin()) params_.m = *std::prev(from);
}

void SpeedLab::choose_n(double n) {
    if (!outcome_.recorded || outcome_.all_layers.empty()) {
        params_.n = static_cast<int>(std::lround(n));
        return;
    }
    const auto layer = std::ranges::min_element(outcome_.all_layers, {}, [&](const std::pair<int, int>& one) {
        return std::pair(apart(one.first, n), apart(one.second, params_.k));
    });
    std::tie(params_.n, params_.k) = *layer;
}

void SpeedLab::choose_k(double k) {
    if (!outcome_.recorded || outcome_.all_layers.empty()) {
        params_.k = static_cast<int>(std::lround(k));
        return;
    }
    const auto layer = std::ranges::min_element(outcome_.all_layers, {}, [&](const std::pair<int, int>& one) {
        return std::pair(apart(one.second, k), apart(one.first, params_.n));
    });
    std::tie(params_.n, params_.k) = *layer;
}

void SpeedLab::choose_by_intensity(double ai) {
    const auto& all = outcome_.all_m;
    if (!(ai > 0) || all.empty()) return;
    params_.m = *std::ranges::min_element(all, {}, [&](int m) {
        return apart(intensity("fprop", {m, params_.n, params_.k}, false, params_.recipe, 2), ai);
    });
}

// ---- what it shows ----

std::vector<Figure> SpeedLab::figures() const {
    return {roofline_figure(outcome_), lower_figure(outcome_), step_figure(outcome_)};
}

std::vector<std::string> SpeedLab::figure_ids() const {
    return {"roofline", "sweep", "qkv", "align", "formats", "step"};
}

Figure SpeedLab::thumbnail() const {
    return thumbnail_figure(outcome_of(defaults_, source_of(defaults_.source), {}));
}

std::vector<std::string> SpeedLab::notices() const {
    std::vector<std::string> out;
    if (!shipped_->problem.empty()) out.push_back(shipped_->problem);
    if (params_.source == kLive && !gpu_reason().empty())
        out.push_back("No GPU here. " + gpu_reason());
    else if (!live_.problem().empty())
        out.push_back(live_.problem());
    if (params_.source == kLive)
        for (const std::string& notice : live_.notices()) out.push_back(notice);
    constexpr double kMostDriftPct = 5;
    if (std::abs(outcome_.drift_pct) > kMostDriftPct)
        out.push_back(
            fmt::format("The clocks changed during the recording: {:+.1f} % from its start to its end.",
                        outcome_.drift_pct));
    const Source source = source_of(params_.source);
    const auto here = backends_.gpu_device();
    if (here && source.grid())
        for (const auto& [name, version] : here->facts)
            if (name == "cuBLASLt" && major_of(source.grid()->cublaslt) < major_of(version))
                out.push_back(fmt::format("Recorded with cuBLASLt {}; this machine has {}.",
                                          source.grid()->cublaslt, version));
    if (params_.data == "zeros") out.emplace_back("Zeros draw less power: not a training speed.");
    return out;
}

LabEntry entry() { return entry_of<SpeedLab>(kInfo); }

}  // namespace fp8lab::speed
