#include "core/trainer/teacher_network.h"

#include <variant>

#include "core/trainer/checkpoint.h"

namespace fp8lab {

TeacherNetwork::TeacherNetwork(const TrainSpec& spec) : model_(make_model(spec)) {
    set_parameters(*model_, load_checkpoints(spec.teacher, spec).arms.front());
}

LossValue TeacherNetwork::loss_and_gradient(const Matrix<float>& y, const Batch& batch, Matrix<float>& dy) {
    LossValue out = fp8lab::loss_and_gradient(LossKind::cross_entropy, y, batch, dy);  // of the labels
    NoCasts<float> none;
    const Matrix<float>& outputs = model_->forward(batch, none);
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
