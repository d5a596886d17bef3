#include "core/trainer/decision.h"

#include <algorithm>

#include "core/nn/loss.h"

namespace fp8lab {

std::vector<float> decision_grid(Model<float>& model, LossKind loss) {
    DenseBatch batch{Matrix<float>(kDecisionGrid * kDecisionGrid, 2), {}};
    Matrix<float>& points = batch.x;
    for (std::size_t i = 0; i < points.rows; ++i) {
        const auto along = [](std::size_t k) {
            return -1.0F + 2.0F * static_cast<float>(k) / (kDecisionGrid - 1);
        };
        points.row(i)[0] = along(i % kDecisionGrid);
        points.row(i)[1] = along(i / kDecisionGrid);
    }
    NoCasts<float> casts;
    Matrix<float> scores = model.forward(std::move(batch), casts);
    std::vector<float> class1;
    for (std::size_t i = 0; i < scores.rows; ++i) {
        const auto row = scores.row(i);
        if (loss == LossKind::cross_entropy) softmax<float>(row, row);
        class1.push_back(std::clamp(row[1], 0.0F, 1.0F));
    }
    return class1;
}

std::vector<float> decision_grid(const TrainSpec& spec, const ArmCheckpoint& weights) {
    const auto model = make_model(spec);
    set_parameters(*model, weights);
    return decision_grid(*model, spec.loss);
}

}  // namespace fp8lab
