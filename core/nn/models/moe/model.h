// A mixture of experts: the transformer (core/nn/models/transformer/model.h) with a feed-forward part whose weights are
// chosen token by token. Of h = norm2(x) of a token
//   p = softmax(W_r h)
//   S = the `active` experts with the largest p_e + bias_e, of equal ones the first
//   y = sum over S of g_e down_e act(gate_up_e h),  g_e = p_e / (sum over S of p)
// and with shared > 0 a part that every token passes besides, `shared` times as wide (arXiv 2401.06066, section 3.2). The
// choice has no gradient: the backward pass goes through the chosen gates.
//
// Balance, so that no expert gets all tokens:
//   bias  after each update bias_e += bias_rate sign(mean rows - rows_e), rows of this step (DeepSeek-V3, arXiv 2412.19437,
//         section 2.1.2). Only choices read it
//   loss  loss_weight E sum_e f_e P_e is added to the loss, f_e the share of rows, P_e the mean of p_e (Fedus et al., "Switch
//         Transformers", arXiv 2101.03961, equations 4 to 6). Records have the loss without it
//   none
//
// GEMMs of a block: those of attention, "1.router" (experts, d), "1.e0.gate_up" (2 ffn, d), "1.e0.down" (d, ffn), ...,
// "1.shared.gate_up", "1.shared.down". The router's operands are cast only where the recipe says so (Recipe::router), and its
// outputs are not rounded. Parameters besides: "1.router.bias", which no gradient changes. Start: as the transformer, the
// router's weights N(0, 0.16^2).
//
// An expert without rows has no GEMM and dW = 0. With empty=roll the delayed scales of its inputs and output gradients see an
// amax of 0, with keep nothing; those of its weights, which are not cast, see nothing.
//
// Options (TrainSpec::sizes): decoder_options(96), experts, active, shared, balance, bias-rate, loss-weight, empty, starve-from,
// starve-to: in the steps from the first to before the second, and in evaluations after these steps, no token may choose expert 1
// (e0).
#pragma once

#include "core/nn/models/decoder/decoder.h"
#include "core/nn/models/moe/experts.h"

namespace fp8lab {

struct MoeShape : TransformerShape {
    std::size_t experts = 8, active = 2, shared = 0;
    Balance balance = Balance::bias;
    double bias_rate = 0.002, loss_weight = 0.01;
    bool empty_rolls = true;
    int starve_from = 0, starve_to = 0;
};

// Throws usage_error naming the rule: as transformer_shape(), active is at most experts, and fewer while one is starved.
MoeShape moe_shape(const TrainSpec& spec);

template <class T>
class Moe final : public Decoder<T> {
  public:
    explicit Moe(const MoeShape& shape);

    void begin_step(int step) override;
    void after_update() override;
    std::optional<std::uint16_t> undecided() const override;

    Experts<T>& experts(std::size_t block) { return *experts_[block]; }  // 0-based
    const Experts<T>& experts(std::size_t block) const { return *experts_[block]; }

  private:
    std::vector<Experts<T>*> experts_;  // of the blocks
};

ModelEntry moe_model();

}  // namespace fp8lab
