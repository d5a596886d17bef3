// A trained model of tokens (core/nn/models) for inference at low precision: the operands of its linear layers and of
// its head are cast where their GEMMs read them. The products inside attention, the norms, the embedding and the residual
// stream stay in FP32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/inference/lowering.h"
#include "core/nn/model.h"
#include "core/train/checkpoint.h"

namespace fp8lab {

// Held-out sequences of the task that the model was trained on.
struct TokenData {
    TokenBatch test;
    Matrix<float> targets = {};  // one-hot, a row per token that counts
    std::string name = {};       // "4096 held-out tokens"
};

class TokenModel {
  public:
    static constexpr int kTestBatches = 8, kTrainSequences = 32;  // batches of the task; per batch

    // `spec`: of the training, with a text or a copying task. Throws usage_error("--data", ...) for another task.
    TokenModel(const TrainSpec& spec, const ArmCheckpoint& checkpoint);

    const std::vector<LayerSize>& layers() const { return layers_; }  // in the order of the forward pass
    const TokenData& data() const { return data_; }

    // The logits of the tokens that count, (rows of targets, vocabulary), with every other product in FP32. One format
    // per layer. Throws usage_error as run_lowered().
    Lowered run(const Mix& mix, const StaticScales& scales = {}, bool with_losses = false);
    // In FP32.
    Matrix<float> forward();
    // The largest |input| of each layer over `batches` batches of 32 training sequences, in FP32.
    std::vector<float> calibrated_amaxes(std::size_t batches);

  private:
    Matrix<float> scored(const Matrix<float>& logits) const;

    TrainSpec spec_;
    SwigluForm swiglu_;
    std::unique_ptr<Model<float>> model_;
    std::vector<LayerSize> layers_;
    std::vector<int> layer_of_gemm_;  // -1: a product inside attention
    TokenData data_;
};

}  // namespace fp8lab
