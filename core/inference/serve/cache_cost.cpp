#include "core/inference/serve/cache_cost.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace fp8lab {
namespace {

double largest(const std::vector<std::vector<float>>& blocks) {
    float most = 0;
    for (const auto& heads : blocks) most = std::max(most, std::ranges::max(heads));
    return static_cast<double>(most);
}

}  // namespace

CacheMeter::CacheMeter(std::shared_ptr<TokenModel> model)
    : model_(std::move(model)),
      reference_(reference_of(model_->forward(), true, {})),
      amaxes_(calibrated_cache(*model_)) {}

double CacheMeter::divergence(const CacheScheme& scheme, float k_factor, bool k, bool v,
                              double* saturated_pct_k) {
    if (!(k_factor > 0)) throw usage_error("K's factor", "is above 0");
    Engine engine(model_, {.cache = &scheme,
                           .k = k,
                           .v = v,
                           .k_factor = k_factor,
                           .amaxes = is_calibrated(scheme) ? &amaxes_ : nullptr});
    const double nats = divergence_of(reference_, model_->scored(engine.forward(model_->data().test)));
    if (saturated_pct_k) *saturated_pct_k = engine.saturated_pct_k();
    return nats;
}

double CacheMeter::divergence(const CacheScheme& scheme, float k_factor, double* saturated_pct_k) {
    return divergence(scheme, k_factor, true, true, saturated_pct_k);
}

double CacheMeter::largest_k() const { return largest(amaxes_.k); }

CacheCost CacheMeter::cost(const CacheScheme& scheme, float k_factor) {
    CacheCost out{.largest_k = largest_k() * static_cast<double>(k_factor), .largest_v = largest(amaxes_.v)};
    out.divergence = divergence(scheme, k_factor, true, true, &out.saturated_pct_k);
    out.k_divergence = divergence(scheme, k_factor, true, false, nullptr);
    out.v_divergence = divergence(scheme, k_factor, false, true, nullptr);
    return out;
}

}  // namespace fp8lab
