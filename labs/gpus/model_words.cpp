// The sentences of L15.
#include <fmt/format.h>

#include <cmath>

#include "core/base/units.h"
#include "core/ranks/sums.h"
#include "labs/gpus/model.h"
#include "labs/seeded.h"

namespace fp8lab::gpus {

std::string sum_label(std::string_view sum) {
    std::string out(find_rank_sum(sum).label);
    if (const auto comma = out.find(", "); comma != out.npos && sum != "e4m3-wire") out.erase(comma, 1);
    return out;
}

std::string pct(double value) {
    if (!std::isfinite(value)) return "not finite";
    const double size = std::fabs(value);
    return size >= 10  ? fmt::format("{:.0f}", value)
           : size >= 1 ? fmt::format("{:.1f}", value)
                       : screen_number(value, 2);
}

std::string step_title(const Params& params, const Times& times) {
    if (!times.source.known())
        return times.source.problem.empty() ? "No step was recorded, so there are no times"
                                            : times.source.problem;
    const int gpus = params.world();
    const std::string total = fmt::format("{:.2f} ms", times.fp8.total());
    if (gpus == 1) return fmt::format("1 GPU: {} a step, and nothing travels", total);
    return fmt::format("{} GPUs: of {} a step the network shows for {:.2f}", group_thousands(gpus), total,
                       times.fp8.shown());
}

std::string sum_title(const Sums& sums) {
    if (sums.curves.empty()) return {};
    return fmt::format("FP8 sums: {} % off on 64, {} % on {}{}", pct(sums.error_pct("e4m3", 64)),
                       pct(sums.error_pct("e4m3", kSumRanks)), group_thousands(kSumRanks),
                       seed_text(sums.seed));
}

std::string scaling_title(const Params& params, const Times& times, const Recorded& recorded) {
    if (!times.source.known()) return {};
    const std::vector<MeasuredPoint> points = measured_points(params, recorded);
    const auto last = std::ranges::max_element(points, {}, &MeasuredPoint::gpus);
    if (last != points.end())
        return fmt::format("Measured: {:.0f} % on {} GPUs, simulated beyond", last->efficiency_pct,
                           group_thousands(last->gpus));
    return fmt::format("Simulated: {:.0f} % of ideal on {} GPUs", times.efficiency_most_pct,
                       group_thousands(kMostGpus));
}

std::string ranks_title(const Params& params, const Outcome& outcome, const Drift& drift) {
    if (outcome.step == 0) return "Run the training to see what each GPU reads";
    if (params.ranks() == 1) return "One GPU: there is nothing to compare";
    const std::string seed = seed_text(params.seed);
    if (params.has_bad() && outcome.step > kBadStep) {
        if (params.bad == "nan")
            return outcome.first_nonfinite < 0
                       ? fmt::format("NaN on GPU {}: the weights stay finite", kBadRank)
                       : fmt::format("NaN on GPU {}: in the same step it is everywhere", kBadRank);
        if (!std::isfinite(outcome.lost_others_pct)) return fmt::format("GPU {} has a bad batch", kBadRank);
        if (outcome.lost_others_pct < 5)
            return fmt::format("GPU {}’s batch stays there: {} % of x1 becomes 0 on it, {} % on the others",
                               kBadRank, pct(outcome.lost_bad_pct), pct(outcome.lost_others_pct));
        return fmt::format("GPU {}’s batch reaches all: {} % of x1 becomes 0 on every GPU", kBadRank,
                           pct(outcome.lost_others_pct));
    }
    if (!params.sharded())
        return drift.copies.empty()
                   ? "Every GPU updates all weights, so no weight is sent"
                   : fmt::format("Own random numbers: copies of the weights drift {} % apart{}",
                                 pct(drift.most_own_pct()), seed);
    if (params.has_bad())
        return fmt::format("GPU {} gets a bad batch in step {}", kBadRank, group_thousands(kBadStep));
    if (outcome.values_equal)
        return fmt::format("All {} read the same weights: {:08x}", params.ranks(), outcome.rows.at(0).values);
    double off = 0;  // of the table's weight
    for (const RankRow& row : outcome.rows) off = std::max(off, row.off_pct);
    return fmt::format("Same bytes, {} scales: the GPUs read w2 up to {} % off{}", params.ranks(), pct(off),
                       seed);
}

std::string times_words(const Params& params, const Times& times, const Recorded& recorded) {
    if (!times.source.known()) return {};
    for (const MeasuredPoint& point : measured_points(params, recorded))
        if (point.gpus == params.world())
            return fmt::format("simulated; FP8 recorded on {} {}: {:.2f} ms", point.gpus,
                               short_gpu_name(point.gpu), point.median_ms);
    return "simulated from one GPU’s parts and NCCL’s times";
}

}  // namespace fp8lab::gpus
