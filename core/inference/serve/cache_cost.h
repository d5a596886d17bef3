// What a cache scheme costs a trained model: its logits with K and V in the scheme against those in FP32, over its held-out
// tokens, everything else in FP32.
#pragma once

#include "core/inference/score.h"
#include "core/inference/serve/engine.h"

namespace fp8lab {

struct CacheCost {
    double divergence = 0, k_divergence = 0,
           v_divergence = 0;  // nats, with both, K alone and V alone in the scheme
    double saturated_pct_k = 0;
    double largest_k = 0, largest_v = 0;  // magnitudes of the calibration, K with its factor
};
// Measures schemes on one model, which it uses until the end. Calibrated scales are of K times k_factor, too. Functions throw
// usage_error: k_factor is not above 0.
class CacheMeter {
  public:
    explicit CacheMeter(std::shared_ptr<TokenModel> model);

    CacheCost cost(const CacheScheme& scheme, float k_factor = 1);
    // CacheCost::divergence, and if given its saturated_pct_k, from one pass instead of three.
    double divergence(const CacheScheme& scheme, float k_factor, double* saturated_pct_k = nullptr);
    double largest_k() const;  // of the calibration, without a factor
    const TokenModel& model() const { return *model_; }

  private:
    double divergence(const CacheScheme& scheme, float k_factor, bool k, bool v, double* saturated_pct_k);

    std::shared_ptr<TokenModel> model_;
    Reference reference_;
    CacheAmaxes amaxes_;
};

}  // namespace fp8lab
