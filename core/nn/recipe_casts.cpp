#include "core/nn/recipe_casts.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/nn/streams.h"
#include "core/scaling/hadamard.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

DelayedScale cold_start(const Recipe& recipe, const CastPlan& plan) {
    return {recipe.history,
            recipe.algo,
            recipe.margin,
            recipe.interval,
            static_cast<float>(max_finite(*plan.format)),
            recipe.pow2};
}

// The sums are in 16 lanes, so that the compiler can vectorise and the order of the sums is fixed.
// Clones are chosen while the program is loaded, before ThreadSanitizer can take a call from there.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
float kurtosis(std::span<const float> values) {
    constexpr std::size_t kLanes = 16, kRun = 4096;
    typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
    double square = 0, power = 0;
    for (std::size_t begin = 0; begin < values.size(); begin += kRun) {
        const auto part = values.subspan(begin, std::min(kRun, values.size() - begin));
        Lanes second{}, fourth{}, v{};
        std::size_t i = 0;
        for (; i + kLanes <= part.size(); i += kLanes) {
            std::memcpy(&v, &part[i], sizeof v);
            const Lanes s = v * v;
            second += s;
            fourth += s * s;
        }
        for (; i < part.size(); ++i) {
            const float s = part[i] * part[i];
            second[i % kLanes] += s;
            fourth[i % kLanes] += s * s;
        }
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            square += static_cast<double>(second[lane]);
            power += static_cast<double>(fourth[lane]);
        }
    }
    return static_cast<float>(power / square * static_cast<double>(values.size()) / square);
}

// dy of a step whose loss was not finite: there was no backward pass.
TensorRecord not_measured(const CastPlan& plan) {
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    return {.amax = kNone,
            .scale = kNone,
            .underflow_pct = kNone,
            .overflow_pct = kNone,
            .sqnr_db = kNone,
            .applies = plan.format->name != "fp32"};
}

}  // namespace

RecipeCasts::RecipeCasts(const Recipe& recipe, ModelPlan plan, std::uint64_t seed)
    : plan_(std::move(plan)), seed_(seed), states_(plan_.tensors.size()) {
    set_recipe(recipe);
}

void RecipeCasts::set_recipe(const Recipe& recipe) {
    recipe_ = recipe;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        State& s = states_[i];
        const FormatInfo* old_format = s.plan.format;
        const TensorId id{static_cast<std::uint16_t>(i)};
        const TensorClass tensor = plan_.tensor(id).tensor;
        const Recipe here = plan_.recipe_of(recipe, id);
        const bool was_delayed = s.delayed_scale;
        s.plan = cast_plan(here, tensor);
        s.rotated = here.rht && tensor != TensorClass::w;
        s.delayed_scale = here.scale == ScaleSource::delayed;
        if (!s.delayed_scale) continue;
        DelayedScale fresh = cold_start(recipe, s.plan);
        if (was_delayed && old_format == s.plan.format) {
            fresh.restore(s.delayed.scale(), s.delayed.scale_age(), s.delayed.history());
            fresh.set_history(recipe.history);
        }
        s.delayed = std::move(fresh);
    }
}

void RecipeCasts::set_history(int length) {
    recipe_.history = length;
    for (State& s : states_) s.delayed.set_history(length);
}

void RecipeCasts::set_margin(int margin) {
    recipe_.margin = margin;
    for (State& s : states_) {
        s.plan.margin = margin;
        s.delayed.set_margin(margin);
    }
}

void RecipeCasts::set_algo(AmaxAlgo algo) {
    recipe_.algo = algo;
    for (State& s : states_) s.delayed.set_algo(algo);
}

void RecipeCasts::restore_delayed(TensorId id, float scale, int scale_age, std::vector<float> history) {
    State& s = state(id);
    if (!is_delayed(s)) return;
    s.delayed.restore(scale, scale_age, std::move(history));
    s.delayed.set_history(recipe_.history);
}

void RecipeCasts::begin_step(int step, std::optional<TensorId> watched) {
    step_ = step;
    evaluates_ = false;
    watched_ = watched;
    view_.reset();
    for (State& s : states_) s.casted = s.nonfinite = false;
}

