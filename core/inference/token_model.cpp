#include "core/inference/token_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/scaling/recipe.h"

namespace fp8lab {
namespace {

// The casts of a mix. A weight and an input of a layer are kept until the end of the pass.
class MixCasts final : public GemmCasts<float> {
  public:
    MixCasts(const ModelPlan& plan, const std::vector<int>& layer_of_gemm, SwigluForm swiglu, const Mix& mix,
             const StaticScales& scales, std::vector<LayerLoss>* losses)
        : plan_(plan),
          layer_of_gemm_(layer_of_gemm),
          swiglu_(swiglu),
          mix_(mix),
          scales_(scales),
          losses_(losses),
          w_(mix.weights.size()),
          x_(mix.weights.size()) {}

    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) override {
        const OperandSpec& tensor = plan_.tensor(id);
        const int at = layer_of_gemm_[tensor.gemm];
        if (at < 0) return value;
        const auto l = static_cast<std::size_t>(at);
        LayerLoss* const loss = losses_ ? &(*losses_)[l] : nullptr;
        if (tensor.tensor == TensorClass::w)
            return w_[l] = lowered_weights(value, *mix_.weights[l], loss ? &loss->w : nullptr);
        const float amax = scales_.amaxes.empty() ? 0 : std::ldexp(scales_.amaxes[l], scales_.margin);
        return x_[l] = lowered_input(value, *mix_.activations[l], amax, loss ? &loss->a : nullptr);
    }
    void round_output(Matrix<float>&) override {}
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return swiglu_; }

  private:
    const ModelPlan& plan_;
    const std::vector<int>& layer_of_gemm_;
    SwigluForm swiglu_;
    const Mix& mix_;
    const StaticScales& scales_;
    std::vector<LayerLoss>* losses_;
    std::vector<Matrix<float>> w_, x_;
};

// Every product in FP32, and the amax of each layer's input.
class AmaxCasts final : public GemmCasts<float> {
  public:
    AmaxCasts(const ModelPlan& plan, const std::vector<int>& layer_of_gemm, SwigluForm swiglu,
              std::size_t layers)
        : amaxes(layers), plan_(plan), layer_of_gemm_(layer_of_gemm), swiglu_(swiglu) {}

    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) override {
        const OperandSpec& tensor = plan_.tensor(id);
        const int at = layer_of_gemm_[tensor.gemm];
        if (at >= 0 && tensor.tensor == TensorClass::x) {
            float& largest = amaxes[static_cast<std::size_t>(at)];
            largest = std::max(largest, amax(value.values));
        }
        return value;
    }
    void round_output(Matrix<float>&) override {}
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return swiglu_; }

    std::vector<float> amaxes;

  private:
    const ModelPlan& plan_;
    const std::vector<int>& layer_of_gemm_;
    SwigluForm swiglu_;
};

TokenData held_out_of(const TrainSpec& spec) {
    const auto task = make_task(spec);
    TokenData out;
    Batch batch;
    for (int i = 0; i < TokenModel::kTestBatches; ++i) {
        if (!task->held_out(i, batch) || !std::holds_alternative<TokenBatch>(batch))
            throw usage_error("--data", "no data: this model's task has no held-out tokens");
        const TokenBatch& part = std::get<TokenBatch>(batch);
        out.test.context = part.context, out.test.sequences += part.sequences;
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(out.test.tokens, part.tokens), append(out.test.targets, part.targets);
        append(out.test.scored, part.scored);
    }
    std::size_t rows = 0;
    for (std::size_t i = 0; i < out.test.size(); ++i) rows += out.test.is_scored(i) ? 1 : 0;
    out.name = fmt::format("{} held-out tokens", rows);
    return out;
}

}  // namespace

TokenModel::TokenModel(const TrainSpec& spec, const ArmCheckpoint& checkpoint)
    : spec_(spec),
      swiglu_(checkpoint.recipe.empty() ? SwigluForm::plain : parse_recipe(checkpoint.recipe).act),
      model_(make_model(spec)),
      data_(held_out_of(spec)) {
    set_parameters(*model_, checkpoint);
    const ModelPlan& plan = model_->plan();
    layer_of_gemm_.assign(plan.gemms.size(), -1);
    for (const ParameterSpec& parameter : plan.parameters) {
        if (!parameter.operand) continue;
        const std::size_t gemm = plan.tensor(*parameter.operand).gemm;
        layer_of_gemm_[gemm] = 0;  // numbered below, in the order of the GEMMs
    }
    for (std::size_t g = 0; g < plan.gemms.size(); ++g) {
        if (layer_of_gemm_[g] < 0) continue;
        layer_of_gemm_[g] = static_cast<int>(layers_.size());
        for (const ParameterSpec& parameter : plan.parameters)
            if (parameter.operand && plan.tensor(*parameter.operand).gemm == g)
                layers_.push_back({plan.gemms[g].name, parameter.shape.at(0), parameter.shape.at(1)});
    }
    const std::size_t vocabulary = forward().cols;
    std::vector<int> right;
    for (std::size_t i = 0; i < data_.test.size(); ++i)
        if (data_.test.is_scored(i)) right.push_back(data_.test.targets[i]);
    data_.targets = Matrix<float>(right.size(), vocabulary);
    for (std::size_t r = 0; r < right.size(); ++r)
        data_.targets.values[r * vocabulary + static_cast<std::size_t>(right[r])] = 1;
}

Matrix<float> TokenModel::scored(const Matrix<float>& logits) const {
    Matrix<float> out;
    out.cols = logits.cols;
    for (std::size_t r = 0; r < logits.rows; ++r) {
        if (!data_.test.is_scored(r)) continue;
        std::ranges::copy(logits.row(r), std::back_inserter(out.values));
        ++out.rows;
    }
    return out;
}

Lowered TokenModel::run(const Mix& mix, const StaticScales& scales, bool with_losses) {
    const std::size_t n = layers_.size();
    if (mix.weights.size() != n || mix.activations.size() != n)
        throw usage_error("mix", "must have one format per layer");
    if (!scales.amaxes.empty() && scales.amaxes.size() != n)
        throw usage_error("scales", "must have one amax per layer");
    Lowered out;
    if (with_losses) out.layers.resize(n);
    MixCasts casts(model_->plan(), layer_of_gemm_, swiglu_, mix, scales, with_losses ? &out.layers : nullptr);
    out.y = scored(model_->forward(data_.test, casts));
    return out;
}

Matrix<float> TokenModel::forward() {
    AmaxCasts casts(model_->plan(), layer_of_gemm_, swiglu_, layers_.size());
    return scored(model_->forward(data_.test, casts));
}

std::vector<float> TokenModel::calibrated_amaxes(std::size_t batches) {
    TrainSpec spec = spec_;
    spec.batch = kTrainSequences;
    const auto task = make_task(spec);
    AmaxCasts casts(model_->plan(), layer_of_gemm_, swiglu_, layers_.size());
    Batch batch;
    for (std::size_t i = 0; i < batches; ++i) {
        task->draw(static_cast<int>(i), batch);
        model_->forward(batch, casts);
    }
    return casts.amaxes;
}

}  // namespace fp8lab
