#include "labs/clinic/model_signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace fp8lab::clinic {

namespace {

using live::TensorTrack;

constexpr int kFewSteps = 100;  // a run that ends before has no means

double mean_of(std::span<const float> values) {
    double sum = 0;
    int count = 0;
    for (const float value : values)
        if (!std::isnan(value)) sum += static_cast<double>(value), ++count;
    return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

std::string_view class_of(std::string_view tensor) {
    return tensor.starts_with("dy")  ? "dy"
           : tensor.starts_with("x") ? "x"
           : tensor.starts_with("w") ? "w"
                                     : "loss";
}

std::string gap_level(const Run& patient, const Run& twin) {
    constexpr double kSome = 20, kMuch = 200;
    const double gap = gap_pct(patient, twin);
    if (std::isnan(gap)) return "ends";
    return gap < kCuredPct ? "below 8" : gap < kSome ? "8 to 20" : gap < kMuch ? "20 to 200" : "above 200";
}

std::string underflow_level(const Run& patient) {
    constexpr double kMuch = 5;
    if (patient.arm().step.size() < kFewSteps) return "ended";
    const WorstUnderflow worst = worst_underflow(patient);
    return worst.mean_pct < kMuch ? "none" : std::string(class_of(worst.tensor));
}

// Whether the scale of the track falls to a thousandth within a step.
bool falls(const TensorTrack& track) {
    constexpr double kThousandth = 1e-3;
    const std::span<const double> scale = track.scale.values();
    return std::ranges::adjacent_find(scale, [](double before, double after) {
               return after > 0 && after < kThousandth * before;
           }) != scale.end();
}

bool is_fixed(const TensorTrack& track) {
    const std::span<const double> all = track.scale.values();
    if (all.size() <= kFewSteps) return false;
    const std::span<const double> scale = all.subspan(kFewSteps);
    return std::ranges::all_of(scale, [&](double s) { return s == scale.front(); });
}

// The median of amax times scale of the second half of the run.
double reach(const TensorTrack& track) {
    std::vector<double> products;
    const std::size_t steps = track.amax.size();
    for (std::size_t s = steps / 2; s < steps; ++s)
        products.push_back(track.amax.values()[s] * track.scale.values()[s]);
    if (products.empty()) return 0;
    const auto middle = products.begin() + static_cast<std::ptrdiff_t>(products.size() / 2);
    std::ranges::nth_element(products, middle);
    return *middle;
}

std::string scale_level(const Run& patient) {
    constexpr double kBeyond = 1000;
    const auto& tracks = patient.arm().tensors;
    const auto any = [&](auto holds) { return std::ranges::any_of(tracks, holds); };
    const auto all_one = [](const TensorTrack& t) {
        return std::ranges::all_of(t.scale.values(), [](double scale) { return scale == 1; });
    };
    if (any([](const TensorTrack& t) {
            return std::ranges::any_of(t.scale.values(), [](double scale) { return std::isinf(scale); });
        }))
        return "Inf";
    if (patient.arm().step.size() < kFewSteps) return "ended";
    if (std::ranges::all_of(tracks, all_one)) return "1";
    if (any([](const TensorTrack& t) { return t.spec.tensor == TensorClass::w && is_fixed(t); }))
        return "fixed";
    if (any([](const TensorTrack& t) { return t.spec.tensor == TensorClass::x && falls(t); })) return "falls";
    if (any([](const TensorTrack& t) { return t.spec.tensor == TensorClass::x && reach(t) > kBeyond; }))
        return "beyond 448";
    return "moves";
}

std::string sqnr_level(const Run& patient) {
    constexpr double kLowX = 29, kHighX = 40, kLowDy = 15;
    if (patient.arm().step.size() < kFewSteps) return "ended";
    std::vector<std::string_view> words;
    for (std::size_t t = 0; t < patient.sqnr_db.size(); ++t) {
        const std::string& name = patient.plan.tensors[t].name;
        const double mean = mean_of(patient.sqnr_db[t]);
        if (name == "x2" && mean < kLowX) words.push_back("x low");
        if (name == "x2" && mean > kHighX) words.push_back("x high");
        if (name == "w2" && std::isinf(mean)) words.push_back("w exact");
        if (name == "dy2" && mean < kLowDy) words.push_back("dy low");
    }
    return words.empty() ? "usual" : fmt::format("{}", fmt::join(words, ", "));
}

double mean_of_layers(const std::vector<std::vector<float>>& values) {
    std::vector<float> all;
    for (const std::vector<float>& layer : values) all.insert(all.end(), layer.begin(), layer.end());
    return mean_of(all);
}

std::string moved_level(const Run& patient) {
    constexpr double kAll = 60, kFew = 5;
    if (patient.arm().step.size() < kFewSteps) return "ended";
    const double moved = mean_of_layers(patient.moved_pct);
    return moved > kAll ? "all" : moved < kFew ? "few" : "some";
}

std::string products_level(const Run& patient) {
    constexpr double kOff = 1;
    if (patient.arm().step.size() < kFewSteps) return "ended";
    return mean_of_layers(patient.product_error_pct) >= kOff ? "off" : "exact";
}

}  // namespace

Signature signature_of(const Run& patient, const Run& twin, const Run& reference) {
    constexpr int kLong = 500;
    const auto& stopped = patient.arm().stopped;
    return {gap_level(patient, twin),
            twin.tail() > kSickTwin * reference.tail() ? "sick" : "healthy",
            plateau_of(patient, twin).steps >= kLong ? "yes" : "none",
            underflow_level(patient),
            scale_level(patient),
            patient.arm().overflow_steps() > 0 ? "some" : "none",
            sqnr_level(patient),
            moved_level(patient),
            products_level(patient),
            stopped ? std::string(class_of(stopped->tensor)) : "none"};
}

int distance(const Signature& a, const Signature& b) {
    int out = 0;
    for (std::size_t i = 0; i < a.size(); ++i) out += a[i] != b[i];
    return out;
}

}  // namespace fp8lab::clinic
