#include "labs/live/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/base/error.h"
#include "core/base/units.h"

namespace fp8lab::live {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void append(TensorTrack& track, const TensorRecord& record, int step) {
    const bool measured = !record.applies || !std::isnan(record.amax);
    if (measured) {
        track.step.push(step);
        track.amax.push(record.applies ? static_cast<double>(record.amax) : kNan);
        track.scale.push(record.applies ? static_cast<double>(record.scale) : kNan);
    }
    track.amax_strip.push(record.applies ? static_cast<double>(record.amax) : kNan);
    track.scale_strip.push(record.applies ? static_cast<double>(record.scale) : kNan);
    const bool counted = !record.applies || !std::isnan(record.underflow_pct);
    if (counted) {
        track.underflow_step.push(step);
        track.underflow_pct.push(record.applies ? static_cast<double>(record.underflow_pct) : kNan);
        track.lost_l1_pct.push(record.applies ? static_cast<double>(record.lost_l1_pct) : kNan);
        track.lost_energy_pct.push(record.applies ? static_cast<double>(record.lost_energy_pct) : kNan);
    }
    if (!record.applies) return;
    ++track.casts;
    if (!counted) return;
    ++track.measured;
    track.underflow_sum += static_cast<double>(record.underflow_pct);
    track.lost_l1_sum += static_cast<double>(record.lost_l1_pct);
    track.lost_energy_sum += static_cast<double>(record.lost_energy_pct);
    track.saturated_casts += static_cast<double>(record.saturated_casts);
    if (record.overflow_pct > 0) track.overflow_at.push_back(step);
}

void append(ArmTrack& arm, const StepRecord& record) {
    if (record.step != static_cast<int>(arm.step.size())) {
        throw Error(ErrorKind::failed, "training series",
                    fmt::format("step {} came after {} steps", record.step, arm.step.size()));
    }
    arm.step.push(record.step);
    arm.loss.push(record.loss);
    // The last loss of an arm that ended is NaN: the curve reaches up to it.
    const auto losses = arm.loss.values().last(std::min(kMeanSteps, arm.loss.size()));
    std::vector<double> finite;
    std::ranges::copy_if(losses, std::back_inserter(finite), [](double loss) { return std::isfinite(loss); });
    arm.mean.push(tail_mean(finite, kMeanSteps));
    arm.accuracy.push(record.accuracy);
    arm.step_ms.push(record.step_ms);
    arm.loss_scale = record.loss_scale, arm.skipped = record.skipped;
    arm.accumulate_error_pct.add(record.accumulate_error_pct);
    arm.v_zero_pct.add(record.v_zero_pct);
    arm.large_updates_ppm.add(record.large_updates_ppm);
    for (std::size_t i = 0; i < std::min(arm.tensors.size(), record.tensors.size()); ++i) {
        append(arm.tensors[i], record.tensors[i], record.step);
    }
}

// Tail loss after `count` steps.
double tail_at(const Growing& loss, std::size_t count) {
    return tail_mean(loss.values().first(count), kTailSteps);
}

}  // namespace

void Growing::own() {
    if (values_.use_count() > 1) values_ = std::make_shared<std::vector<double>>(*values_);
}

void Growing::push(double value) {
    own();
    values_->push_back(value);
}

void Envelope::push(double value) {
    if (stretches_.size() == kMost && filled_ == length_) {  // full: every two become one
        for (std::size_t i = 0; i < kMost / 2; ++i) {
            const Stretch a = stretches_[2 * i], b = stretches_[2 * i + 1];
            stretches_[i] = {std::fmin(a.lo, b.lo), std::fmax(a.hi, b.hi)};  // NaN yields to a number
        }
        stretches_.resize(kMost / 2);
        length_ *= 2;
        filled_ = length_;
    }
    if (stretches_.empty() || filled_ == length_) {
        stretches_.push_back(
            {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()});
        filled_ = 0;
    }
    ++filled_;
    if (!std::isfinite(value) || value <= 0) return;
    stretches_.back() = {std::fmin(stretches_.back().lo, value), std::fmax(stretches_.back().hi, value)};
}

double tail_mean(std::span<const double> values, std::size_t window) {
    const auto tail = values.last(std::min(window, values.size()));
    if (tail.empty()) return kNan;
    double sum = 0;
    for (const double value : tail) sum += value;
    return sum / static_cast<double>(tail.size());
}

double TensorTrack::mean(double sum) const {
    return measured > 0 ? sum / static_cast<double>(measured) : kNan;
}

std::string lost_share(const TensorTrack& track) {
    const double l1 = track.lost_l1_mean_pct(), energy = track.lost_energy_mean_pct();
    if (std::isnan(l1) || std::isnan(energy)) return {};
    return fmt::format("{} % of its absolute sum and {} % of its energy", format_number(l1, 2, true),
                       format_number(energy, 2, true));
}

const TensorTrack* ArmTrack::find(TensorId id) const {
    const auto it = std::ranges::find(tensors, id, &TensorTrack::id);
    return it == tensors.end() ? nullptr : &*it;
}

const TensorTrack* ArmTrack::worst_gradient() const {
    const TensorTrack* worst = nullptr;
    for (const TensorTrack& track : tensors) {
        if (track.spec.tensor != TensorClass::dy || track.measured == 0) continue;
        if (!worst || track.underflow_mean_pct() > worst->underflow_mean_pct()) worst = &track;
    }
    return worst;
}

bool ArmTrack::counts_casts() const {
    return std::ranges::all_of(tensors, [](const TensorTrack& t) { return !std::isnan(t.saturated_casts); });
}

int ArmTrack::overflow_steps() const {
    std::size_t steps = 0;
    for (const TensorTrack& track : tensors) steps += track.overflow_at.size();
    return static_cast<int>(steps);
}

ArmTrack History::blank(const ModelPlan& plan) {
    ArmTrack arm;
    for (const OperandSpec& tensor : plan.tensors) {
        const auto index = static_cast<std::uint16_t>(arm.tensors.size());
        TensorTrack& track = arm.tensors.emplace_back();
        track.id = {index};
        track.spec = tensor;
    }
    return arm;
}

void History::append(const Snapshot& snapshot, const ModelPlan& plan) {
    if (arms_.empty()) arms_.assign(snapshot.arms.size(), blank(plan));
    for (std::size_t i = 0; i < std::min(arms_.size(), snapshot.arms.size()); ++i) {
        const ArmSnapshot& news = snapshot.arms[i];
        for (const StepRecord& record : news.records) live::append(arms_[i], record);
        if (news.stopped) arms_[i].stopped = news.stopped;
        if (news.watched) arms_[i].watched = news.watched;
        if (!news.decision.empty()) arms_[i].decision = news.decision;
        if (news.cost) arms_[i].cost = news.cost;
        arms_[i].provenance = news.provenance;
    }
    for (std::size_t i = 1; i < arms_.size(); ++i) {
        ArmTrack& arm = arms_[i];
        const std::size_t both = std::min(arm.loss.size(), arms_[0].loss.size());
        for (std::size_t count = arm.gap_pct.size() + 1; count <= both; ++count) {
            const double reference = tail_at(arms_[0].loss, count);
            arm.gap_pct.push(100 * (tail_at(arm.loss, count) / reference - 1));
        }
    }
    steps_ = snapshot.step;
}

}  // namespace fp8lab::live
