// What a cache scheme costs a trained model: its logits with K and V in the scheme against those in FP32, over its held-out
// tokens, everything else in FP32.
#pragma once

#include "core/inference/serve/engine.h"

namespace fp8lab {

struct CacheCost {
    double divergence = 0, k_divergence = 0,
           v_divergence = 0;  // nats, with both, K alone and V alone in the scheme
    double saturated_pct_k = 0;
    double largest_k = 0, largest_v = 0;  // magnitudes of the calibration, K with its factor
};
// Calibrated scales are of K times k_factor, too. Throws usage_error: k_factor is not above 0.
CacheCost cache_cost(const std::shared_ptr<TokenModel>& model, const CacheScheme& scheme, float k_factor = 1);

}  // namespace fp8lab
