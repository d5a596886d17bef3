#include "core/run/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "core/run/running_median.h"

namespace fp8lab {

namespace {

constexpr std::size_t kFirstSpike = 4;     // steps before one can be told
constexpr std::size_t kLastSteps = 10;     // "at the end" of a run
constexpr double kNotFinite = 1e6;         // severity, less the step: before all others, the first step first
constexpr std::size_t kFirstResumed = 20;  // steps
constexpr double kSteadyHeadroom = 1.5;    // binades, standard deviation
constexpr double kMovingAmax = 0.02;       // binades
constexpr double kUnseen = 0.5;            // severity of what may lose much and is not counted
constexpr int kSaturated = 3;              // steps at least, under a delayed scale
constexpr double kFault = 0.25;            // of what is lost, that stays lost without a history
constexpr double kSmallest = 1e-30;

// Of those that were logged. NaN of nothing.
double median(std::vector<float> values) {
    std::erase_if(values, [](float value) { return std::isnan(value); });
    std::ranges::sort(values);
    return middle_of(values);
}

double median_of(const std::vector<float>& values, std::size_t begin, std::size_t end) {
    const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
    return median({at(begin), at(end)});
}

double mean_low(const TensorEvidence& e, std::size_t begin) {
    double sum = 0;
    for (std::size_t i = begin; i < e.size(); ++i) sum += e.replay.steps[i].lost.low;
    return sum / static_cast<double>(e.size() - begin);
}

bool always_scale_1(const TensorEvidence& e) {
    return std::ranges::all_of(e.replay.steps, [](const ReplayStep& step) { return step.scale == 1; });
}

// The log has the scales that the run itself used, and they are scales.
bool scales_seen(const TensorEvidence& e) { return e.replay.observed && !always_scale_1(e); }

// The first step in which more is lost than may be; the one that loses most where none is.
std::size_t first_loss(const TensorEvidence& e) {
    const auto& steps = e.replay.steps;
    const auto low = [](const ReplayStep& step) { return step.lost.low; };
    const auto over = std::ranges::find_if(
        steps, [&](const ReplayStep& step) { return step.lost.low > e.thresholds.lost_at_most; });
    return static_cast<std::size_t>((over != steps.end() ? over : std::ranges::max_element(steps, {}, low)) -
                                    steps.begin());
}

// The first step whose amax stands out and is back soon: far below the spike, and no longer standing out.
std::optional<std::size_t> first_spike(const TensorEvidence& e) {
    const auto back = static_cast<std::size_t>(e.thresholds.spike_back);
    for (std::size_t i = kFirstSpike; i + back < e.size(); ++i) {
        if (!(static_cast<double>(e.ratio[i]) >= e.thresholds.spike)) continue;
        const double before = static_cast<double>(e.amax[i]) / static_cast<double>(e.ratio[i]);
        const double after = median_of(e.amax, i + 1, i + 1 + back);
        if (after < static_cast<double>(e.amax[i]) / 8 && after < e.thresholds.spike * before) return i;
    }
    return std::nullopt;
}

// "4.0e5"; below a thousand "120".
std::string times(double factor) {
    if (factor < 1000) return fmt::format("{:.0f}", factor);
    const int exponent = static_cast<int>(std::floor(std::log10(factor)));
    return fmt::format("{:.1f}e{}", factor / std::pow(10.0, exponent), exponent);
}

bool overflow_is_nan(const Recipe& recipe) { return recipe.overflow == Overflow::nonsaturate; }

std::optional<RuleVerdict> judge_overflow_nan(const TensorEvidence& e) {
    if (!overflow_is_nan(e.recipe) || e.replay.from_above) return std::nullopt;
    const FormatInfo& format = *e.replay.format;
    for (std::size_t i = 0; i < e.size(); ++i)
        if (e.replay.steps[i].saturates)
            return RuleVerdict{
                i,
                fmt::format(
                    "amax x scale is {}: above {} {} becomes {}",
                    format_number(
                        static_cast<double>(e.amax[i]) * static_cast<double>(e.replay.steps[i].scale), 5),
                    overflow_threshold(format).value, format.label, has_infinity(format) ? "Inf" : "NaN"),
                kNotFinite - e.step(i)};
    return std::nullopt;
}

std::optional<RuleVerdict> judge_not_fp8(const TensorEvidence& e) {
    const auto points = e.series.points();
    for (std::size_t i = 0; i < e.size(); ++i)
        if (points[i].nonfinite)
            return RuleVerdict{i, "NaN or Inf before the cast: not FP8", kNotFinite - e.step(i)};
    return std::nullopt;
}

bool loses(const TensorEvidence& e) {
    const std::size_t last = e.size() - std::min(e.size(), kLastSteps);
    return e.lost > e.thresholds.mean_lost || mean_low(e, last) > e.thresholds.lost_at_most;
}

// What lies below the amax was not counted, and the history keeps a spike long enough to matter.
bool is_unseen(const TensorEvidence& e) {
    const auto is_known = [](const TensorPoint& point) { return !std::isnan(point.underflow_pct); };
    return !e.series.has_counters() && !(e.own && std::ranges::any_of(e.series.points(), is_known)) &&
           e.recipe.algo == AmaxAlgo::max && e.recipe.history >= e.thresholds.spike_steps;
}

std::optional<RuleVerdict> judge_spike(const TensorEvidence& e) {
    if (e.recipe.scale != ScaleSource::delayed) return std::nullopt;
    const bool loses_much = e.lost > e.thresholds.spike_mean_lost;
    if (!loses_much && !is_unseen(e)) return std::nullopt;
    const auto at = first_spike(e);
    if (!at || (!loses_much && static_cast<double>(e.ratio[*at]) < e.thresholds.unseen_spike))
        return std::nullopt;
    RuleVerdict verdict{
        *at,
        fmt::format("a spike of {} times kept in history {}", times(static_cast<double>(e.ratio[*at])),
                    e.recipe.history),
        e.lost, e.recipe.history > 16 ? "history 16, or most_recent" : "a shorter history, or most_recent"};
    if (loses_much) return verdict;
    verdict.cause += "; what is lost below the amax was not counted";
    verdict.severity = kUnseen;
    verdict.lost_known = false;
    return verdict;
}

// The history keeps an amax that the tensor no longer has: with the scale of each step's own amax little is lost.
std::optional<RuleVerdict> judge_stale_history(const TensorEvidence& e) {
    if (e.recipe.scale != ScaleSource::delayed || !loses(e)) return std::nullopt;
    Recipe own_amax = e.recipe;
    own_amax.scale = ScaleSource::current;
    if (replay_tensor(e.series, own_amax).mean_lost().low > kFault * e.lost) return std::nullopt;
    const std::size_t at = first_loss(e);
    float before = 0;
    const std::size_t kept = std::min(at, static_cast<std::size_t>(e.recipe.history));
    for (std::size_t i = at - kept; i < at; ++i) before = std::fmax(before, e.amax[i]);
    if (!(before > e.amax[at])) return std::nullopt;
    return RuleVerdict{at,
                       fmt::format("the amax has fallen from {} to {}, and history {} keeps the old one",
                                   format_number(static_cast<double>(before), 3),
                                   format_number(static_cast<double>(e.amax[at]), 3), e.recipe.history),
                       e.lost};
}

std::optional<RuleVerdict> judge_saturates(const TensorEvidence& e) {
    if (e.replay.from_above || width_bits(*e.replay.format) > 8) return std::nullopt;
    // The first step of a delayed scale has scale 1, whatever the tensor is.
    const bool delayed = e.recipe.scale == ScaleSource::delayed;
    const std::size_t begin = delayed ? 1 : 0;
    std::size_t first = e.size(), n = 0;
    double most = 0;
    for (std::size_t i = begin; i < e.size(); ++i) {
        const auto over = static_cast<double>(e.replay.steps[i].over);
        if (!(over >= e.thresholds.saturated_by)) continue;
        first = std::min(first, i);
        most = std::max(most, over);
        ++n;
    }
    if (n == 0 || (delayed && n < kSaturated)) return std::nullopt;
    const double share = 100 * static_cast<double>(n) / static_cast<double>(e.size() - begin);
    if (share <= e.thresholds.saturated_steps) return std::nullopt;
    return RuleVerdict{
        first,
        fmt::format("values above the window in {} of {} step{}, up to {} times: they saturate", n,
                    e.size() - begin, e.size() - begin == 1 ? "" : "s",
                    most < 10 ? format_number(most, 2) : times(most)),
        share, delayed ? "a longer history, a larger margin, or current" : ""};
}

std::optional<RuleVerdict> judge_below_window(const TensorEvidence& e) {
    if (e.lost <= e.thresholds.mean_lost || !always_scale_1(e)) return std::nullopt;
    return RuleVerdict{first_loss(e), "values below the window: scale 1", e.lost};
}

// How many binades the median magnitude lies below the amax, per step; empty where counters are not there.
std::vector<float> median_below_amax(const TensorEvidence& e) {
    std::vector<float> out;
    BinadeCounters counters;
    for (const TensorPoint& point : e.series.points()) {
        if (!e.series.counters(point, counters)) {
            if (out.empty()) return {};
            out.push_back(out.back());
            continue;
        }
        std::uint64_t sum = 0, half = (counters.nonzero() + 1) / 2;
        std::size_t k = 0;
        while (k < counters.bins.size() && (sum += counters.bins[k]) < half) ++k;
        out.push_back(static_cast<float>(k));
    }
    return out;
}

double mean_of_last(const std::vector<float>& values) {
    double sum = 0;
    const std::size_t begin = values.size() - std::min(values.size(), kLastSteps);
    for (std::size_t i = begin; i < values.size(); ++i) sum += static_cast<double>(values[i]);
    return sum / static_cast<double>(values.size() - begin);
}

// With counters: the median falls away from the amax. Without: the amax has grown and stays, and values are lost all the
// same, though the scale follows it.
std::optional<RuleVerdict> judge_outlier_channel(const TensorEvidence& e) {
    if (!loses(e) || e.size() < 3) return std::nullopt;
    std::vector<float> binades = median_below_amax(e);
    const bool counted = !binades.empty();
    if (!counted)
        for (const float amax : e.amax)
            binades.push_back(std::log2(std::max(amax, static_cast<float>(kSmallest))));
    const double before = median_of(binades, 0, binades.size() / 3), now = mean_of_last(binades);
    const double least = counted ? e.thresholds.outlier_binades : e.thresholds.grown_binades;
    if (!(now - before >= least)) return std::nullopt;
    const auto moved =
        std::ranges::find_if(binades, [&](float at) { return static_cast<double>(at) > before + least - 1; });
    return RuleVerdict{
        static_cast<std::size_t>(moved - binades.begin()),
        counted
            ? fmt::format("an outlier channel: amax 2^{:.0f} above the median, 2^{:.0f} before", now, before)
            : fmt::format(
                  "an outlier channel: amax 2^{:.0f} times what it was, and what lies below it is lost",
                  now - before),
        e.lost};
}

std::optional<RuleVerdict> judge_loses(const TensorEvidence& e) {
    if (!loses(e)) return std::nullopt;
    return RuleVerdict{first_loss(e), "values are lost; the cause is not in these statistics", e.lost};
}

// max / 0 as a scale ends the run, whatever was logged of the tensor before it.
std::optional<RuleVerdict> judge_infinite_scale(const TensorEvidence& e) {
    for (std::size_t i = 0; i < e.size(); ++i)
        if (std::isinf(e.replay.steps[i].scale))
            return RuleVerdict{i, "an amax of 0 gives an infinite scale: 0 x Inf is NaN",
                               kNotFinite - e.step(i)};
    return std::nullopt;
}

std::optional<RuleVerdict> judge_all_zero(const TensorEvidence& e) {
    if (e.series.resolution() > 0) return std::nullopt;  // 0.0000 is not 0
    if (judge_infinite_scale(e)) return std::nullopt;    // said already
    const auto points = e.series.points();
    BinadeCounters counters;
    for (std::size_t i = 1; i < e.size(); ++i) {
        if (e.amax[i] != 0 || points[i].nonfinite) continue;
        const bool is_empty = e.series.counters(points[i], counters) && counters.n == 0;
        if (!is_empty) return RuleVerdict{i, "all values are 0 in this step", 0.1};
    }
    return std::nullopt;
}

std::optional<RuleVerdict> judge_headroom(const TensorEvidence& e) {
    if (!scales_seen(e) || e.size() < 2 || first_spike(e)) return std::nullopt;
    std::vector<float> free;
    for (std::size_t i = 0; i < e.size(); ++i)
        free.push_back(static_cast<float>(
            std::log2(max_finite(*e.replay.format) /
                      std::max(static_cast<double>(e.amax[i]) * static_cast<double>(e.replay.steps[i].scale),
                               kSmallest))));
    const double binades = median(free);
    double sum = 0, squares = 0;
    const std::size_t begin = free.size() / 4;  // the scale settles before
    for (std::size_t i = begin; i < free.size(); ++i) {
        sum += static_cast<double>(free[i]);
        squares += static_cast<double>(free[i]) * static_cast<double>(free[i]);
    }
    const auto n = static_cast<double>(free.size() - begin);
    const double spread = std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
    if (!(binades > e.thresholds.headroom_binades && spread < kSteadyHeadroom)) return std::nullopt;
    return RuleVerdict{0, fmt::format("{:.0f} binades stay free above the amax", binades), 0.2};
}

std::optional<RuleVerdict> judge_fixed_scale(const TensorEvidence& e) {
    const auto steps = static_cast<std::size_t>(e.thresholds.fixed_steps);
    if (!scales_seen(e) || e.series.tensor_class() != TensorClass::w || e.size() <= steps + steps / 2)
        return std::nullopt;
    const std::size_t first = e.size() - steps;
    float least = e.amax[first], most = least;
    for (std::size_t i = first; i < e.size(); ++i) {
        if (e.replay.steps[i].scale != e.replay.steps.back().scale) return std::nullopt;
        least = std::min(least, e.amax[i]);
        most = std::max(most, e.amax[i]);
    }
    if (!(std::log2(static_cast<double>(most) / static_cast<double>(least)) > kMovingAmax))
        return std::nullopt;
    return RuleVerdict{first, fmt::format("the scale of the weights stands still for {} steps", steps), 2};
}

std::optional<RuleVerdict> judge_resumed(const TensorEvidence& e) {
    if (!scales_seen(e)) return std::nullopt;
    for (std::size_t i = kFirstResumed; i < e.size(); ++i)
        if (e.replay.steps[i].scale == 1 && e.replay.steps[i - 1].scale != 1)
            return RuleVerdict{i, "the scale is back at 1: resumed without its history", 3};
    return std::nullopt;
}

}  // namespace

TensorEvidence evidence_of(const RunLog& log, const TensorSeries& series, const Recipe& recipe,
                           const Thresholds& thresholds) {
    TensorEvidence e{log, series, recipe, thresholds, {}, {}, {}};
    e.own = is_own_recipe(log, recipe);
    e.replay = replay_tensor(series, recipe, e.own);
    for (const TensorPoint& point : series.points()) e.amax.push_back(point.amax);
    const auto window = static_cast<std::size_t>(thresholds.spike_steps);
    RunningMedian median;  // of the steps before
    for (std::size_t i = 0; i < e.size(); ++i) {
        const double before = i < kFirstSpike ? 0 : median.value();
        e.ratio.push_back(before > 0 ? static_cast<float>(static_cast<double>(e.amax[i]) / before)
                                     : kNotLogged);
        median.add(e.amax[i]);
        if (i >= window) median.remove(e.amax[i - window]);
    }
    if (e.size() == 1 && recipe.scale == ScaleSource::delayed && !e.replay.observed)
        e.replay.steps.front().lost.low = 0;
    e.lost = e.replay.mean_lost().low;
    return e;
}

std::span<const RunRule> run_rules() {
    using enum FindingKind;
    constexpr bool kOneOf = true, kBeside = false;
    static constexpr RunRule kRules[] = {
        {infinite_scale, "Infinite scale", "6", "keep the scale where the amax is 0",
         "The scale of a step is infinite, because an amax was 0.", kOneOf, judge_infinite_scale},
        {overflow_nan, "Overflow that is not saturated", "2", "overflow=saturate",
         "The recipe has `overflow=nonsaturate`, and in some step amax x scale rounds beyond the largest "
         "value.",
         kOneOf, judge_overflow_nan},
        {not_fp8, "Not finite before the cast", "", "the data, or a smaller learning rate",
         "The tensor has NaN or Inf before it is cast.", kOneOf, judge_not_fp8},
        {spike, "A spike kept in the history", "4", "history 16, or most_recent",
         "Under delayed scaling the amax of a step is {spike} times the median of the {spike_steps} steps "
         "before, "
         "is back {spike_back} steps later, and more than {spike_mean_lost} % of the elements are lost in "
         "the "
         "mean. If lost elements were not counted, {unseen_spike} times the median.",
         kOneOf, judge_spike},
        {below_window, "Values below the window", "1", "a scale: delayed or current",
         "The scale is 1 in every step, and more than {mean_lost} % of the elements are lost in the mean.",
         kOneOf, judge_below_window},
        {outlier_channel, "An outlier channel", "", "block scales, Smooth-SwiGLU, or BF16",
         "Elements are lost as under \"Cause not known\", and the amax has moved {outlier_binades} binades "
         "away "
         "from the median magnitude. Without counters of binades: the amax has grown by {grown_binades} "
         "binades.",
         kOneOf, judge_outlier_channel},
        {stale_history, "An old amax kept in the history", "4", "a shorter history, or most_recent",
         "Elements are lost as under \"Cause not known\" with delayed scaling, and at most a quarter as many "
         "would be lost with the scale of each step's own amax.",
         kOneOf, judge_stale_history},
        {FindingKind::loses, "Cause not known", "", "look at its histogram",
         "More than {mean_lost} % of the elements are lost in the mean, or more than {lost_at_most} % in the "
         "last "
         "{last_steps} steps.",
         kOneOf, judge_loses},
        {saturates, "Values above the window", "", "a scale: delayed or current",
         "In more than {saturated_steps} % of the steps amax x scale is {saturated_by} times what the format "
         "holds, or more; under delayed scaling in {saturated_least} steps at least.",
         kOneOf, judge_saturates},
        {all_zero, "A tensor of zeros", "6", "keep the scale where the amax is 0",
         "All elements are 0 in a step after the first.", kBeside, judge_all_zero},
        {headroom, "A margin that is not needed", "9", "margin 0",
         "The scales that the run logged leave more than {headroom_binades} binades free above the amax, "
         "always "
         "about the same number.",
         kBeside, judge_headroom},
        {fixed_scale, "The scale of weights stands still", "3?", "FP32 master weights",
         "The scale of a weight is the same in the last {fixed_steps} steps, though its amax moves.", kBeside,
         judge_fixed_scale},
        {resumed, "The scale is back at 1", "", "save the amax history with the checkpoint",
         "The scale that the run logged becomes 1 after it was another number.", kBeside, judge_resumed},
    };
    return kRules;
}

std::string condition_of(const RunRule& rule, const Thresholds& t) {
    return fmt::format(
        fmt::runtime(rule.when), fmt::arg("lost_at_most", t.lost_at_most), fmt::arg("mean_lost", t.mean_lost),
        fmt::arg("spike", t.spike), fmt::arg("spike_steps", t.spike_steps),
        fmt::arg("spike_back", t.spike_back), fmt::arg("spike_mean_lost", t.spike_mean_lost),
        fmt::arg("outlier_binades", t.outlier_binades), fmt::arg("grown_binades", t.grown_binades),
        fmt::arg("unseen_spike", t.unseen_spike), fmt::arg("saturated_by", t.saturated_by),
        fmt::arg("saturated_steps", t.saturated_steps), fmt::arg("saturated_least", kSaturated),
        fmt::arg("headroom_binades", t.headroom_binades), fmt::arg("fixed_steps", t.fixed_steps),
        fmt::arg("last_steps", kLastSteps));
}

}  // namespace fp8lab
