#include "core/inference/methods/lowered_mlp.h"

#include <utility>

#include "core/base/error.h"

namespace fp8lab {
namespace {

// Computes the layer that x is the input of, and the input of the next one in its place.
void pass_layer(const TrainedMlp& network, const LoweredMlp& lowered, std::size_t l, Matrix<float>& x,
                CastStats* stats) {
    const Matrix<float> a =
        lowered_layer_input(*lowered.mix.activations[l], lowered.options, lowered.layers[l], x, stats);
    multiply_layer(a, lowered.layers[l].w, network.layers[l].b, x);
    if (l + 1 < network.layers.size()) activate_in_place(network.activation, x);
}

}  // namespace

LoweredMlp lower_mlp(const TrainedMlp& network, const Matrix<float>& train, const Mix& mix,
                     const MethodOptions& options) {
    const std::size_t n = network.layers.size();
    if (mix.weights.size() != n || mix.activations.size() != n)
        throw usage_error("mix", "must have one format per layer");
    if (sees_rows(options.method) && train.rows == 0)
        throw usage_error("method", "needs rows of the training");
    const bool divides = options.method == Method::smooth || options.method == Method::awq;
    if (divides && network.activation != Activation::relu)
        throw usage_error("method", "needs relu: a scale cannot be moved through " +
                                        std::string(to_string(network.activation)));
    LoweredMlp out{{}, mix, options};
    Matrix<float> x = seen_rows(train, options);
    for (std::size_t l = 0; l < n; ++l) {
        const LayerPlace place{std::to_string(l + 1), l > 0, l > 0};
        out.layers.push_back(lower_layer(*mix.weights[l], options, network.layers[l].w, x, place));
        if (x.rows > 0) pass_layer(network, out, l, x, nullptr);
    }
    return out;
}

Matrix<float> run_lowered(const TrainedMlp& network, const LoweredMlp& lowered, const Matrix<float>& x,
                          std::vector<CastStats>* inputs) {
    if (inputs) inputs->assign(lowered.layers.size(), {});
    Matrix<float> y = x;
    for (std::size_t l = 0; l < lowered.layers.size(); ++l)
        pass_layer(network, lowered, l, y, inputs ? &(*inputs)[l] : nullptr);
    return y;
}

}  // namespace fp8lab
