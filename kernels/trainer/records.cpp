#include "kernels/trainer/records.h"

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/trainer/trainer.h"

namespace fp8lab::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

MlpTensor id_of(std::size_t index) { return MlpTensor(TensorId{static_cast<std::uint16_t>(index)}); }

CastPlan plan_of(MlpTensor id, const CudaArm& arm, const TrainSpec& spec) {
    return cast_plan(arm.recipe(), id.tensor, id.layer, static_cast<int>(spec.layers.size()) - 1);
}

// Of what was cast first: dy of layer 1 is rotated with the padding of the batch (recipe_casts.h).
std::int64_t size_of(MlpTensor id, const Recipe& recipe, const TrainSpec& spec) {
    const auto l = static_cast<std::size_t>(id.layer) - 1;
    const int layers = static_cast<int>(spec.layers.size()) - 1;
    const bool turned =
        id.layer == 1 && id.tensor == TensorClass::dy && recipe_of_layer(recipe, 1, layers).rht;
    const std::int64_t in = spec.layers[l], out = spec.layers[l + 1],
                       batch = turned ? padded(spec.batch) : spec.batch;
    return id.tensor == TensorClass::x ? batch * in : id.tensor == TensorClass::w ? out * in : batch * out;
}

bool overflow_is_nonfinite(const CastPlan& plan) {
    return plan.overflow == Overflow::nonsaturate && (has_nan(*plan.format) || has_infinity(*plan.format));
}

}  // namespace

StepRecord to_record(const ArmRecord& record, const CudaArm& arm, const TrainSpec& spec, bool with_stats,
                     bool in_every_step) {
    StepRecord out;
    out.step = record.result.step;
    out.loss = record.result.loss;
    out.accuracy =
        spec.loss == LossKind::cross_entropy ? record.result.correct / spec.batch : static_cast<double>(kNaN);
    for (std::size_t i = 0; i < record.tensors.size(); ++i) {
        const MlpTensor id = id_of(i);
        const TensorResult& tensor = record.tensors[i];
        const CastPlan plan = plan_of(id, arm, spec);
        TensorRecord r{.applies = plan.format->name != "fp32"};
        if (r.applies) {
            CastStats stats;
            stats.n = size_of(id, arm.recipe(), spec);
            stats.underflow = static_cast<std::int64_t>(tensor.underflow);
            stats.overflow = static_cast<std::int64_t>(tensor.overflow);
            stats.signal = tensor.sums.signal;
            stats.noise = tensor.sums.noise;
            stats.mass = tensor.sums.mass;
            const bool measured = with_stats && (in_every_step || id.tensor != TensorClass::w);
            r.amax = std::bit_cast<float>(tensor.amax_bits);
            r.scale = plan.granularity == Granularity::tensor ? tensor.scale : kNaN;
            r.underflow_pct = measured ? static_cast<float>(stats.underflow_pct()) : kNaN;
            r.overflow_pct = measured ? static_cast<float>(stats.overflow_pct()) : kNaN;
            r.sqnr_db = measured ? static_cast<float>(stats.sqnr_db()) : kNaN;
            r.lost_l1_pct = measured ? static_cast<float>(stats.lost_l1_pct()) : kNaN;
            r.lost_energy_pct = measured ? static_cast<float>(stats.lost_energy_pct()) : kNaN;
        }
        out.tensors.push_back(r);
    }
    return out;
}

std::string first_nonfinite(const ArmRecord& record, const CudaArm& arm, const TrainSpec& spec) {
    const int layers = static_cast<int>(spec.layers.size()) - 1;
    const auto bad = [&](MlpTensor id) {
        const TensorResult& tensor = record.tensors[TensorId(id).index];
        constexpr std::uint32_t kInfinity = 0x7F800000;
        return tensor.amax_bits >= kInfinity ||
               (tensor.overflow > 0 && overflow_is_nonfinite(plan_of(id, arm, spec)));
    };
    for (int l = 1; l <= layers; ++l)
        for (const TensorClass t : {TensorClass::x, TensorClass::w})
            if (bad({t, l})) return to_string(MlpTensor{t, l});
    if (!std::isfinite(record.result.loss)) return "loss";
    for (int l = layers; l >= 1; --l)
        if (bad({TensorClass::dy, l})) return to_string(MlpTensor{TensorClass::dy, l});
    return arm.nonfinite_parameter();
}

}  // namespace fp8lab::cuda
