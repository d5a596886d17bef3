#include "core/plan/grouped.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/error.h"

namespace fp8lab::plan {
namespace {

constexpr int kMany = 64;  // groups by whose times the bandwidth is told

// Of one group: what grows with its rows, and what does not.
struct Bytes {
    double of_row = 0, fixed = 0;
};
Bytes bytes_of(const GridGroup& g) {
    const double element = g.kind == "bf16" ? 2 : 1, n = g.n, k = g.k;
    if (g.product == "wgrad") return {(n + k) * element, n * k * 4};
    const double in = g.product == "fprop" ? k : n, out = g.product == "fprop" ? n : k;
    return {in * element + out * 2, n * k * element};
}
double bytes(const GridGroup& g) {
    const Bytes one = bytes_of(g);
    return g.groups * (one.fixed + g.m * one.of_row);
}

constexpr double kTera = 1e12, kMilli = 1e-3;

}  // namespace

GroupedGemms::GroupedGemms(const GemmGrid& grid) {
    int many = 0;
    for (const GridGroup& g : grid.groups) {
        if (!g.ran()) continue;
        times_.push_back({&g, 0});
        if (g.groups != kMany) continue;
        tb_s_ += bytes(g) / (g.median_ms * kMilli) / kTera;
        ++many;
    }
    if (many == 0 || !find(1, "fprop", "bf16"))
        throw usage_error("recording", "has no grouped GEMMs: bench gemm --grid measures them");
    tb_s_ /= many;
    for (GroupedTime& time : times_) {
        const GridGroup& g = *time.recorded;
        const GroupedTime* one = find(1, g.product, g.kind);
        time.bound_ms = std::max(one ? one->recorded->median_ms : 0, bytes(g) / (tb_s_ * kTera) / kMilli);
    }
}

const GroupedTime* GroupedGemms::find(int groups, std::string_view product, std::string_view kind) const {
    const auto hit = std::ranges::find_if(times_, [&](const GroupedTime& time) {
        const GridGroup& g = *time.recorded;
        return g.groups == groups && g.product == product && g.kind == kind;
    });
    return hit == times_.end() ? nullptr : &*hit;
}

std::vector<int> GroupedGemms::groups() const {
    std::set<int> all;
    for (const GroupedTime& time : times_) all.insert(time.recorded->groups);
    return {all.begin(), all.end()};
}

double GroupedGemms::speedup(int groups, std::string_view product) const {
    const GroupedTime *bf16 = find(groups, product, "bf16"), *fp8 = find(groups, product, "fp8");
    if (!bf16 || !fp8) return std::numeric_limits<double>::quiet_NaN();
    return bf16->recorded->median_ms / fp8->recorded->median_ms;
}

double GroupedGemms::ridge_rows(std::string_view product, std::string_view kind) const {
    const GroupedTime* one = find(1, product, kind);
    if (!one) return std::numeric_limits<double>::quiet_NaN();
    const GridGroup& g = *one->recorded;
    const Bytes of = bytes_of(g);
    const double per_second = tb_s_ * kTera, row_s = g.median_ms * kMilli / g.m;  // of a row at full rate
    return of.fixed / per_second / (row_s - of.of_row / per_second);
}

}  // namespace fp8lab::plan
