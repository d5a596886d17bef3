#include "core/inference/token_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/inference/rescale.h"
#include "core/nn/memory/cpu_memory.h"
#include "core/nn/tasks.h"
#include "core/scaling/recipe.h"

namespace fp8lab {
namespace {

// What a pass reads of a layer: value by value, with the scales of smoothing.
class LayerCasts : public GemmCasts<float> {
  public:
    LayerCasts(const ModelPlan& plan, const TokenModel::Wiring& wiring, std::size_t layers)
        : plan_(plan), wiring_(wiring), scaled_w_(layers), scaled_x_(layers) {}

    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) final {
        const OperandSpec& tensor = plan_.tensor(id);
        const int at = wiring_.layer_of_gemm[tensor.gemm];
        if (at < 0) return value;
        const auto l = static_cast<std::size_t>(at);
        const bool weights = tensor.tensor == TensorClass::w;
        const std::vector<float>& scales = wiring_.smoothing[l];
        if (scales.empty()) return weights ? read_w(l, value) : read_x(l, value);
        Matrix<float>& scaled = (weights ? scaled_w_ : scaled_x_)[l] = value;
        for (std::size_t r = 0; r < scaled.rows; ++r)
            for (std::size_t c = 0; c < scaled.cols; ++c)
                scaled.row(r)[c] = weights ? scaled.row(r)[c] * scales[c] : scaled.row(r)[c] / scales[c];
        return weights ? read_w(l, scaled) : read_x(l, scaled);
    }
    void round_output(Matrix<float>&) final {}
    void round_gradient(Matrix<float>&) final {}
    SwigluForm swiglu() const final { return wiring_.swiglu; }

  protected:
    // The result is valid until the end of the pass.
    virtual const Matrix<float>& read_w(std::size_t, const Matrix<float>& value) { return value; }
    virtual const Matrix<float>& read_x(std::size_t, const Matrix<float>& value) { return value; }

  private:
    const ModelPlan& plan_;
    const TokenModel::Wiring& wiring_;
    std::vector<Matrix<float>> scaled_w_, scaled_x_;
};

class MixCasts final : public LayerCasts {
  public:
    MixCasts(const ModelPlan& plan, const TokenModel::Wiring& wiring, const Mix& mix,
             const StaticScales& scales, std::vector<LayerLoss>* losses)
        : LayerCasts(plan, wiring, mix.weights.size()),
          mix_(mix),
          scales_(scales),
          losses_(losses),
          w_(mix.weights.size()),
          x_(mix.weights.size()) {}

  protected:
    const Matrix<float>& read_w(std::size_t l, const Matrix<float>& value) override {
        return w_[l] = lowered_weights(value, *mix_.weights[l], losses_ ? &(*losses_)[l].w : nullptr);
    }
    const Matrix<float>& read_x(std::size_t l, const Matrix<float>& value) override {
        const float amax = scales_.amaxes.empty() ? 0 : std::ldexp(scales_.amaxes[l], scales_.margin);
        return x_[l] = lowered_input(value, *mix_.activations[l], amax, losses_ ? &(*losses_)[l].a : nullptr);
    }

  private:
    const Mix& mix_;
    const StaticScales& scales_;
    std::vector<LayerLoss>* losses_;
    std::vector<Matrix<float>> w_, x_;
};

// Runs the model in FP32 and hands each layer's input to `seen`.
class SeenCasts final : public LayerCasts {
  public:
    using Seen = std::function<void(std::size_t layer, const Matrix<float>& x)>;
    SeenCasts(const ModelPlan& plan, const TokenModel::Wiring& wiring, std::size_t layers, Seen seen)
        : LayerCasts(plan, wiring, layers), seen_(std::move(seen)) {}

  protected:
    const Matrix<float>& read_x(std::size_t l, const Matrix<float>& value) override {
        seen_(l, value);
        return value;
    }

