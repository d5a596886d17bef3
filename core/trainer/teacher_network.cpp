#include "core/trainer/teacher_network.h"

#include <variant>

#include "core/trainer/checkpoint.h"

namespace fp8lab {
namespace {

class InFp32 final : public GemmCasts<float> {
  public:
    explicit InFp32(SwigluForm form) : form_(form) {}
    const Matrix<float>& operand(TensorId, Along, const Matrix<float>& value) override { return value; }
    void round_output(Matrix<float>&) override {}
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return form_; }

  private:
    SwigluForm form_;
};

}  // namespace

TeacherNetwork::TeacherNetwork(const TrainSpec& spec) : model_(make_model(spec)) {
    const ArmCheckpoint checkpoint = load_weights("--teacher", spec.teacher, spec);
    set_parameters(*model_, checkpoint);
    if (!checkpoint.recipe.empty()) swiglu_ = parse_recipe(checkpoint.recipe).act;
}

LossValue TeacherNetwork::loss_and_gradient(const Matrix<float>& y, const Batch& batch, Matrix<float>& dy) {
    LossValue out = fp8lab::loss_and_gradient(LossKind::cross_entropy, y, batch, dy);  // of the labels
    InFp32 casts(swiglu_);
    const Matrix<float>& outputs = model_->forward(batch, casts);
    const auto* tokens = std::get_if<TokenBatch>(&batch);
    const auto counts = [&](std::size_t r) { return !tokens || tokens->is_scored(r); };
    std::size_t rows = 0;
    for (std::size_t r = 0; r < y.rows; ++r) rows += counts(r);
    p_.resize(y.cols);
    double sum = 0;
    for (std::size_t r = 0; r < y.rows; ++r) {
        if (!counts(r)) continue;  // dy is 0
        softmax(outputs.row(r), std::span(p_));
        const auto scores = y.row(r);
        const auto gradient = dy.row(r);
        const auto log_sum = static_cast<double>(softmax(scores, gradient));
        for (std::size_t c = 0; c < y.cols; ++c) {
            sum += static_cast<double>(p_[c]) * (log_sum - static_cast<double>(scores[c]));
            gradient[c] = (gradient[c] - p_[c]) / static_cast<float>(rows);
        }
    }
    out.loss = sum / static_cast<double>(rows);
    return out;
}

}  // namespace fp8lab
