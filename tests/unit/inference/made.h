// Small networks for the tests of inference, with weights from a fixed stream.
#pragma once

#include "core/base/rng.h"
#include "core/inference/network.h"
#include "core/inference/score.h"

namespace fp8lab::test {

inline Matrix<float> normal(std::size_t rows, std::size_t cols, std::uint64_t stream, float sigma = 1) {
    Matrix<float> m(rows, cols);
    Rng(11, stream).fill_normal(m.values, sigma);
    return m;
}

inline TrainedMlp made_network(const std::vector<std::size_t>& sizes,
                               Activation activation = Activation::relu) {
    TrainedMlp out;
    out.activation = activation;
    for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
        LinearLayer layer{normal(sizes[l + 1], sizes[l], 10 * l), {}};
        layer.b = normal(1, sizes[l + 1], 10 * l + 1, 0.1F).values;
        out.layers.push_back(std::move(layer));
    }
    return out;
}

inline Reference made_reference(const TrainedMlp& network, const Matrix<float>& x) {
    return reference_of(forward(network, x), network.classifies, {});
}

}  // namespace fp8lab::test