  private:
    Seen seen_;
};

TokenData held_out_of(const TrainSpec& spec, int batches) {
    const auto task = make_task(spec);
    TokenData out;
    Batch batch;
    for (int i = 0; i < batches; ++i) {
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

// The model, its casts, and the logits: its own, the reference's, those of a mix, and the targets.
const TrainSpec& with_memory(const TrainSpec& spec, int batches) {
    const auto context = static_cast<std::size_t>(spec.sizes.at("context"));
    const std::size_t rows = static_cast<std::size_t>(batches) * kHeldOutSequences * context,
                      logits = rows * static_cast<std::size_t>(spec.vocabulary);
    if (logits > TokenModel::kMostLogits)
        throw usage_error(
            "--data",
            fmt::format("{} held-out tokens of a vocabulary of {} have {:.3g} logits; "
                        "the most that are kept are {}",
                        rows, spec.vocabulary, static_cast<double>(logits), TokenModel::kMostLogits));
    require_memory("model",
                   cpu_inference_bytes(spec, rows) + 4 * sizeof(float) * static_cast<double>(logits));
    return spec;
}

}  // namespace

bool reads_norm(const LayerSize& layer) {
    return layer.name.ends_with(".qkv") || layer.name.ends_with(".gate_up") || layer.name == "head";
}

TokenModel::TokenModel(const TrainSpec& spec, const ArmCheckpoint& checkpoint, int batches)
    : spec_(with_memory(spec, batches)),
      wiring_{.swiglu = swiglu_of(checkpoint)},
      model_(make_model(spec)),
      data_(held_out_of(spec, batches)) {
    set_parameters(*model_, checkpoint);
    const ModelPlan& plan = model_->plan();
    std::vector<int>& layer_of_gemm = wiring_.layer_of_gemm;
    layer_of_gemm.assign(plan.gemms.size(), -1);
    for (const ParameterSpec& parameter : plan.parameters) {
        if (!parameter.operand) continue;
        const std::size_t gemm = plan.tensor(*parameter.operand).gemm;
        layer_of_gemm[gemm] = 0;  // numbered below, in the order of the GEMMs
    }
    for (std::size_t g = 0; g < plan.gemms.size(); ++g) {
        if (layer_of_gemm[g] < 0) continue;
        layer_of_gemm[g] = static_cast<int>(layers_.size());
        for (const ParameterSpec& parameter : plan.parameters)
            if (parameter.operand && plan.tensor(*parameter.operand).gemm == g)
                layers_.push_back({plan.gemms[g].name, parameter.shape.at(0), parameter.shape.at(1)});
    }
    wiring_.smoothing.resize(layers_.size());
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
    MixCasts casts(model_->plan(), wiring_, mix, scales, with_losses ? &out.layers : nullptr);
    out.y = scored(model_->forward(data_.test, casts));
    return out;
}

Matrix<float> TokenModel::forward() {
    LayerCasts casts(model_->plan(), wiring_, layers_.size());
    return scored(model_->forward(data_.test, casts));
}

void TokenModel::calibrate(const Calibration& calibration, GemmCasts<float>& casts) {
    TrainSpec spec = spec_;
    spec.batch = kTrainSequences;
    const auto task = make_task(spec);
    Batch batch;
    for (std::size_t i = 0; i < calibration.batches; ++i) {
        task->draw(static_cast<int>(i), batch);
        model_->forward(batch, casts);
        if (calibration.told) calibration.told(i + 1);
    }
}

std::vector<float> TokenModel::calibrated_amaxes(const Calibration& calibration) {
    check_percentile(calibration.percentile);
    std::vector<float> largest(layers_.size());
    std::vector<std::vector<float>> kept(layers_.size());
    std::size_t values = 0;
    const auto see = [&](std::size_t l, const Matrix<float>& x) {
        if (calibration.percentile == 100) {
            largest[l] = std::max(largest[l], amax(x.values));
            return;
        }
        values += x.values.size();
        if (values > kMostKept)
            throw usage_error("percentile",
                              fmt::format("of more than {} values at a time: take fewer batches", kMostKept));
        kept[l].insert(kept[l].end(), x.values.begin(), x.values.end());
    };
    SeenCasts casts(model_->plan(), wiring_, layers_.size(), see);
    calibrate(calibration, casts);
    if (calibration.percentile == 100) return largest;
    for (std::size_t l = 0; l < layers_.size(); ++l)
        largest[l] = calibrated_amax(std::move(kept[l]), calibration.percentile, layers_[l].name);
    return largest;
}

Matrix<float> TokenModel::weights(std::size_t layer) const {
    Matrix<float> w(layers_[layer].out, layers_[layer].in);
    for (const ParameterSpec& parameter : model_->plan().parameters)
        if (parameter.operand &&
            wiring_.layer_of_gemm[model_->plan().tensor(*parameter.operand).gemm] == static_cast<int>(layer))
            std::ranges::copy(model_->values(*parameter.operand), w.values.begin());
    return w;
}

std::unique_ptr<Model<float>> TokenModel::copy() {
    auto out = make_model(spec_);
    for (std::size_t p = 0; p < out->parameters().size(); ++p)
        std::ranges::copy(model_->parameters()[p].value, out->parameters()[p].value.begin());
    return out;
}

void TokenModel::smooth(double alpha, std::size_t batches) {
    if (!(alpha >= 0 && alpha <= 1))
        throw usage_error("smoothing", fmt::format("alpha is 0 to 1; got {}", alpha));
    wiring_.smoothing.assign(layers_.size(), {});
    std::vector<std::vector<float>> inputs(layers_.size());
    const auto see = [&](std::size_t l, const Matrix<float>& x) { add_column_amaxes(x, inputs[l]); };
    SeenCasts casts(model_->plan(), wiring_, layers_.size(), see);
    calibrate({batches}, casts);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        if (!reads_norm(layers_[l])) continue;
        std::vector<float> amaxes;
        add_column_amaxes(weights(l), amaxes);
        wiring_.smoothing[l] = smoothing_scales(inputs[l], amaxes, alpha);
    }
}

}  // namespace fp8lab
