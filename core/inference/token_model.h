// A trained model of tokens (core/nn/models) for inference at low precision: the operands of its linear layers and of
// its head are cast where their GEMMs read them. The products inside attention, the norms, the embedding and the residual
// stream stay in FP32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/inference/calibration.h"
#include "core/inference/lowering.h"
#include "core/nn/model.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab {

// Held-out sequences of the task that the model was trained on.
struct TokenData {
    TokenBatch test;
    Matrix<float> targets = {};  // one-hot, a row per token that counts
    std::string name = {};       // "4096 held-out tokens"
};

// Whether its input is the output of a norm, whose gains can take a scale.
bool reads_norm(const LayerSize& layer);

class TokenModel {
  public:
    static constexpr int kTestBatches = 8, kTrainSequences = 32;  // batches of the task; per batch

    // `spec`: of the training, on a task of tokens; `batches` of its held-out ones. Throws usage_error("--data", ...) for
    // another task, and where the held-out tokens have more than kMostLogits logits, several copies of which are in memory.
    static constexpr std::size_t kMostLogits = std::size_t{1} << 27;
    TokenModel(const TrainSpec& spec, const ArmCheckpoint& checkpoint, int batches = kTestBatches);

    const std::vector<LayerSize>& layers() const { return layers_; }  // in the order of the forward pass
    const TokenData& data() const { return data_; }
    const TrainSpec& spec() const { return spec_; }
    const Model<float>& model() const { return *model_; }

    // For passes with casts of one's own (token_mix.h): the logits of every held-out token, valid until the next pass;
    // and of such logits the rows of the tokens that count.
    const Matrix<float>& pass(GemmCasts<float>& casts) { return model_->forward(data_.test, casts); }
    Matrix<float> scored(const Matrix<float>& logits) const;

    // The logits of the tokens that count, (rows of targets, vocabulary), with every other product in FP32. One format
    // per layer. Throws usage_error as run_lowered().
    Lowered run(const Mix& mix, const StaticScales& scales = {}, bool with_losses = false);
    // The logits in FP32.
    Matrix<float> forward();
    // As of a multilayer perceptron (calibration.h), over batches of 32 training sequences. Throws usage_error besides: a
    // percentile of more than kMostKept values, which all have to be in memory.
    static constexpr std::size_t kMostKept = std::size_t{1} << 28;
    std::vector<float> calibrated_amaxes(const Calibration& calibration);
    // SmoothQuant, as smoothed() of rescale.h, of the layers that read a norm (qkv, gate_up, head): the norm's gain
    // takes the division, as in the paper; of a tied head only the weights that its GEMM reads are multiplied. From
    // then on everything is of the model with these scales; forward() stays as it is to the bit. The inputs are those
    // of `batches` batches of 32 training sequences. Throws usage_error unless 0 <= alpha <= 1.
    void smooth(double alpha, std::size_t batches);

    // What the casts of a pass are connected to.
    struct Wiring {
        std::vector<int> layer_of_gemm = {};  // -1: a product inside attention
        // Per layer, empty: none. x / s and w * s, channel by channel.
        std::vector<std::vector<float>> smoothing = {};
        SwigluForm swiglu = SwigluForm::plain;
    };

    const Wiring& wiring() const { return wiring_; }

    // For lowering with a method (methods/lowered_tokens.h): the weights of a layer, (out, in); the model, whose forward()
    // takes other batches and casts too; and a copy of it.
    Matrix<float> weights(std::size_t layer) const;
    Model<float>& writable() { return *model_; }
    std::unique_ptr<Model<float>> copy();

  private:
    void calibrate(const Calibration& calibration, GemmCasts<float>& casts);

    TrainSpec spec_;
    Wiring wiring_;
    std::unique_ptr<Model<float>> model_;
    std::vector<LayerSize> layers_;
    TokenData data_;
};

}  // namespace fp8lab
