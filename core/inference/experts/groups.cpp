#include "core/inference/experts/groups.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/rng.h"

namespace fp8lab {

std::vector<int> draw_groups(const GroupDraw& draw) {
    const auto experts = static_cast<std::size_t>(draw.experts),
               active = static_cast<std::size_t>(draw.active);
    Rng popularity(draw.seed, 0), noise(draw.seed, 1);
    std::vector<double> log_p(experts), score(experts);
    for (double& p : log_p) p = draw.skew * static_cast<double>(popularity.normal());
    std::vector<int> rows(experts), order(experts);
    for (int t = 0; t < draw.tokens; ++t) {
        for (std::size_t e = 0; e < experts; ++e)
            score[e] = log_p[e] - std::log(-std::log1p(-(noise.uniform() + 0x1p-54)));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(active),
                                 std::ranges::greater(),
                                 [&](int e) { return score[static_cast<std::size_t>(e)]; });
        for (std::size_t k = 0; k < active; ++k) ++rows[static_cast<std::size_t>(order[k])];
    }
    return rows;
}

int padded_rows(int rows, int multiple) { return (rows + multiple - 1) / multiple * multiple; }

GroupShape group_shape(const std::vector<int>& rows, int multiple) {
    double real = 0, padded = 0;
    for (const int n : rows) real += n, padded += padded_rows(n, multiple);
    const auto count = static_cast<double>(rows.size());
    return {.zeros_pct = padded > 0 ? 100 * (padded - real) / padded : 0,
            .empty_pct = 100 * static_cast<double>(std::ranges::count(rows, 0)) / count,
            .largest_over_mean = real > 0 ? std::ranges::max(rows) / (real / count) : 0};
}

}  // namespace fp8lab
