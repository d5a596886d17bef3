#include "core/run/replay.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/scaling/delayed.h"

namespace fp8lab {

namespace {

// A tensor of a log that keeps its own scale says more than the tensor's amax: whether its recipe casts to 8 bits.
bool casts(const FormatInfo& format) { return width_bits(format) <= 8; }

const FormatInfo& format_of(TensorClass tensor, const Recipe& recipe) {
    return tensor == TensorClass::dy ? *recipe.bwd : *recipe.fwd;
}

// The largest magnitude that rounds to 0: half of the smallest value, a tie that goes to the even code 0.
double zero_below(const FormatInfo& format) { return min_subnormal(format) / 2; }

// What is known without counters.
LostBounds bounds_by_amax(const TensorSeries& series, const TensorPoint& point, double threshold) {
    const bool rounded_to_zero = point.amax == 0 && series.resolution() > 0;
    if (point.amax == 0 && !rounded_to_zero) return {0, 0};
    const double amax =
        rounded_to_zero ? static_cast<double>(series.resolution()) : static_cast<double>(point.amax);
    if (amax <= threshold) return {100, 100};
    return {0,
            static_cast<double>(point.amin) > threshold ? 0.0 : 100.0};  // an amin that was not logged is NaN
}

LostBounds bounds_by_counters(const BinadeCounters& counters, double threshold) {
    double sum = 0, below = 0, cut = 0;
    const int binade = std::ilogb(threshold);
    const std::size_t last = BinadeCounters::kBinades - 1;
    for (std::size_t k = 0; k < counters.bins.size(); ++k) {
        const auto count = static_cast<double>(counters.bins[k]);
        const int at = counters.top - static_cast<int>(k);
        sum += count;
        if (at < binade)
            below += count;
        else if (at == binade || k == last)  // the last one is open below
            cut += count;
    }
    if (sum == 0) return {0, 0};
    return {100 * below / sum, 100 * (below + cut) / sum};
}

// NaN and Inf leave an amax of no number, which keeps the scale.
float amax_for_scale(const TensorPoint& point) {
    return point.nonfinite ? std::numeric_limits<float>::infinity() : point.amax;
}

// The scale of each step.
class Scales {
  public:
    Scales(const Recipe& recipe, const FormatInfo& format)
        : recipe_(recipe),
          max_(static_cast<float>(max_finite(format))),
          pow2_(recipe.pow2 || recipe.granularity == Granularity::block32),
          delayed_(recipe.history, recipe.algo, recipe.margin, recipe.interval, max_, recipe.pow2,
                   recipe.ema_decay, recipe.zero_amax) {}

    float next(const TensorPoint& point) {
        const float amax = amax_for_scale(point);
        if (recipe_.scale == ScaleSource::none) return 1;
        if (recipe_.scale == ScaleSource::current)
            return scale_from_amax(amax, max_, recipe_.margin, 1.0F, pow2_,
                                   recipe_.zero_amax == ZeroAmax::inf);
        const float scale = delayed_.scale();
        if (!std::isnan(amax)) delayed_.update(amax);  // a step whose amax was not logged tells nothing
        return scale;
    }

  private:
    const Recipe& recipe_;
    float max_;
    bool pow2_;
    DelayedScale delayed_;
};

}  // namespace

LostBounds lost_bounds(const TensorSeries& series, const TensorPoint& point, const FormatInfo& format,
                       float scale) {
    if (std::isnan(point.amax)) return {0, 100};
    const double threshold = zero_below(format) / static_cast<double>(scale);
    const LostBounds by_amax = bounds_by_amax(series, point, threshold);
    if (by_amax.low == by_amax.high || point.counters == TensorPoint::kNone) return by_amax;
    static thread_local BinadeCounters counters;  // keeps its memory: this is called a million times
    series.counters(point, counters);
    const LostBounds by_counters = bounds_by_counters(counters, threshold);
    return {by_counters.low, by_amax.high == 0 ? 0 : by_counters.high};
}

bool is_own_recipe(const RunLog& log, const Recipe& recipe) {
    if (log.recipe.empty()) return true;
    try {
        return recipe_text(parse_recipe(log.recipe)) == recipe_text(recipe);
    } catch (const Error&) {
        return false;  // a recipe that this program does not know
    }
}

Replay replay_tensor(const TensorSeries& series, const Recipe& recipe, bool own_recipe) {
    Replay out;
    const FormatInfo& format = format_of(series.tensor_class(), recipe);
    const OverflowThreshold overflow = overflow_threshold(format);
    out.format = &format;
    out.from_above = recipe.granularity != Granularity::tensor;
    out.observed = own_recipe && series.has_scales();
    Scales scales(recipe, format);
    out.steps.reserve(series.points().size());
    for (const TensorPoint& point : series.points()) {
        ReplayStep step{};
        step.step = point.step;
        step.scale = scales.next(point);
        if (out.observed && !std::isnan(point.scale)) step.scale = point.scale;
        const float scaled = point.amax * step.scale;
        step.over = static_cast<float>(static_cast<double>(scaled) / overflow.value);
        step.saturates = overflow.is_passed_by(static_cast<double>(scaled));
        step.lost = casts(format) ? lost_bounds(series, point, format, step.scale) : LostBounds{};
        if (out.from_above) step.lost.low = 0;
        if (own_recipe && !std::isnan(point.underflow_pct))
            step.lost = {static_cast<double>(point.underflow_pct), static_cast<double>(point.underflow_pct)};
        out.steps.push_back(step);
    }
    return out;
}

LostBounds Replay::mean_lost() const {
    LostBounds sum;
    if (steps.size() < 2) return steps.empty() ? sum : steps.front().lost;
    for (std::size_t i = 1; i < steps.size(); ++i) {
        sum.low += steps[i].lost.low;
        sum.high += steps[i].lost.high;
    }
    const auto n = static_cast<double>(steps.size() - 1);
    return {sum.low / n, sum.high / n};
}

int Replay::saturated() const {
    int n = 0;
    for (std::size_t i = 1; i < steps.size(); ++i) n += steps[i].saturates ? 1 : 0;
    return n;
}

int Replay::mostly_lost() const {
    int n = 0;
    for (std::size_t i = 1; i < steps.size(); ++i) n += steps[i].lost.low >= 50 ? 1 : 0;
    return n;
}

std::vector<HistoryRow> histories(const TensorSeries& series, const Recipe& recipe) {
    std::vector<HistoryRow> rows;
    const auto add = [&](AmaxAlgo algo, int history) {
        Recipe one = recipe;
        one.scale = ScaleSource::delayed;
        one.granularity = Granularity::tensor;
        one.algo = algo;
        one.history = history;
        const Replay replayed = replay_tensor(series, one);
        rows.push_back({algo, history, replayed.saturated(), replayed.mean_lost(), replayed.mostly_lost()});
    };
    for (const int history : {1, 4, 16, 64, 256, 1024}) add(AmaxAlgo::max, history);
    add(AmaxAlgo::most_recent, 1);
    return rows;
}

}  // namespace fp8lab