const Matrix<float>& RecipeCasts::operand(TensorId id, Along along, const Matrix<float>& value) {
    State& s = state(id);
    const bool first = !s.casted && !evaluates_;
    if (!evaluates_) s.casted = true;
    if (s.plan.format->name == "fp32") {
        if (first) s.record = {.applies = false};
        if (first && id == watched_) watch(id, value);
        return value;
    }
    const bool one_cast = s.plan.granularity == Granularity::tensor ||
                          (s.plan.granularity == Granularity::block16 && s.plan.square_blocks);
    if (!first && one_cast && !evaluates_) return s.cast;
    const Matrix<float>& in = s.rotated && along == Along::rows ? rotated(value) : value;
    QuantizeRequest request{
        .rows = in.rows, .cols = in.cols, .along = along, .seed = seed_, .with_stats = first};
    request.stream =
        stream(Draw::cast, plan_.ordinal(id), step_, plan_.place(id) * 2 + (along == Along::rows));
    if (s.plan.granularity == Granularity::tensor && s.plan.scaled)
        request.tensor_scale = is_delayed(s) ? s.delayed.scale() : s.fixed_scale;
    s.cast.resize(in.rows, in.cols);
    const QuantizeResult result = quantize(s.plan, in.values, s.cast.values, request);
    if (first) note(id, in, result);
    return s.cast;
}

const Matrix<float>& RecipeCasts::rotated(const Matrix<float>& value) {
    rotated_.resize(rht_padded(value.rows), value.cols);
    std::fill(std::copy(value.values.begin(), value.values.end(), rotated_.values.begin()),
              rotated_.values.end(), 0.0F);
    rotate(rotated_.values, rotated_.values, rotated_.rows, rotated_.cols, Along::rows, te_signs());
    if (recipe_.rht_bf16) round(rotated_, OutType::bf16);
    return rotated_;
}

void RecipeCasts::note(TensorId id, const Matrix<float>& value, const QuantizeResult& result) {
    State& s = state(id);
    const bool one_scale = s.plan.granularity == Granularity::tensor;
    s.record = {.amax = result.stats.amax,
                .scale = one_scale ? result.scale : std::numeric_limits<float>::quiet_NaN(),
                .underflow_pct = static_cast<float>(result.stats.underflow_pct()),
                .overflow_pct = static_cast<float>(result.stats.overflow_pct()),
                .sqnr_db = static_cast<float>(result.stats.sqnr_db()),
                .lost_l1_pct = static_cast<float>(result.stats.lost_l1_pct()),
                .lost_energy_pct = static_cast<float>(result.stats.lost_energy_pct())};
    if (plan_.gated) s.record.kurtosis = kurtosis(value.values);
    const bool overflow_is_nonfinite =
        s.plan.overflow == Overflow::nonsaturate && (has_nan(*s.plan.format) || has_infinity(*s.plan.format));
    s.nonfinite = result.stats.nonfinite > 0 || (overflow_is_nonfinite && result.stats.overflow > 0);
    if (id == watched_) watch(id, value);
}

void RecipeCasts::watch(TensorId id, const Matrix<float>& value) {
    const State& s = state(id);
    TensorView view;
    view.id = id;
    view.step = step_;
    view.scale = s.record.scale;
    view.before.add(value.values);
    if (s.record.applies) {
        view.format = s.plan.format;
        view.after.add(s.cast.values);
    }
    view_ = std::move(view);
}

void RecipeCasts::round(Matrix<float>& result, OutType to) {
    if (to == OutType::fp32) return;
    constexpr std::size_t kGrain = 65536;
    const FormatInfo& bf16 = find_format("bf16");
    parallel_for(result.values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        const auto part = std::span(result.values).subspan(begin, end - begin);
        quantize(bf16, part, part, {.overflow = Overflow::nonsaturate});
    });
}

std::vector<TensorRecord> RecipeCasts::end_step() {
    std::vector<TensorRecord> records;
    records.reserve(states_.size());
    for (State& s : states_) {
        if (!s.casted) s.record = not_measured(s.plan);
        if (s.casted && is_delayed(s)) s.delayed.update(s.record.amax);
        records.push_back(s.record);
    }
    return records;
}

}  // namespace fp8lab
