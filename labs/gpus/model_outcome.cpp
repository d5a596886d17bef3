// What the trainings come to at the step that was asked for.
#include <cmath>
#include <numeric>

#include "labs/gpus/model.h"

namespace fp8lab::gpus {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Of values[from, to), as far as they are there; NaN: none is.
double mean(const std::vector<double>& values, int from, int to) {
    from = std::max(from, 0), to = std::min(to, static_cast<int>(values.size()));
    if (from >= to) return kUnknown;
    return std::accumulate(values.begin() + from, values.begin() + to, 0.0) / (to - from);
}
double tail(const std::vector<double>& values, int step) { return mean(values, step - kTailSteps, step); }
double gap(double own, double other) { return 100 * (own / other - 1); }

// The same of a number of one rank.
template <class Of>
double mean_of_rank(const ArmSeries& arm, std::size_t rank, int from, int to, const Of& of) {
    std::vector<double> values;
    for (int step = from; step < std::min(to, arm.steps()); ++step)
        if (const auto& ranks = arm.ranks.at(static_cast<std::size_t>(step)); rank < ranks.size())
            values.push_back(of(ranks[rank]));
    return mean(values, 0, static_cast<int>(values.size()));
}
double lost_of(const RankRecord& r) {
    return r.watched ? static_cast<double>(r.watched->underflow_pct) : kUnknown;
}
double amax_of(const RankRecord& r) { return r.watched ? static_cast<double>(r.watched->amax) : kUnknown; }
double scale_of(const RankRecord& r) { return r.watched ? static_cast<double>(r.watched->scale) : kUnknown; }

void read_bad(const ArmSeries& arm, int step, Outcome& out) {
    const int after = kBadStep + 1;
    out.lost_bad_pct = out.lost_others_pct = out.next5_ratio = kUnknown;
    const bool past = step > after && arm.steps() > after;
    // Before the bad step the rows are of the newest one.
    const int from = past ? after : step - 1, to = past ? std::min(step, after + kBadSteps) : step;
    double others = 0;
    for (RankRow& row : out.rows) {
        const auto rank = static_cast<std::size_t>(row.rank);
        row.lost_pct = mean_of_rank(arm, rank, from, to, lost_of);
        row.loss = mean_of_rank(arm, rank, from, past ? std::min(step, after + 5) : to,
                                [](const RankRecord& r) { return r.loss; });
        row.amax = mean_of_rank(arm, rank, past ? kBadStep : from, past ? after : to, amax_of);
        row.scale = mean_of_rank(arm, rank, from, from + 1, scale_of);
        if (row.rank != kBadRank) others += row.lost_pct / static_cast<double>(out.rows.size() - 1);
    }
    if (!past || out.rows.size() <= kBadRank) return;
    out.lost_bad_pct = out.rows.at(kBadRank).lost_pct, out.lost_others_pct = others;
    out.next5_ratio = mean(arm.loss, after, std::min(step, after + 5)) / tail(arm.loss, kBadStep);
}

void read_states(const ArmSeries& arm, std::size_t weight, Outcome& out) {
    out.rows.resize(arm.states.size());
    for (std::size_t r = 0; r < arm.states.size(); ++r) {
        const RankState& state = arm.states[r];
        RankRow& row = out.rows[r];
        row.rank = static_cast<int>(r), row.finite = state.finite;
        if (!state.bytes_crc32 || weight >= state.weights.size()) continue;
        row.bytes = *state.bytes_crc32, row.values = *state.values_crc32;
        const RankWeight& w = state.weights[weight];
        row.amax = static_cast<double>(w.amax), row.scale = static_cast<double>(w.scale),
        row.off_pct = w.off_pct;
        out.has_states = true;
        for (const RankWeight& each : state.weights) out.off_pct = std::fmax(out.off_pct, each.off_pct);
    }
    if (!out.has_states) return;
    const auto equal = [&](auto member) {
        return std::ranges::all_of(out.rows,
                                   [&](const RankRow& row) { return row.*member == out.rows[0].*member; });
    };
    out.bytes_equal = equal(&RankRow::bytes), out.values_equal = equal(&RankRow::values);
}

void compare_steps(const ArmSeries& chosen, const ArmSeries& reference, int step, Outcome& out) {
    const auto steps = static_cast<std::size_t>(std::min({step, chosen.steps(), reference.steps()}));
    for (std::size_t s = 0; s < std::min<std::size_t>(steps, kSameSteps); ++s) {
        const double off = std::fabs(gap(chosen.loss[s], reference.loss[s]));
        out.loss_off_pct = s == 0 ? off : std::max(out.loss_off_pct, off);
    }
    for (std::size_t s = kCheckEvery; s <= steps; s += kCheckEvery)
        if (const double spread = chosen.spread_pct[s - 1]; !std::isnan(spread))
            out.checks_equal = out.checks_equal.value_or(true) && spread == 0;
}

// Where kWeight stands among the weights of a RankState.
std::size_t weight_index(const ArmSeries& arm, const Params& params) {
    const auto id = model_plan(task_spec("current", params.seed)).find(kWeight);
    if (arm.states.empty()) return 0;
    const auto& weights = arm.states.front().weights;
    return static_cast<std::size_t>(std::ranges::find(weights, *id, &RankWeight::id) - weights.begin());
}

}  // namespace

Outcome outcome_of(const Params& params, const Training& training) {
    Outcome out;
    out.tail = out.gap_pct = out.reference_tail = out.usual_tail = out.usual_gap_pct = kUnknown;
    out.gradient_error_pct = out.spread_pct = out.alone_pct = out.lost_bad_pct = out.lost_others_pct =
        kUnknown;
    out.next5_ratio = out.loss_off_pct = kUnknown;
    if (training.arms().empty()) return out;
    const ArmSeries& chosen = training.arms().back();
    const ArmSeries& usual = training.arms().at(1);
    out.step = std::min(training.step(), params.step);
    out.reference_tail = tail(training.arms().front().loss, out.step);
    out.usual_tail = tail(usual.loss, out.step), out.tail = tail(chosen.loss, out.step);
    out.gap_pct = gap(out.tail, out.reference_tail),
    out.usual_gap_pct = gap(out.usual_tail, out.reference_tail);
    out.gradient_error_pct = tail(chosen.sum_error_pct, out.step);
    compare_steps(chosen, training.arms().front(), out.step, out);
    read_states(chosen, weight_index(chosen, params), out);
    if (out.has_states && out.step > 0)
        out.spread_pct = chosen.spread_pct.at(static_cast<std::size_t>(out.step) - 1);
    if (const std::size_t w = weight_index(usual, params);
        !usual.states.empty() && w < usual.states.front().weights.size())
        out.alone_pct = usual.states.front().weights[w].off_pct;
    if (params.has_bad() && out.step > 0) read_bad(chosen, out.step, out);
    if (!chosen.stopped) return out;
    out.first_nonfinite = chosen.stopped->step, out.stopped = to_string(*chosen.stopped);
    return out;
}

}  // namespace fp8lab::gpus
