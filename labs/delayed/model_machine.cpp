#include "labs/delayed/model_machine.h"

#include <algorithm>
#include <cmath>

namespace fp8lab::delayed {

namespace {

bool teaching(const std::string& algo) { return algo != "max" && algo != "most_recent"; }

// The slots that hold an amax: the history starts with zeros.
std::vector<float> filled(const std::vector<float>& history) {
    std::vector<float> out;
    for (const float value : history)
        if (value != 0) out.push_back(value);
    return out;
}

float percentile_of(std::vector<float> values, double percent) {
    if (values.empty()) return 0;
    for (const float value : values)
        if (!std::isfinite(value)) return value;
    std::sort(values.begin(), values.end());
    const double place = percent / 100 * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return static_cast<float>(std::lerp(static_cast<double>(values[below]),
                                        static_cast<double>(values[above]),
                                        place - static_cast<double>(below)));
}

}  // namespace

Machine::Machine(const MachineSpec& spec)
    : spec_(spec),
      format_(find_format(spec.format)),
      fp8_max_(static_cast<float>(max_finite(format_))),
      state_(spec.history, spec.algo == "max" ? AmaxAlgo::max : AmaxAlgo::most_recent, spec.margin,
             spec.interval, fp8_max_) {
    if (spec.algo == "static") scale_ = static_cast<float>(spec.static_scale);
}

float Machine::reduce(float amax) {
    if (spec_.algo == "max") {
        const auto nan =
            std::find_if(recorded_.begin(), recorded_.end(), [](float v) { return std::isnan(v); });
        return nan != recorded_.end() ? *nan : *std::max_element(recorded_.begin(), recorded_.end());
    }
    if (spec_.algo == "percentile") return percentile_of(filled(recorded_), spec_.percentile);
    if (spec_.algo != "ema") return amax;
    if (std::isfinite(amax)) {
        const auto weight = static_cast<float>(spec_.ema);
        ema_ = ema_ ? weight * *ema_ + (1 - weight) * amax : amax;
    }
    return ema_.value_or(0);
}

Outcome Machine::update(float amax, float& reduced) {
    recorded_ = state_.history();
    recorded_[0] = amax;
    reduced = reduce(amax);
    state_.update(amax);
    if (spec_.algo == "static") return Outcome::fixed;
    if (spec_.algo == "current") return Outcome::this_tensor;
    if (teaching(spec_.algo)) {
        scale_ = scale_from_amax(reduced, fp8_max_, spec_.margin, scale_);
    } else {
        scale_ = state_.scale();
        if (state_.scale_age() > 0) return Outcome::waiting;
    }
    if (!std::isfinite(reduced)) return Outcome::not_finite;
    return reduced == 0 ? Outcome::zero : Outcome::computed;
}

MachineStep Machine::step(float amax) {
    MachineStep out;
    out.amax = amax;
    const bool looks_first = spec_.order == "notebook";
    if (looks_first) out.outcome = update(amax, out.reduced);
    // numerics.md 3.3: an amax of 0 or not finite gives scale 1.
    if (spec_.algo == "current") scale_ = scale_from_amax(amax, fp8_max_, spec_.margin, 1);
    out.scale_used = scale_;
    out.amax_scaled = amax * scale_;
    out.saturates = overflow_threshold(format_).is_passed_by(static_cast<double>(out.amax_scaled));
    if (!looks_first) out.outcome = update(amax, out.reduced);
    out.scale_next = scale_;
    return out;
}

std::vector<MachineStep> run_machine(const MachineSpec& spec, const std::vector<float>& amaxes) {
    Machine machine(spec);
    std::vector<MachineStep> out;
    out.reserve(amaxes.size());
    for (const float amax : amaxes) out.push_back(machine.step(amax));
    return out;
}

}  // namespace fp8lab::delayed
