#include "core/inference/methods/lowered_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/inference/methods/rotated.h"
#include "core/nn/tasks.h"

namespace fp8lab {
namespace {

// The sequences of the tokens that methods see: no more than are needed.
Batch calibration_batch(TrainSpec spec, std::size_t rows) {
    const auto context = static_cast<std::size_t>(spec.sizes.at("context"));
    spec.batch = TokenModel::kTrainSequences;
    if (rows > 0)
        spec.batch = static_cast<int>(
            std::min<std::size_t>((rows + context - 1) / context, TokenModel::kTrainSequences));
    Batch batch;
    make_task(spec)->draw(0, batch);
    return batch;
}

}  // namespace

struct LoweredTokens::State {
    std::shared_ptr<TokenModel> model;
    Mix mix;
    MethodOptions options;
    std::optional<RotatedModel> rotated = {};
    std::vector<LoweredLayer> layers = {};

    Model<float>& to_run() { return rotated ? *rotated->model : model->writable(); }
    const Matrix<float>& weights(std::size_t l, const Matrix<float>& value) const {
        return rotated ? rotated->weights[l] : value;
    }
    LayerPlace place(std::size_t l) const {
        const std::string& name = model->layers()[l].name;
        return {name, reads_norm(model->layers()[l]), name.ends_with(".down")};
    }
    // The next layer to lower was passed over: an expert that no token chose.
    Error unseen() const {
        return usage_error("--rows", fmt::format("{} gets no token of the calibration rows, whose inputs its "
                                                 "weights are cast for",
                                                 model->layers()[layers.size()].name));
    }
    class Casts;
};

// Lowers the layers that are not lowered yet, as the pass comes to them, and casts the operands of all.
class LoweredTokens::State::Casts final : public GemmCasts<float> {
  public:
    explicit Casts(State& state, std::vector<CastStats>* inputs = nullptr)
        : state_(state), inputs_(inputs), x_(state.mix.weights.size()) {}

    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) override {
        const OperandSpec& tensor = state_.model->model().plan().tensor(id);
        const int at = state_.model->wiring().layer_of_gemm[tensor.gemm];
        if (at < 0) return value;
        const auto l = static_cast<std::size_t>(at);
        if (tensor.tensor == TensorClass::w) return state_.layers.at(l).w;
        if (l >= state_.layers.size()) lower(l, value);
        return x_[l] = lowered_layer_input(*state_.mix.activations[l], state_.options, state_.layers[l],
                                           value, inputs_ ? &(*inputs_)[l] : nullptr);
    }
    void round_output(Matrix<float>&) override {}
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return without_folds(state_.model->wiring().swiglu); }

  private:
    void lower(std::size_t l, const Matrix<float>& x) {
        if (l > state_.layers.size()) throw state_.unseen();
        const Matrix<float> value = state_.rotated ? Matrix<float>() : state_.model->weights(l);
        state_.layers.push_back(lower_layer(*state_.mix.weights[l], state_.options, state_.weights(l, value),
                                            seen_rows(x, state_.options), state_.place(l)));
    }

    State& state_;
    std::vector<CastStats>* inputs_;
    std::vector<Matrix<float>> x_;
};

LoweredTokens::LoweredTokens(std::shared_ptr<TokenModel> model, const Mix& mix, const MethodOptions& options)
    : state_(std::make_unique<State>(State{std::move(model), mix, options})) {
    const std::size_t n = state_->model->layers().size();
    if (mix.weights.size() != n || mix.activations.size() != n)
        throw usage_error("mix", "must have one format per layer");
    if (rotates(options.method)) state_->rotated = rotated_model(*state_->model, options.seed);
    State::Casts casts(*state_);
    state_->to_run().forward(calibration_batch(state_->model->spec(), options.rows), casts);
    if (state_->layers.size() < n) throw state_->unseen();
}

LoweredTokens::~LoweredTokens() = default;

const std::vector<LoweredLayer>& LoweredTokens::layers() const { return state_->layers; }

Matrix<float> LoweredTokens::run(std::vector<CastStats>* inputs) {
    if (inputs) inputs->assign(state_->layers.size(), {});
    State::Casts casts(*state_, inputs);
    return state_->model->scored(state_->to_run().forward(state_->model->data().test, casts));
}

}  // namespace fp8lab
