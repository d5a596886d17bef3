// A trained model of tokens whose layers were lowered by a method (method.h).
#pragma once

#include <memory>
#include <vector>

#include "core/inference/methods/method.h"
#include "core/inference/token_model.h"

namespace fp8lab {

// SmoothQuant and AWQ act on the layers that read a norm (qkv, gate_up, head). A rotation acts on all: the norms' gains are
// taken into the weights behind them, the residual stream and the values of each head are rotated in the weights, once; the
// input of down while the model runs. The rows that a method sees are the tokens of 32 training sequences, or
// the first MethodOptions::rows of them.
class LoweredTokens {
  public:
    // `model` is used until the end. Throws usage_error: lower_layer(), a mix of another number of layers, a
    // rotation of a model that is no transformer.
    LoweredTokens(std::shared_ptr<TokenModel> model, const Mix& mix, const MethodOptions& options);
    ~LoweredTokens();

    const std::vector<LoweredLayer>& layers() const;
    // The logits of the held-out tokens that count (TokenModel::run()). `inputs`: of each layer the cast of its input.
    Matrix<float> run(std::vector<CastStats>* inputs = nullptr);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fp8lab
