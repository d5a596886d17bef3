#include "core/train/decision.h"

#include <algorithm>

#include "core/nn/loss.h"

namespace fp8lab {

std::vector<float> decision_grid(Network<float>& network, LossKind loss) {
    Matrix<float> points(kDecisionGrid * kDecisionGrid, 2);
    for (std::size_t i = 0; i < points.rows; ++i) {
        const auto along = [](std::size_t k) {
            return -1.0F + 2.0F * static_cast<float>(k) / (kDecisionGrid - 1);
        };
        points.row(i)[0] = along(i % kDecisionGrid);
        points.row(i)[1] = along(i / kDecisionGrid);
    }
    NoCasts<float> casts;
    Matrix<float> scores = network.forward(points, casts);
    std::vector<float> class1;
    for (std::size_t i = 0; i < scores.rows; ++i) {
        const auto row = scores.row(i);
        if (loss == LossKind::cross_entropy) softmax<float>(row, row);
        class1.push_back(std::clamp(row[1], 0.0F, 1.0F));
    }
    return class1;
}

std::vector<float> decision_grid(const TrainSpec& spec, const ArmCheckpoint& weights) {
    Network<float> network(spec.layers, spec.activation);
    for (std::size_t l = 0; l < weights.layers.size(); ++l) {
        network.layers()[l].w.values = weights.layers[l].w;
        network.layers()[l].b = weights.layers[l].b;
    }
    return decision_grid(network, spec.loss);
}

}  // namespace fp8lab
