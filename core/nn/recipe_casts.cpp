#include "core/nn/recipe_casts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/nn/streams.h"
#include "core/scaling/hadamard.h"
#include "core/scaling/side_cast.h"
#include "core/threads/parallel.h"
#include "core/threads/trace.h"

namespace fp8lab {
namespace {

DelayedScale cold_start(const Recipe& recipe, const CastPlan& plan) {
    return {recipe.history,
            recipe.algo,
            recipe.margin,
            recipe.interval,
            static_cast<float>(max_finite(*plan.format)),
            recipe.pow2,
            recipe.ema_decay,
            recipe.zero_amax};
}

// The sums are in 16 lanes, so that the compiler can vectorise and the order of the sums is fixed.
// Clones are chosen while the program is loaded, before ThreadSanitizer can take a call from there.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void add_powers(std::span<const float> values, double& square, double& power) {
    constexpr std::size_t kLanes = 16, kRun = 4096;
    typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
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

void RecipeCasts::PowerSums::add(std::span<const float> values) {
    add_powers(values, square, fourth);
    n += static_cast<double>(values.size());
}

RecipeCasts::RecipeCasts(const Recipe& recipe, ModelPlan plan, std::uint64_t seed, Accumulation accumulate,
                         int first_micro)
    : plan_(std::move(plan)),
      seed_(seed),
      accumulate_(std::move(accumulate)),
      first_micro_(first_micro),
      states_(plan_.tensors.size()) {
    set_recipe(recipe);
}

// A delayed scale that was there for this format is kept.
void RecipeCasts::set_side(Side& side, TensorId id, Along along, const Recipe& here) {
    const TensorClass tensor = plan_.tensor(id).tensor;
    const FormatInfo* old_format = side.plan.format;
    const bool was_delayed = side.delayed_scale;
    const Recipe mine = recipe_of_gemm(here, gemm_of(tensor, along));
    side.plan = cast_plan(mine, tensor);
    side.rotated = mine.rht && tensor != TensorClass::w;
    side.delayed_scale = mine.scale == ScaleSource::delayed;
    if (!side.delayed_scale) return;
    DelayedScale fresh = cold_start(mine, side.plan);
    if (was_delayed && old_format == side.plan.format) {
        fresh.restore(side.delayed.scale(), side.delayed.scale_age(), side.delayed.history());
        fresh.set_history(mine.history);
    }
    side.delayed = std::move(fresh);
}

void RecipeCasts::set_recipe(const Recipe& recipe) {
    recipe_ = recipe;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        State& s = states_[i];
        const TensorId id{static_cast<std::uint16_t>(i)};
        const Recipe here = plan_.recipe_of(recipe, id);
        const bool was_split = s.split;
        if (!was_split) s.sides[1] = {}, s.sides[1].delayed = s.sides[0].delayed;
        if (!was_split)
            s.sides[1].delayed_scale = s.sides[0].delayed_scale, s.sides[1].plan = s.sides[0].plan;
        set_side(s.sides[0], id, Along::cols, here);
        set_side(s.sides[1], id, Along::rows, here);
        s.split = fp8lab::is_split(here, plan_.tensor(id).tensor);
        if (!s.split) s.sides[1] = {};
        s.kept = {};
    }
}

void RecipeCasts::set_history(int length) {
    recipe_.history = length;
    for (State& s : states_)
        for (Side& side : s.sides) side.delayed.set_history(length);
}

void RecipeCasts::set_margin(int margin) {
    recipe_.margin = margin;
    for (State& s : states_)
        for (Side& side : s.sides) {
            side.plan.margin = margin;
            side.delayed.set_margin(margin);
        }
}

void RecipeCasts::set_algo(AmaxAlgo algo) {
    recipe_.algo = algo, recipe_.amax_percentile = 0;
    for (State& s : states_)
        for (Side& side : s.sides) {
            side.delayed.set_algo(algo);
            if (side.delayed_scale) side.plan.amax_percentile = 0;
        }
}

void RecipeCasts::restore_delayed(TensorId id, Along along, float scale, int scale_age,
                                  std::vector<float> history) {
    State& s = state(id);
    Side& side = s.side(along);
    if (!is_delayed(s, side)) return;
    const auto length = static_cast<int>(side.delayed.history().size());  // an input's recipe has its own
    side.delayed.restore(scale, scale_age, std::move(history));
    side.delayed.set_history(length);
}

void RecipeCasts::begin_step(int step, std::optional<TensorId> watched) {
    step_ = step, micro_ = 0;
    evaluates_ = false;
    watched_ = watched;
    view_.reset();
    for (State& s : states_) {
        s.nonfinite = false;
        s.product_error_pct = std::numeric_limits<float>::quiet_NaN();
        // An expert may get its first rows of a step in a later micro-batch: what is kept then is of this step.
        if (accumulate_.weights == WeightCache::once)
            for (Matrix<float>& cast : s.kept) cast.values.clear();
        for (Side& side : s.sides) {
            if (accumulate_.amax == AmaxOf::each) side.rolling = side.delayed;
            side.casted = side.casted_before = side.empty = false;
        }
    }
    open_ = true;
}

void RecipeCasts::begin_micro(int micro) {
    micro_ = micro;
    for (State& s : states_)
        for (Side& side : s.sides) {
            if (accumulate_.amax == AmaxOf::each && side.casted && is_delayed(s, side))
                side.rolling.update(side.scale_amax);
            side.casted_before |= side.casted;
            side.casted = false;
        }
}

bool RecipeCasts::keeps(TensorId id, Along along) const {
    if (evaluates_ || plan_.tensor(id).tensor != TensorClass::w) return false;
    if (!is_element(*state(id).side(along).plan.format)) return false;
    if (accumulate_.weights == WeightCache::stale) return true;
    return accumulate_.weights == WeightCache::once && accumulate_.micro_batches > 1;
}

bool RecipeCasts::has_kept(TensorId id, Along along) const {
    if (state(id).kept[along == Along::rows].values.empty()) return false;
    return micro_ > 0 || (accumulate_.weights == WeightCache::stale && step_ > 0);
}

const Matrix<float>& RecipeCasts::kept(TensorId id, Along along) const {
    static const Matrix<float> none;
    return accumulate_.weights == WeightCache::stale ? state(id).kept[along == Along::rows] : none;
}

void RecipeCasts::restore_kept(TensorId id, Along along, Matrix<float> cast) {
    if (accumulate_.weights == WeightCache::stale) state(id).kept[along == Along::rows] = std::move(cast);
}

const Matrix<float>& RecipeCasts::operand(TensorId id, Along along, const Matrix<float>& value) {
    const Gathered& gathered = state(id).gathered;
    if (gathered.is_cast) return read_gathered(id, along, value);
    const Matrix<float>& source = gathered.values ? *gathered.values : value;
    if (!keeps(id, along)) return cast(id, along, source);
    Matrix<float>& kept = state(id).kept[along == Along::rows];
    if (!has_kept(id, along)) kept = cast(id, along, source);
    return kept;
}

const Matrix<float>& RecipeCasts::cast(TensorId id, Along along, const Matrix<float>& value) {
    State& s = state(id);
    Side& side = s.side(along);
    const bool first = !side.casted && !evaluates_, first_of_all = first && !s.casted();
    if (!evaluates_) side.casted = true;
    if (side.plan.format->name == "fp32") {
        if (first) side.record = {.applies = false};
        if (first_of_all && id == watched_) watch(id, side, value, side.cast);
        return value;
    }
    const bool one_cast = recipe_.fake || side.plan.granularity == Granularity::tensor ||
                          (side.plan.granularity == Granularity::block16 && side.plan.square_blocks);
    if (!first && one_cast && !evaluates_) return side.cast;
    const TraceSpan span(
        "cast", [&] { return "cast " + plan_.tensor(id).name; }, side.plan.format->name);
    const bool of_codes = recipe_.columns_from_rowwise && along == Along::rows && !one_cast &&
                          s.sides[0].plan.format->name != "fp32";
    if (of_codes && (s.split ? !s.sides[0].casted : first)) cast_rowwise(id, value);
    const Matrix<float>& source = of_codes ? s.sides[0].cast : value;
    const Matrix<float>& in = side.rotated && along == Along::rows ? rotated(source) : source;
    QuantizeRequest request = request_of(id, along, in);
    request.with_stats = first;
    if (side.plan.granularity == Granularity::tensor && side.plan.scaled)
        request.tensor_scale = is_delayed(s, side) ? in_use(side).scale() : s.fixed_scale;
    side.cast.resize(in.rows, in.cols);
    const QuantizeResult result = quantize(side.plan, in.values, side.cast.values, request);
    if (first) note(id, side, in, result);
    if (first && is_delayed(s, side)) note_amax(side, in, result.stats.amax);
    if (first_of_all && id == watched_) watch(id, side, in, side.cast);
    return side.cast;
}

void RecipeCasts::note_empty(TensorId id) {
    if (evaluates_) return;
    for (Side& side : state(id).sides) side.empty = true;
}

void RecipeCasts::note_amax(Side& side, const Matrix<float>& in, float amax) {
    if (side.plan.amax_percentile > 0) amax = scale_amax(side.plan, in.values);
    // A NaN stays.
    const bool keep = accumulate_.amax == AmaxOf::max && side.casted_before && !(amax > side.scale_amax) &&
                      !std::isnan(amax);
    if (!keep) side.scale_amax = amax;
}

QuantizeRequest RecipeCasts::request_of(TensorId id, Along along, const Matrix<float>& in) const {
    QuantizeRequest request{.rows = in.rows, .cols = in.cols, .along = along, .seed = seed_};
    const bool weight = plan_.tensor(id).tensor == TensorClass::w;
    request.stream =
        stream(Draw::cast, plan_.ordinal(id), step_, plan_.place(id) * 2 + (along == Along::rows),
               micro_ + (weight ? 0 : first_micro_));
    return request;
}

// dy of layer 1 has no product along its rows, but its codes are what colsrc=rowwise casts from.
void RecipeCasts::cast_rowwise(TensorId id, const Matrix<float>& value) {
    Side& side = state(id).sides[0];
    QuantizeRequest request = request_of(id, Along::cols, value);
    request.with_stats = false;
    side.cast.resize(value.rows, value.cols);
    quantize(side.plan, value.values, side.cast.values, request);
}

const Matrix<float>& RecipeCasts::rotated(const Matrix<float>& value) {
    rotated_.resize(rht_padded(value.rows), value.cols);
    std::fill(std::copy(value.values.begin(), value.values.end(), rotated_.values.begin()),
              rotated_.values.end(), 0.0F);
    rotate(rotated_.values, rotated_.values, rotated_.rows, rotated_.cols, Along::rows, te_signs());
    if (recipe_.rht_bf16) round(rotated_, OutType::bf16);
    return rotated_;
}

void RecipeCasts::note(TensorId id, Side& side, const Matrix<float>& value, const QuantizeResult& result) {
    State& s = state(id);
    if (!side.casted_before) side.stats = {}, side.powers = {}, side.saturated = 0;
    side.stats += result.stats;
    side.saturated += result.stats.overflow > 0;
    if (plan_.gated) side.powers.add(value.values);
    describe(side, result.scale);
    const bool overflow_is_nonfinite = side.plan.overflow == Overflow::nonsaturate &&
                                       (has_nan(*side.plan.format) || has_infinity(*side.plan.format));
    s.nonfinite |= result.stats.nonfinite > 0 || std::isinf(result.scale) ||
                   (overflow_is_nonfinite && result.stats.overflow > 0);
}

void RecipeCasts::describe(Side& side, float scale) const {
    const bool one_scale = side.plan.granularity == Granularity::tensor;
    const CastStats& stats = side.stats;
    side.record = {.amax = stats.amax,
                   .scale = one_scale ? scale : std::numeric_limits<float>::quiet_NaN(),
                   .underflow_pct = static_cast<float>(stats.underflow_pct()),
                   .overflow_pct = static_cast<float>(stats.overflow_pct()),
                   .sqnr_db = static_cast<float>(stats.sqnr_db()),
                   .lost_l1_pct = static_cast<float>(stats.lost_l1_pct()),
                   .lost_energy_pct = static_cast<float>(stats.lost_energy_pct())};
    if (accumulate_.micro_batches > 1) side.record.saturated_casts = static_cast<float>(side.saturated);
    if (plan_.gated) side.record.kurtosis = side.powers.kurtosis();
}

void RecipeCasts::watch(TensorId id, const Side& side, const Matrix<float>& value,
                        const Matrix<float>& cast) {
    TensorView view;
    if (view_) view = std::move(*view_);  // of the micro-batches before
    view.id = id;
    view.step = step_;
    view.scale = side.record.scale;
    view.before.add(value.values);
    if (side.record.applies) {
        view.format = side.plan.format;
        view.after.add(cast.values);
    }
    view_ = std::move(view);
}

void RecipeCasts::note_product(TensorId w_id, const Matrix<float>& x, const Matrix<float>& w,
                               const Matrix<float>& y) {
    if (evaluates_ || micro_ > 0 || step_ % kInstrumentSteps != 0) return;
    const TraceSpan span("instruments", [&] { return "product in float64 " + plan_.tensor(w_id).name; });
    static constexpr std::size_t kTile = 256;  // rows of x, and of w, in float64 at a time
    const auto wide = [](const Matrix<float>& m, std::size_t first) {
        Matrix<double> out(std::min(kTile, m.rows - first), m.cols);
        std::copy_n(m.values.begin() + static_cast<std::ptrdiff_t>(first * m.cols), out.values.size(),
                    out.values.begin());
        return out;
    };
    double error = 0, norm = 0;
    Matrix<double> exact;
    for (std::size_t n = 0; n < w.rows; n += kTile) {
        const Matrix<double> w_rows = wide(w, n);
        for (std::size_t m = 0; m < x.rows; m += kTile) {
            multiply_nt(wide(x, m), w_rows, exact);
            for (std::size_t r = 0; r < exact.rows; ++r)
                for (std::size_t c = 0; c < exact.cols; ++c) {
                    const double value = exact.row(r)[c],
                                 off = static_cast<double>(y.row(m + r)[n + c]) - value;
                    error += off * off;
                    norm += value * value;
                }
        }
    }
    state(w_id).product_error_pct = static_cast<float>(100 * std::sqrt(error / norm));
}

void RecipeCasts::round(Matrix<float>& result, OutType to) {
    if (to == OutType::fp32) return;
    const TraceSpan span("cast", "round to bf16");
    constexpr std::size_t kGrain = 65536;
    const FormatInfo& bf16 = find_format("bf16");
    parallel_for(result.values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        const auto part = std::span(result.values).subspan(begin, end - begin);
        quantize(bf16, part, part, {.overflow = Overflow::nonsaturate});
    });
}

std::vector<TensorRecord> RecipeCasts::end_step() {
    const bool each = accumulate_.amax == AmaxOf::each;
    for (State& s : states_)
        for (Side& side : s.sides) {
            const bool due = each ? side.casted : side.seen(), empty = side.empty && !side.seen();
            if ((due || empty) && is_delayed(s, side)) in_use(side).update(empty ? 0 : side.scale_amax);
            if (each) side.delayed = side.rolling;
        }
    open_ = false;
    return records();
}

std::vector<TensorRecord> RecipeCasts::records() const {
    std::vector<TensorRecord> out;
    out.reserve(states_.size());
    for (const State& s : states_) {
        const Side &first = s.sides[0], &second = s.sides[1];
        if (!s.seen())
            out.push_back(not_measured(first.plan));
        else  // dy of layer 1 has no dgrad
            out.push_back(first.seen() ? first.record : second.record);
        if (first.seen() && second.seen() && second.record.applies)
            out.back().second_sqnr_db = second.record.sqnr_db;
        out.back().product_error_pct = s.product_error_pct;
    }
    return out;
}

}  // namespace fp8lab
