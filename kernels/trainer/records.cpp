#include "kernels/trainer/records.h"

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/trainer/trainer.h"

namespace fp8lab::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TensorId id_of(std::size_t index) {
    return {static_cast<TensorClass>(index % 3), static_cast<int>(index / 3) + 1};
}

std::int64_t size_of(TensorId id, const TrainSpec& spec) {
    const auto l = static_cast<std::size_t>(id.layer) - 1;
    const std::int64_t in = spec.layers[l], out = spec.layers[l + 1], batch = spec.batch;
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
        const TensorId id = id_of(i);
        const TensorResult& tensor = record.tensors[i];
        const CastPlan plan = cast_plan(arm.recipe(), id.tensor);
        TensorRecord r{.applies = plan.format->name != "fp32"};
        if (r.applies) {
            CastStats stats;
            stats.n = size_of(id, spec);
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
    const auto bad = [&](TensorId id) {
        const TensorResult& tensor =
            record.tensors[static_cast<std::size_t>(id.layer - 1) * 3 + static_cast<std::size_t>(id.tensor)];
        constexpr std::uint32_t kInfinity = 0x7F800000;
        return tensor.amax_bits >= kInfinity ||
               (tensor.overflow > 0 && overflow_is_nonfinite(cast_plan(arm.recipe(), id.tensor)));
    };
    for (int l = 1; l <= layers; ++l)
        for (const TensorClass t : {TensorClass::x, TensorClass::w})
            if (bad({t, l})) return to_string(TensorId{t, l});
    if (!std::isfinite(record.result.loss)) return "loss";
    for (int l = layers; l >= 1; --l)
        if (bad({TensorClass::dy, l})) return to_string(TensorId{TensorClass::dy, l});
    if (const auto layer = arm.nonfinite_weights()) return to_string(TensorId{TensorClass::w, *layer});
    return "bias";
}

double step_flop(const TrainSpec& spec, int batch) {
    double flop = 0;
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l)  // no gradient of the network's input
        flop += (l > 0 ? 3 : 2) * 2.0 * padded(batch) * padded(spec.layers[l]) * padded(spec.layers[l + 1]);
    return flop;
}

int steps_per_launch(const TrainSpec& spec, int batch) {
    constexpr double kShort = 2e10;  // below, a step takes less than about 0.1 ms
    return step_flop(spec, batch) <= kShort ? kStepsPerLaunch : 1;
}

double arm_bytes(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch) {
    const double out_bytes = engine == Engine::emulated || recipe.out == OutType::fp32 ? 4 : 2;
    const bool keeps_values = scale_mode_of(cast_plan(recipe, TensorClass::x)) == ScaleMode::block32;
    // Both layouts, or FP32 and two quantised copies.
    const double payload = engine == Engine::emulated ? 12 : keeps_values ? 6 : 2;
    // The weight and its moments; its gradient; what the GEMMs read.
    const bool narrow = spec.state == StateType::bf16;
    const double kept = (spec.optimizer == OptimizerKind::adamw ? 3 : 1) * (narrow ? 2 : 4),
                 gradient = narrow || (engine != Engine::emulated && recipe.wgrad == OutType::bf16) ? 2 : 4,
                 read = engine == Engine::emulated ? 8
                        : narrow                   ? 0
                                                   : 2,
                 parameter = kept + gradient + read;
    double bytes = 0;
    for (std::size_t l = 0; l + 1 < spec.layers.size(); ++l) {
        const double in = spec.layers[l], out = spec.layers[l + 1], rows = batch;
        bytes += parameter * in * out + rows * (in + out) * payload + rows * out * out_bytes +
                 (l > 0 ? rows * in * out_bytes : 0);
    }
    const bool casts_ahead =
        engine != Engine::emulated && scale_mode_of(cast_plan(recipe, TensorClass::x)) == ScaleMode::tensor;
    if (casts_ahead && steps_per_launch(spec, batch) > 1) bytes += payload * batch * spec.layers.front();
    return bytes;
}

}  // namespace fp8lab::cuda
