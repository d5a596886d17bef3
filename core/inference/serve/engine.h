// A model of tokens as a server runs it: its weights, and if wanted the inputs of its layers, in a format, and its keys
// and values in a cache scheme. Products inside attention, norms and the residual stream are in FP32.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/inference/serve/cache_scheme.h"
#include "core/inference/token_model.h"

namespace fp8lab {

// The largest magnitudes of K and V, per block and head, over training sequences: those of the first `batches` batches of
// 32.
struct CacheAmaxes {
    std::vector<std::vector<float>> k, v;
};
CacheAmaxes calibrated_cache(TokenModel& model, std::size_t batches = 4);

struct EngineSpec {
    const LowFormat* format = nullptr;    // of the weights; none: FP32 everywhere
    bool both = true;                     // the inputs of the layers are in it too; otherwise in BF16
    const CacheScheme* cache = nullptr;   // none: FP32
    bool k = true, v = true;              // what of the cache is in the scheme
    float k_factor = 1;                   // K times this and Q divided by it: scores stay as they are
    const CacheAmaxes* amaxes = nullptr;  // of calibrated schemes, without k_factor
};

// Bytes of a cache in which every sequence has the whole context, and of an engine's weights.
double cache_memory(const TokenModel& model, std::size_t sequences);
double weights_memory(const TokenModel& model);

// Calls both, one beside the other where there are two threads.
void run_both(const std::function<void()>& first, const std::function<void()>& second);

class Engine {
  public:
    // `model` is used until the end, and by one engine at a time (but detach()). Throws usage_error: a calibrated scheme without amaxes.
    Engine(std::shared_ptr<TokenModel> model, const EngineSpec& spec);
    ~Engine();
    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;

    // From now on it computes with a copy of the parameters and has logits of its own: it may run beside other engines of the
    // model.
    void detach();

    const TokenModel& model() const;
    // Weights are cast once, so that a token costs no cast of them. As Model::decode() and Model::forward(): the logits are valid
    // until the next call of any engine of the model that is not detached.
    const Matrix<float>& decode(const TokenBatch& batch, KvState<float>& state);
    const Matrix<float>& forward(const TokenBatch& batch);
    // Percent of the elements of K that saturated, over all casts since the start; 0: no cache scheme.
    double saturated_pct_k() const;
    // Per weight, scales included; 32 without a format.
    double bits() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// `count` pieces of `length` held-out tokens of the model's task, at places that the seed draws. Throws usage_error where the
// context is shorter.
TokenBatch held_out_pieces(const TokenModel& model, std::size_t count, std::size_t length,
                           std::uint64_t seed);

// logits / temperature as probabilities; temperature 0: the largest logit's is 1.
void probabilities(std::span<const float> logits, double temperature, std::span<double> p);
// The first index at which the sum of p up to it is above u, 0 <= u < 1; the last that is not 0 where rounding leaves none.
int drawn(std::span<const double> p, double u);

}  // namespace fp8lab
