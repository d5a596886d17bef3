// What a router chooses where it, or the layers before it, compute in fewer bits, against the same trained mixture of experts
// (core/nn/models/moe/model.h) with layers in BF16 and a router that is not cast. A token is changed where the set of its
// experts differs; the order of the set does not count.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/inference/score.h"
#include "core/nn/models/moe/model.h"
#include "core/nn/trainer.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab {

// "mxfp8" and "bf16" as one recipe: "mxfp8:router=bf16".
std::string routed_recipe(const std::string& layers, const std::string& router);

// One value for each block in vectors named `blocks`.
struct RoutingChange {
    std::vector<double> changed_pct_blocks;
    // Mean of sum p (log p - log q) over the held-out tokens, in nats, p of the reference; and the same where every token
    // keeps the reference's experts, whose gates are computed anew.
    double divergence = 0, divergence_kept = 0;
    std::vector<std::vector<bool>> changed_blocks;  // of each token

    double changed_pct() const;       // mean of the blocks
    double choice_share_pct() const;  // of the divergence that is gone with the experts kept
};

class RoutingStudy {
  public:
    // `spec`: of the training of a model "moe", of whose task so many held-out batches are read. Throws usage_error: another
    // model.
    RoutingStudy(const TrainSpec& spec, const ArmCheckpoint& checkpoint, int batches = kHeldOutBatches);

    // With the recipe's casts. A recipe with delayed scales reads as at its start.
    RoutingChange change(const Recipe& recipe);

    std::size_t tokens() const { return choices_.front().size() / shape_.active; }
    const MoeShape& shape() const { return shape_; }
    // Of the reference, a value for each token: the score, p + bias, of its last expert minus that of the next one.
    std::vector<float> margins(std::size_t block) const { return margins_[block]; }
    double margin_below_pct(double limit) const;  // of tokens, over all blocks
    // Tokens of each expert among the first `tokens` held-out ones.
    std::vector<int> rows(std::size_t block, std::size_t tokens) const;

    // The path of a token to its experts and back: |y - y_reference| / |y_reference| of the layer's output in per cent, for each
    // block. What enters the layer and the choices are the reference's; GEMMs are cast by `gemm`, the rows that are sent to an
    // expert by `sent`, and those that come back by `back`, as activations of these recipes; bf16: they are not cast.
    std::vector<double> hop_error_pct(const Recipe& gemm, const Recipe& sent, const Recipe& back);

  private:
    using Choices = std::vector<std::uint16_t>;  // tokens * active
    struct Pass {
        Matrix<float> logits;
        std::vector<Choices> choices;  // of the blocks
    };
    // Every held-out batch with these choices, none: the model's own.
    Pass run(const Recipe& recipe, const std::vector<Choices>* kept);
    void fix(const std::vector<Choices>* kept, std::size_t batch);
    void note_margins(std::size_t block);

    TrainSpec spec_;
    MoeShape shape_;
    Moe<float> model_;
    std::vector<Batch> batches_;
    std::vector<Choices> choices_;  // of the reference, as the next
    std::vector<std::vector<float>> margins_;
    std::vector<std::vector<Matrix<float>>> entering_, leaving_;  // by block and batch
    Reference reference_;
};

}  // namespace fp8lab
