#include "core/inference/rescale.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"

namespace fp8lab {
namespace {

void check(const TrainedMlp& network, const std::string& what) {
    if (network.activation != Activation::relu)
        throw usage_error(what, "needs relu: a scale cannot be moved through " +
                                    std::string(to_string(network.activation)));
    if (network.layers.size() < 2) throw usage_error(what, "needs a layer before the one that it changes");
}

std::vector<float> column_amaxes(const Matrix<float>& m) {
    std::vector<float> out;
    add_column_amaxes(m, out);
    return out;
}

// Output j of `before` is divided by s, column j of `layer` multiplied.
void divide_channel(LinearLayer& before, LinearLayer& layer, std::size_t j, float s) {
    for (float& w : before.w.row(j)) w /= s;
    before.b[j] /= s;
    for (std::size_t r = 0; r < layer.w.rows; ++r) layer.w.row(r)[j] *= s;
}

}  // namespace

TrainedMlp with_outliers(TrainedMlp network, const Matrix<float>& x, std::size_t channels, float ratio) {
    check(network, "outliers");
    const std::vector<float> sizes = column_amaxes(layer_inputs(network, x)[1]);
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
    for (std::size_t i = 0; i < std::min(channels, order.size()); ++i)
        divide_channel(network.layers[0], network.layers[1], order[i], 1 / ratio);
    return network;
}

void add_column_amaxes(const Matrix<float>& m, std::vector<float>& amaxes) {
    amaxes.resize(m.cols);
    for (std::size_t r = 0; r < m.rows; ++r)
        for (std::size_t c = 0; c < m.cols; ++c) amaxes[c] = std::max(amaxes[c], std::fabs(m.row(r)[c]));
}

std::vector<float> smoothing_scales(const std::vector<float>& inputs, const std::vector<float>& weights,
                                    double alpha) {
    std::vector<float> out(inputs.size(), 1);
    for (std::size_t j = 0; j < inputs.size(); ++j) {
        if (!(inputs[j] > 0 && weights[j] > 0)) continue;
        const double s = std::pow(static_cast<double>(inputs[j]), alpha) /
                         std::pow(static_cast<double>(weights[j]), 1 - alpha);
        out[j] = static_cast<float>(std::exp2(std::nearbyint(std::log2(s))));
    }
    return out;
}

TrainedMlp smoothed(TrainedMlp network, const Matrix<float>& x, double alpha) {
    check(network, "smoothing");
    for (std::size_t l = 1; l < network.layers.size(); ++l) {
        const std::vector<float> scales = smoothing_scales(column_amaxes(layer_inputs(network, x)[l]),
                                                           column_amaxes(network.layers[l].w), alpha);
        for (std::size_t j = 0; j < scales.size(); ++j)
            if (scales[j] != 1) divide_channel(network.layers[l - 1], network.layers[l], j, scales[j]);
    }
    return network;
}

}  // namespace fp8lab
