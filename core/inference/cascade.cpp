#include "core/inference/cascade.h"

#include <algorithm>

#include "core/base/error.h"

namespace fp8lab {

CascadeRun cascade_run(Matrix<float> low, Matrix<float> high) {
    std::vector<double> margins = margins_of(low);
    return {std::move(low), std::move(high), std::move(margins)};
}

Cascade cascade_of(const Reference& reference, const CascadeRun& run, double tau, double low_cost) {
    if (!reference.classifies)
        throw usage_error("cascade", "needs classes: the margin is a difference of probabilities");
    Matrix<float> y = run.low;
    std::size_t repeated = 0;
    for (std::size_t r = 0; r < y.rows; ++r) {
        if (!(run.margins[r] < tau)) continue;
        std::ranges::copy(run.high.row(r), y.row(r).begin());
        ++repeated;
    }
    const Score score = score_of(reference, y);
    const double share = static_cast<double>(repeated) / static_cast<double>(y.rows);
    return {.repeated_pct = 100 * share,
            .cost = low_cost + share,
            .accuracy_pct = score.accuracy_pct,
            .accuracy_low_pct = accuracy_pct_of(answers_of(run.low), reference.right),
            .accuracy_high_pct = accuracy_pct_of(answers_of(run.high), reference.right),
            .divergence = score.divergence};
}

}  // namespace fp8lab
