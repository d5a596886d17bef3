#include "kernels/arm/records.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fp8lab::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TensorId id_of(std::size_t index) { return {static_cast<std::uint16_t>(index)}; }

bool overflow_is_nonfinite(const CastPlan& plan) {
    return plan.overflow == Overflow::nonsaturate && (has_nan(*plan.format) || has_infinity(*plan.format));
}

// As core's: of the finite elements; NaN where all are zero.
float kurtosis(const CastSums& sums, std::int64_t n) {
    return static_cast<float>(sums.fourth * static_cast<double>(n) / (sums.signal * sums.signal));
}

TensorRecord to_record(const TensorResult& tensor, TensorId id, const CudaArm& arm, bool with_stats,
                       bool measured) {
    const CastPlan plan = arm.cast_of(id);
    TensorRecord r{.applies = plan.format->name != "fp32"};
    if (!r.applies) return r;
    const bool known = arm.records(id, with_stats);
    CastStats stats;
    stats.n = known ? arm.recorded_elements(id) * arm.casts_in_step(id) * arm.ranks_that_cast(id) : 0;
    stats.underflow = static_cast<std::int64_t>(tensor.underflow);
    stats.overflow = static_cast<std::int64_t>(tensor.overflow);
    stats.signal = tensor.sums.signal;
    stats.noise = tensor.sums.noise;
    stats.mass = tensor.sums.mass;
    measured = measured && known;
    r.amax = known ? std::bit_cast<float>(tensor.amax_bits) : kNaN;
    r.scale = known && plan.granularity == Granularity::tensor ? tensor.scale : kNaN;
    r.underflow_pct = measured ? static_cast<float>(stats.underflow_pct()) : kNaN;
    r.overflow_pct = measured ? static_cast<float>(stats.overflow_pct()) : kNaN;
    r.sqnr_db = measured ? static_cast<float>(stats.sqnr_db()) : kNaN;
    r.lost_l1_pct = measured ? static_cast<float>(stats.lost_l1_pct()) : kNaN;
    if (measured && arm.plan().gated) r.kurtosis = kurtosis(tensor.sums, stats.n);
    r.lost_energy_pct = measured ? static_cast<float>(stats.lost_energy_pct()) : kNaN;
    return r;
}

// Of the weights that GEMMs read.
void add_moments(StepRecord& record, const MomentResult& moments, const ModelPlan& plan) {
    if (!moments.updated) return;
    double n = 0;
    for (const ParameterSpec& p : plan.parameters)
        if (p.operand) n += static_cast<double>(p.elements());
    record.v_zero_pct = 100 * static_cast<double>(moments.counts.zeros) / n;
    record.large_updates_ppm = 1e6 * static_cast<double>(moments.counts.large) / n;
}

float sqnr_of(const TensorResult& tensor) {
    CastStats stats;
    stats.signal = tensor.sums.signal;
    stats.noise = tensor.sums.noise;
    return static_cast<float>(stats.sqnr_db());
}

}  // namespace

StepRecord to_record(const ArmRecord& record, const CudaArm& arm, const RecordContext& context) {
    StepRecord out;
    out.step = record.result.step;
    out.loss = record.result.loss;
    out.loss_scale = record.loss_scale.scale;
    out.skipped = record.loss_scale.skipped;
    add_moments(out, record.moments, arm.plan());
    out.accuracy = context.classes ? record.result.correct / context.scored : static_cast<double>(kNaN);
    for (std::size_t i = 0; i < arm.plan().tensors.size(); ++i) {
        const TensorId id = id_of(i);
        const bool is_weight = arm.plan().tensor(id).tensor == TensorClass::w,
                   measured = context.with_stats && (context.in_every_step || !is_weight);
        out.tensors.push_back(to_record(record.tensors[i], id, arm, context.with_stats, measured));
        const int second = arm.second_record(id);
        if (second < 0) continue;
        const TensorResult& other = record.tensors[static_cast<std::size_t>(second)];
        TensorRecord& r = out.tensors.back();
        // Of two casts by one launch, one has the amax.
        if (!std::isnan(r.amax))
            r.amax = std::bit_cast<float>(std::max(record.tensors[i].amax_bits, other.amax_bits));
        if (measured) r.second_sqnr_db = sqnr_of(other);
    }
    return out;
}

ArmRecord merged(std::span<const ArmRecord> ranks) {
    ArmRecord all = ranks.front();
    for (const ArmRecord& one : ranks.subspan(1)) {
        all.result.loss += one.result.loss;
        all.result.correct += one.result.correct;
        all.result.alive &= one.result.alive;
        for (std::size_t i = 0; i < all.tensors.size(); ++i) {
            TensorResult& to = all.tensors[i];
            const TensorResult& from = one.tensors[i];
            if (from.amax_bits > to.amax_bits) to.amax_bits = from.amax_bits, to.scale = from.scale;
            to.underflow += from.underflow;
            to.overflow += from.overflow;
            to.sums.signal += from.sums.signal;
            to.sums.noise += from.sums.noise;
            to.sums.mass += from.sums.mass;
            to.sums.fourth += from.sums.fourth;
        }
    }
    all.result.loss /= static_cast<double>(ranks.size());
    return all;
}

std::string first_nonfinite(const ArmRecord& record, const CudaArm& arm, bool in_parameters) {
    const auto& tensors = arm.plan().tensors;
    const auto is_bad = [](const TensorResult& tensor, const CastPlan& plan) {
        constexpr std::uint32_t kInfinity = 0x7F800000;
        return tensor.amax_bits >= kInfinity || (tensor.overflow > 0 && overflow_is_nonfinite(plan));
    };
    const auto bad = [&](std::size_t i) {
        const int second = arm.second_record(id_of(i));
        return is_bad(record.tensors[i], arm.cast_of(id_of(i))) ||
               (second >= 0 &&
                is_bad(record.tensors[static_cast<std::size_t>(second)], arm.second_cast_of(id_of(i))));
    };
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i].tensor != TensorClass::dy && bad(i)) return tensors[i].name;
    if (!std::isfinite(record.result.loss)) return "loss";
    for (std::size_t i = tensors.size(); i-- > 0;)
        if (tensors[i].tensor == TensorClass::dy && bad(i)) return tensors[i].name;
    return in_parameters ? arm.nonfinite_parameter() : "";
}

}  // namespace fp8lab::cuda
