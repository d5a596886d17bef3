#include "labs/serve/model_kv.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fp8lab::serve {

const KvRow* Kv::row(std::string_view scheme) const {
    const auto found = std::ranges::find(rows, scheme, [](const KvRow& each) { return each.scheme->id; });
    return found == rows.end() ? nullptr : &*found;
}

double Kv::first_saturated() const {
    const auto first = std::ranges::find_if(saturated_pct, [](double pct) { return pct > 0; });
    return first == saturated_pct.end() ? std::numeric_limits<double>::quiet_NaN()
                                        : factors[static_cast<std::size_t>(first - saturated_pct.begin())];
}

// A power of two changes no bit of what scales follow: it is measured once.
KvMaker::Key KvMaker::key(const CacheScheme& scheme, double factor) {
    const bool power = std::exp2(std::round(std::log2(factor))) == factor;
    return {std::string(scheme.id), power && scheme.scales != CacheScales::one ? 1 : factor};
}

const CacheCost& KvMaker::cost(const CacheScheme& scheme, double factor) {
    const Key of = key(scheme, factor);
    if (const auto known = costs_.find(of); known != costs_.end()) return known->second;
    const CacheCost& out = costs_[of] = meter_->cost(scheme, static_cast<float>(of.second));
    points_[of] = {out.divergence, out.saturated_pct_k};
    return out;
}

const KvMaker::Point& KvMaker::point(const CacheScheme& scheme, double factor) {
    const Key of = key(scheme, factor);
    if (const auto known = points_.find(of); known != points_.end()) return known->second;
    Point out;
    out.divergence = meter_->divergence(scheme, static_cast<float>(of.second), &out.saturated_pct);
    return points_[of] = out;
}

Kv KvMaker::operator()(const KvSpec& spec, const table::Told<Kv>& told) {
    if (!meter_ || of_ != spec.network) {
        meter_.reset(), costs_.clear(), points_.clear();
        meter_ = std::make_shared<CacheMeter>(make_tokens(spec.network));
        of_ = spec.network;
    }
    Kv out;
    out.spec = spec, out.data = meter_->model().data().name;
    const std::span<const CacheScheme> all = cache_schemes();
    constexpr std::size_t kFactors = kMostFactor - kLeastFactor + 1;
    std::size_t done = 0;
    const auto tell = [&] {
        told.share(++done, all.size() - 1 + kFactors);
        told.so_far(out);
    };
    const auto add_row = [&](const CacheScheme& scheme) {
        if (scheme.id == "bf16" || out.row(scheme.id)) return;
        out.rows.push_back({&scheme, cost(scheme, spec.k_factor)});
        out.rows.back().cost.largest_k = meter_->largest_k() * spec.k_factor;
        std::ranges::sort(out.rows, {}, [](const KvRow& row) { return row.scheme; });
        tell();
    };
    const CacheScheme& one = find_cache_scheme("one", "cache");
    const CacheScheme& calibrated = find_cache_scheme("tensor", "cache");
    add_row(find_cache_scheme(spec.cache, "cache"));
    add_row(one), add_row(calibrated);
    for (int e = kLeastFactor; e <= kMostFactor; ++e) {
        const double factor = std::exp2(e);
        const Point at_one = point(one, factor);
        out.factors.push_back(factor);
        out.one.push_back(at_one.divergence), out.saturated_pct.push_back(at_one.saturated_pct);
        out.calibrated.push_back(point(calibrated, factor).divergence);
        tell();
    }
    for (const CacheScheme& scheme : all) add_row(scheme);
    return out;
}

}  // namespace fp8lab::serve
