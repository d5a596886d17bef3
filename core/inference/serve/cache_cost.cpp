#include "core/inference/serve/cache_cost.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/inference/score.h"

namespace fp8lab {
namespace {

double largest(const std::vector<std::vector<float>>& blocks) {
    float most = 0;
    for (const auto& heads : blocks) most = std::max(most, std::ranges::max(heads));
    return static_cast<double>(most);
}

}  // namespace

CacheCost cache_cost(const std::shared_ptr<TokenModel>& model, const CacheScheme& scheme, float k_factor) {
    if (!(k_factor > 0)) throw usage_error("K's factor", "is above 0");
    const Reference reference = reference_of(model->forward(), true, {});
    const CacheAmaxes amaxes = calibrated_cache(*model);
    CacheCost cost{.largest_k = largest(amaxes.k) * static_cast<double>(k_factor),
                   .largest_v = largest(amaxes.v)};
    const auto divergence = [&](bool k, bool v) {
        Engine engine(model, {.cache = &scheme,
                              .k = k,
                              .v = v,
                              .k_factor = k_factor,
                              .amaxes = is_calibrated(scheme) ? &amaxes : nullptr});
        const double nats = divergence_of(reference, model->scored(engine.forward(model->data().test)));
        if (k) cost.saturated_pct_k = engine.saturated_pct_k();
        return nats;
    };
    cost.divergence = divergence(true, true);
    cost.k_divergence = divergence(true, false);
    cost.v_divergence = divergence(false, true);
    return cost;
}

}  // namespace fp8lab
