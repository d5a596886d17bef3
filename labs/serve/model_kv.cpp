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

const CacheCost& KvMaker::cost(const CacheScheme& scheme, double factor) {
    const auto [place, added] = costs_.try_emplace({std::string(scheme.id), factor});
    if (added) {
        try {
            place->second = meter_->cost(scheme, static_cast<float>(factor));
        } catch (...) {
            costs_.erase(place);
            throw;
        }
        points_[place->first] = {place->second.divergence, place->second.saturated_pct_k};
    }
    return place->second;
}

const KvMaker::Point& KvMaker::point(const CacheScheme& scheme, double factor) {
    const std::pair key{std::string(scheme.id), factor};
    if (const auto known = points_.find(key); known != points_.end()) return known->second;
    Point out;
    out.divergence = meter_->divergence(scheme, static_cast<float>(factor), &out.saturated_pct);
    return points_[key] = out;
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
    constexpr std::size_t kSteps = 2, kFactors = kMostFactor - kLeastFactor + 1;
    std::size_t done = 0;
    const auto tell = [&] {
        told.share(++done, all.size() + kSteps * kFactors);
        told.so_far(out);
    };
    const auto add_row = [&](const CacheScheme& scheme) {
        if (scheme.id == "bf16" || out.row(scheme.id)) return;
        out.rows.push_back({&scheme, cost(scheme, spec.k_factor)});
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
