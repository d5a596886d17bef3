#include "core/train/arm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/nn/loss.h"
#include "core/nn/streams.h"
#include "core/threads/parallel.h"
#include "core/train/decision.h"

namespace fp8lab {
namespace {

const FormatInfo& storage_format() { return find_format("e4m3"); }

bool all_finite(std::span<const float> values) {
    return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Arm::Arm(const TrainSpec& spec, const Recipe& recipe)
    : spec_(spec),
      network_(spec.layers, spec.activation),
      casts_(recipe, static_cast<int>(spec.layers.size()) - 1, spec.seed),
      moments_(network_.layers().size()) {
    network_.initialise(spec.seed);
    if (!stores_fp32()) use_storage_scales(scales_for_weights());
}

void Arm::set_recipe(const Recipe& recipe) {
    const bool stored_fp32 = stores_fp32();
    casts_.set_recipe(recipe);
    if (stored_fp32 == stores_fp32()) return;
    use_storage_scales(stores_fp32() ? std::vector<float>{} : scales_for_weights());
}

std::vector<float> Arm::scales_for_weights() const {
    constexpr float kHeadroom =
        4;  // a weight may grow to 4x its initial amax before it saturates
    const float limit = static_cast<float>(max_finite(storage_format()));
    std::vector<float> scales;
    for (const Layer<float>& layer : network_.layers()) {
        const float largest = amax(layer.w.values);
        scales.push_back(largest > 0 ? limit / (kHeadroom * largest) : 1.0F);
    }
    return scales;
}

void Arm::use_storage_scales(std::vector<float> scales) {
    storage_scales_ = std::move(scales);
    for (std::size_t l = 0; l < network_.layers().size(); ++l)
        casts_.fix_weight_scale(static_cast<int>(l) + 1, storage_scales_.empty() ? 0.0F : storage_scales_[l]);
    store_weights(Rounding::nearest, 0);
}

void Arm::store_weights(Rounding rounding, int step) {
    for (std::size_t l = 0; l < storage_scales_.size(); ++l) {
        std::vector<float>& w = network_.layers()[l].w.values;
        constexpr std::size_t kGrain = 65536;
        parallel_for(w.size(), kGrain, [&](std::size_t begin, std::size_t end) {
            const auto part = std::span(w).subspan(begin, end - begin);
            quantize(storage_format(), part, part,
                     {.rounding = rounding,
                      .overflow = Overflow::saturate,
                      .scale = storage_scales_[l],
                      .seed = spec_.seed,
                      .stream = stream(Draw::update, static_cast<int>(l) + 1, step),
                      .first = begin});
        });
    }
}

void Arm::step(const Batch& batch, int step, double lr, std::optional<TensorId> watched) {
    const auto start = std::chrono::steady_clock::now();
    casts_.begin_step(step, watched);
    const LossValue value = loss_and_gradient(spec_.loss, network_.forward(batch.x, casts_), batch.y, dy_);
    const bool loss_is_finite = std::isfinite(value.loss);
    bool alive = loss_is_finite;
    if (alive) {
        network_.backward(dy_, casts_);
        alive = apply_update(step, lr);
    }
    if (!alive) stopped_ = NonFinite{step, first_nonfinite(loss_is_finite)};
    StepRecord record{
        .step = step, .loss = value.loss, .accuracy = value.accuracy, .tensors = casts_.end_step()};
    if (!alive) record.loss = std::numeric_limits<double>::quiet_NaN();
    watched_ = casts_.watched();
    record.step_ms = milliseconds_since(start);
    records_.push_back(std::move(record));
}

bool Arm::apply_update(int step, double lr) {
    const OptimizerStep how{spec_.optimizer, lr, spec_.weight_decay, step};
    bool finite = true;
    for (std::size_t l = 0; l < moments_.size(); ++l) {
        Layer<float>& layer = network_.layers()[l];
        finite &= update(how, layer.w.values, layer.dw.values, moments_[l].w);
        finite &= update(how, layer.b, layer.db, moments_[l].b);
    }
    store_weights(casts_.recipe().round_update, step);
    return finite;
}

// In the order of the computation: x1 w1 x2 w2 ... loss ... dy2 dy1, then the updated weights.
std::string Arm::first_nonfinite(bool loss_is_finite) const {
    const auto& layers = network_.layers();
    const int count = static_cast<int>(layers.size());
    const auto bad = [&](TensorId id, const Matrix<float>& value) {
        return casts_.became_nonfinite(id) || !all_finite(value.values);
    };
    for (int l = 1; l <= count; ++l) {
        const Layer<float>& layer = layers[static_cast<std::size_t>(l) - 1];
        if (const TensorId id{TensorClass::x, l}; bad(id, layer.x)) return to_string(id);
        // After the update the weights are those of the next step; what this step read is known from its
        // cast.
        const TensorId id{TensorClass::w, l};
        if (casts_.became_nonfinite(id) || (!loss_is_finite && !all_finite(layer.w.values)))
            return to_string(id);
    }
    if (!loss_is_finite) return "loss";
    for (int l = count; l >= 1; --l)
        if (const TensorId id{TensorClass::dy, l}; bad(id, layers[static_cast<std::size_t>(l) - 1].dy))
            return to_string(id);
    for (int l = 1; l <= count; ++l)
        if (!all_finite(layers[static_cast<std::size_t>(l) - 1].w.values))
            return to_string(TensorId{TensorClass::w, l});
    return "bias";
}

ArmSnapshot Arm::take() {
    ArmSnapshot snapshot;
    snapshot.records = std::exchange(records_, {});
    snapshot.stopped = stopped_;
    snapshot.watched = watched_;
    if (spec_.task == TaskKind::spiral && !stopped_) snapshot.decision = decision_grid(network_, spec_.loss);
    return snapshot;
}

}  // namespace fp8lab
