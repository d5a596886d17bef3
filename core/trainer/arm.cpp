#include "core/trainer/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/nn/faults.h"
#include "core/ranks/local.h"
#include "core/threads/parallel.h"
#include "core/threads/trace.h"
#include "core/trainer/decision.h"

namespace fp8lab {
namespace {

const FormatInfo& storage_format() { return find_format("e4m3"); }

bool all_finite(std::span<const float> values) {
    return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Of each parameter.
std::vector<bool> read_by_gemms(const ModelPlan& plan) {
    std::vector<bool> out;
    for (const ParameterSpec& p : plan.parameters) out.push_back(p.operand.has_value());
    return out;
}

}  // namespace

Arm::Arm(const TrainSpec& spec, const Recipe& recipe)
    : spec_(spec),
      model_(make_model(spec)),
      rank_weights_(spec.ranks, plan()),
      rank_gradients_(spec.ranks, plan()),
      moments_(plan().parameters.size()) {
    const auto count = static_cast<std::size_t>(spec.ranks.count);
    for (std::size_t r = 0; r < count; ++r)
        ranks_.push_back({.casts = RecipeCasts(recipe, plan(), spec.seed, spec.accumulate,
                                               static_cast<int>(r) * spec.accumulate.micro_batches),
                          .sum = GradientSum(spec.accumulate, read_by_gemms(plan())),
                          .loss = {}});
    if (several_ranks()) collective_ = make_local_collective(spec.ranks.count);
    for (std::size_t i = 0; i < moments_.size(); ++i)
        if (plan().parameters[i].operand) weights_.push_back(i);
    scaler_.set_recipe(recipe);
    initialise(*model_, spec);
    if (!spec.init_from.empty()) set_parameters(*model_, load_weights("--init-from", spec.init_from, spec));
    if (!spec.teacher.empty()) teacher_.emplace(spec);
    if (!stores_fp32()) use_storage_scales(scales_for_weights());
}

void Arm::set_recipe(const Recipe& recipe) {
    const MasterWeights before = casts().recipe().master;
    change_casts([&](RecipeCasts& each) { each.set_recipe(recipe); });
    scaler_.set_recipe(recipe);
    if (before != recipe.master) use_storage_scales(scales_for_weights());
}

std::vector<float> Arm::scales_for_weights() const {
    if (casts().recipe().master != MasterWeights::none) return {};
    constexpr float kHeadroom = 4;  // a weight may grow to 4x its initial amax before it saturates
    const float limit = static_cast<float>(max_finite(storage_format()));
    std::vector<float> scales;
    for (const std::size_t i : weights_) {
        const float largest = amax(value(i));
        scales.push_back(largest > 0 ? limit / (kHeadroom * largest) : 1.0F);
    }
    return scales;
}

void Arm::use_storage_scales(std::vector<float> scales) {
    storage_scales_ = std::move(scales);
    for (std::size_t i = 0; i < weights_.size(); ++i)
        change_casts([&](RecipeCasts& each) {
            each.fix_scale(*plan().parameters[weights_[i]].operand,
                           storage_scales_.empty() ? 0.0F : storage_scales_[i]);
        });
    store_weights(Rounding::nearest, 0);
}

void Arm::store_weights(Rounding rounding, int step) {
    if (auto how = moment_storage(casts().recipe()).weights) {
        how->rounding = rounding;
        for (const std::size_t i : weights_) store(how, value(i), spec_.seed, update_stream(i, step, 3));
    }
    for (std::size_t i = 0; i < storage_scales_.size(); ++i) {
        const std::span<float> w = value(weights_[i]);
        constexpr std::size_t kGrain = 65536;
        parallel_for(w.size(), kGrain, [&](std::size_t begin, std::size_t end) {
            const auto part = w.subspan(begin, end - begin);
            quantize(storage_format(), part, part,
                     {.rounding = rounding,
                      .overflow = Overflow::saturate,
                      .scale = storage_scales_[i],
                      .seed = spec_.seed,
                      .stream = update_stream(weights_[i], step, 0),
                      .first = begin});
        });
    }
}

void Arm::compute_gradients(std::span<const MicroBatch> parts, int step, std::optional<TensorId> watched) {
    const auto start = std::chrono::steady_clock::now();
    watch_ = watched;
    for (Rank& rank : ranks_) {
        rank.casts.begin_step(step, &rank == &ranks_.front() ? watched : std::nullopt);
        rank.loss = {};
        rank.nonfinite.clear();
    }
    model_->begin_step(step);
    gather_weights();
    bool finite = true;
    const auto micro_batches = static_cast<std::size_t>(spec_.accumulate.micro_batches);
    for (std::size_t k = 0; k < micro_batches && finite; ++k) finite = compute_micro_batch(parts, k);
    if (several_ranks())
        reduce_gradients();
    else if (finite && micro_batches > 1)
        ranks_.front().sum.mean(gradients());
    gradients_ms_ = milliseconds_since(start);
}

// One rank alone stops at a loss that is not finite. Several do not know of each other's losses: their gradients are
// added, and the weights of all become what they become.
bool Arm::compute_micro_batch(std::span<const MicroBatch> parts, std::size_t micro) {
    const auto micro_batches = static_cast<std::size_t>(spec_.accumulate.micro_batches);
    if (micro > 0) {
        if (spec_.accumulate.amax == AmaxOf::each) reduce_amaxes();
        for (Rank& rank : ranks_) rank.casts.begin_micro(static_cast<int>(micro));
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        std::optional<TraceSpan> span;
        if (parts.size() > 1)
            span.emplace("micro-batch", [&] { return fmt::format("rank {}, micro-batch {}", r, micro); });
        const bool finite =
            compute_part(rank, parts[r * micro_batches + micro], 1 / static_cast<double>(micro_batches));
        if (!finite && !several_ranks()) return false;
        if (!finite && rank.nonfinite.empty()) rank.nonfinite = first_nonfinite(rank, false);
        if (micro_batches > 1) {
            rank.sum.add(gradients(), micro == 0);
        } else if (several_ranks()) {
            rank.gradients.resize(moments_.size());
            for (std::size_t i = 0; i < moments_.size(); ++i) {
                const auto gradient = model_->parameters()[i].gradient;
                rank.gradients[i].assign(gradient.begin(), gradient.end());
            }
        }
    }
    return true;
}

bool Arm::compute_part(Rank& rank, const MicroBatch& part, double share) {
    const Matrix<float>& y = model_->forward(part.batch, rank.casts);
    const LossValue value = [&] {
        const TraceSpan span("loss", "loss");
        if (!teacher_) return loss_and_gradient(spec_.loss, y, part.batch, dy_);
        const Traced its_layers_are_not_this_arms(nullptr);
        return teacher_->loss_and_gradient(y, part.batch, dy_);
    }();
    // A part in which nothing is scored counts for nothing, and has no loss.
    if (part.weight > 0) {
        const double counts = static_cast<double>(part.weight) * share;
        rank.loss.loss += value.loss * counts;
        rank.loss.accuracy += value.accuracy * counts;
    }
    if (part.weight != 1)
        for (float& dy : dy_.values) dy *= part.weight;
    scaler_.scale(dy_.values);
    const bool finite = std::isfinite(rank.loss.loss);
    if (finite || several_ranks()) model_->backward(dy_, rank.casts);
    return finite;
}

void Arm::update(int step, double lr) {
    const auto start = std::chrono::steady_clock::now();
    const float loss_scale = scaler_.state().scale;
    StepRecord record = end_step(step);
    const bool loss_is_finite = std::isfinite(record.loss), has_gradients = loss_is_finite || several_ranks();
    moved_pct_.clear();
    const bool skipped = has_gradients && !scaler_.unscale(gradients());
    const bool updated = has_gradients && (skipped || apply_update(step - scaler_.state().skipped, step, lr));
    const bool alive = loss_is_finite && updated;
    if (!alive) stopped_ = cause(step, loss_is_finite);
    if (scaler_.is_on()) record.loss_scale = loss_scale, record.skipped = scaler_.state().skipped;
    if (spec_.accumulate.micro_batches > 1 && alive) {
        Distance distance;
        for (const Rank& rank : ranks_) distance += rank.sum.distance();
        record.accumulate_error_pct = distance.error_pct();
    }
    if (has_narrow_moments(casts().recipe()) && alive && !skipped)
        record.v_zero_pct = v_zero_pct_, record.large_updates_ppm = large_updates_ppm_;
    for (std::size_t k = 0; k < moved_pct_.size(); ++k)
        record.tensors[plan().parameters[weights_[k]].operand->index].moved_pct = moved_pct_[k];
    if (!alive) record.loss = std::numeric_limits<double>::quiet_NaN();
    // A step that became non-finite before the watched tensor keeps the view of the last one that had it.
    if (auto view = casts().watched()) watched_ = std::move(view);
    record.step_ms = gradients_ms_ + milliseconds_since(start);
    records_.push_back(std::move(record));
}

std::vector<std::span<float>> Arm::gradients() const {
    std::vector<std::span<float>> out;
    for (const Parameter<float>& p : model_->parameters()) out.push_back(p.gradient);
    return out;
}

bool Arm::apply_update(int updates, int step, double lr) {
    const TraceSpan span("optimiser", "optimiser");
    const OptimizerStep how{spec_.optimizer, lr,          spec_.weight_decay, updates,
                            spec_.beta1,     spec_.beta2, spec_.eps};
    bool finite = true;
    const auto parameters = model_->parameters();
    const std::vector<std::vector<float>> before = weights_before(step);
    if (spec_.clip > 0) limit_norm(gradients(), spec_.clip);
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (plan().parameters[i].optimised)
            finite &= fp8lab::update(how, parameters[i].value, parameters[i].gradient, moments_[i]);
    if (finite) store_moments(how, step);
    model_->after_update();
    store_weights(casts().recipe().round_update, step);
    count_moved(before);
    return finite;
}

std::vector<std::vector<float>> Arm::weights_before(int step) const {
    std::vector<std::vector<float>> out;
    if (plan().gated || step % kInstrumentSteps != 0) return out;
    for (const std::size_t i : weights_) out.emplace_back(value(i).begin(), value(i).end());
    return out;
}

void Arm::count_moved(const std::vector<std::vector<float>>& before) {
    moved_pct_.clear();
    for (std::size_t k = 0; k < before.size(); ++k) {
        const std::span<const float> now = value(weights_[k]);
        const auto moved =
            std::transform_reduce(now.begin(), now.end(), before[k].begin(), std::size_t{0}, std::plus<>(),
                                  [](float a, float b) { return std::size_t{a != b}; });
        moved_pct_.push_back(
            static_cast<float>(100 * static_cast<double>(moved) / static_cast<double>(now.size())));
    }
}

void Arm::store_moments(const OptimizerStep& how, int step) {
    if (!has_narrow_moments(casts().recipe())) return;
    const MomentStorage storage = moment_storage(casts().recipe());
    constexpr double kLarge = 10;  // times the learning rate
    std::int64_t zeros = 0, large = 0;
    std::size_t n = 0;
    for (const std::size_t i : weights_) {
        Moments& moments = moments_[i];
        large += count_updates_above(how, moments, kLarge * how.lr);
        store(storage.m, moments.m, spec_.seed, update_stream(i, step, 1));
        zeros += store(storage.v, moments.v, spec_.seed, update_stream(i, step, 2), true);
        n += moments.v.size();
    }
    v_zero_pct_ = 100 * static_cast<double>(zeros) / static_cast<double>(n);
    large_updates_ppm_ = 1e6 * static_cast<double>(large) / static_cast<double>(n);
}

NonFinite Arm::cause(int step, bool loss_is_finite) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (!ranks_[r].nonfinite.empty()) return {step, ranks_[r].nonfinite, static_cast<int>(r)};
    return {step, first_nonfinite(ranks_.front(), loss_is_finite), {}};
}

// Searches in the order of the computation: forward pass, loss, backward pass, then the updated parameters.
std::string Arm::first_nonfinite(const Rank& rank, bool loss_is_finite) const {
    const auto& tensors = plan().tensors;
    const auto bad = [&](std::size_t i) {
        const TensorId id{static_cast<std::uint16_t>(i)};
        if (rank.casts.became_nonfinite(id)) return true;
        // After the update the weights are those of the next step; what this step read is known from its cast.
        if (tensors[i].tensor == TensorClass::w && loss_is_finite) return false;
        return !all_finite(model_->values(id));
    };
    const std::optional<std::uint16_t> undecided = model_->undecided();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (undecided && tensors[i].gemm > *undecided) return plan().gemms[*undecided].name;
        if (tensors[i].tensor != TensorClass::dy && bad(i)) return tensors[i].name;
    }
    if (!loss_is_finite) return "loss";
    for (std::size_t i = tensors.size(); i-- > 0;)
        if (tensors[i].tensor == TensorClass::dy && bad(i)) return tensors[i].name;
    for (const std::size_t i : weights_)
        if (!all_finite(value(i))) return plan().parameters[i].name;
    for (std::size_t i = 0; i < moments_.size(); ++i)
        if (!all_finite(value(i))) return plan().parameters[i].name;
    return "update";
}

ArmSnapshot Arm::take() {
    ArmSnapshot snapshot;
    snapshot.records = std::exchange(records_, {});
    snapshot.stopped = stopped_;
    snapshot.watched = watched_;
    if (several_ranks()) snapshot.ranks = rank_states();
    snapshot.evaluation = evaluation_;
    if (spec_.task == TaskKind::spiral && !stopped_) snapshot.decision = decision_grid(*model_, spec_.loss);
    return snapshot;
}

}  // namespace fp8lab
