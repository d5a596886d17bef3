#include "core/inference/lowering.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/scaling/delayed.h"

namespace fp8lab {
namespace {

Matrix<float> cast(const Matrix<float>& in, const CastPlan& plan, float static_amax, CastStats* stats) {
    QuantizeRequest request{.rows = in.rows, .cols = in.cols, .with_stats = stats != nullptr};
    if (static_amax > 0 && plan.granularity == Granularity::tensor && plan.scaled)
        request.tensor_scale =
            scale_from_amax(static_amax, static_cast<float>(max_finite(*plan.format)), 0, 1, plan.pow2);
    if (static_amax > 0 && plan.granularity == Granularity::block16) request.tensor_amax = static_amax;
    Matrix<float> out(in.rows, in.cols);
    const QuantizeResult result = quantize(plan, in.values, out.values, request);
    if (stats) *stats = result.stats;
    return out;
}

Matrix<float> in_groups(const Matrix<float>& in, const GroupCodes& codes, CastStats* stats) {
    Matrix<float> out(in.rows, in.cols);
    cast_in_groups(codes, in.values, out.values, in.cols);
    if (stats) *stats = measure_weights(in, out);
    return out;
}

}  // namespace

float StaticScales::amax(std::size_t layer) const {
    return amaxes.empty() ? 0 : std::ldexp(amaxes.at(layer), margin);
}

Mix uniform_mix(std::size_t layers, const LowFormat& format, bool activations) {
    const LowFormat& kept = find_low_format("bf16", "format");
    return {std::vector(layers, &format), std::vector(layers, activations ? &format : &kept)};
}

Mix single_mix(std::size_t layers, std::size_t layer, const LowFormat& format, bool activations) {
    const LowFormat& kept = find_low_format("fp32", "format");
    Mix mix{std::vector(layers, &kept), std::vector(layers, &kept)};
    mix.weights.at(layer) = &format;
    if (activations) mix.activations.at(layer) = &format;
    return mix;
}

Matrix<float> lowered_weights(const Matrix<float>& w, const LowFormat& format, CastStats* stats) {
    return format.groups ? in_groups(w, *format.groups, stats) : cast(w, format.weights, 0, stats);
}

CastStats measure_weights(const Matrix<float>& w, const Matrix<float>& lowered) {
    const std::array<float, 1> kUnscaled = {1};
    return measure_cast(w.values, lowered.values, kUnscaled,
                        {std::numeric_limits<double>::infinity(), false});
}

Matrix<float> lowered_input(const Matrix<float>& x, const LowFormat& format, float static_amax,
                            CastStats* stats) {
    return format.groups ? in_groups(x, *format.groups, stats)
                         : cast(x, format.activations, static_amax, stats);
}

Lowered run_lowered(const TrainedMlp& network, const Matrix<float>& x, const Mix& mix,
                    const StaticScales& scales, bool with_losses) {
    const std::size_t n = network.layers.size();
    if (mix.weights.size() != n || mix.activations.size() != n)
        throw usage_error("mix", "must have one format per layer");
    if (!scales.amaxes.empty() && scales.amaxes.size() != n)
        throw usage_error("scales", "must have one amax per layer");
    Lowered out;
    Matrix<float> in = x;
    for (std::size_t l = 0; l < n; ++l) {
        LayerLoss loss;
        const Matrix<float> a =
            lowered_input(in, *mix.activations[l], scales.amax(l), with_losses ? &loss.a : nullptr);
        const Matrix<float> w =
            lowered_weights(network.layers[l].w, *mix.weights[l], with_losses ? &loss.w : nullptr);
        if (with_losses) out.layers.push_back(loss);
        multiply_layer(a, w, network.layers[l].b, out.y);
        if (l + 1 == n) break;
        activate_in_place(network.activation, out.y);
        std::swap(in, out.y);
    }
    return out;
}

std::vector<LayerSize> layer_sizes(const TrainedMlp& network) {
    std::vector<LayerSize> out;
    for (const LinearLayer& layer : network.layers)
        out.push_back({std::to_string(out.size() + 1), layer.w.rows, layer.w.cols});
    return out;
}

double weight_bytes(std::span<const LayerSize> layers, const Mix& mix) {
    constexpr double kBitsPerByte = 8;
    double bits = 0;
    for (std::size_t l = 0; l < layers.size(); ++l)
        bits += bits_per_weight(*mix.weights[l], layers[l].out, layers[l].in) *
                static_cast<double>(layers[l].out * layers[l].in);
    return bits / kBitsPerByte;
}

double bits_per_weight(std::span<const LayerSize> layers, const Mix& mix) {
    std::size_t weights = 0;
    for (const LayerSize& layer : layers) weights += layer.out * layer.in;
    return 8 * weight_bytes(layers, mix) / static_cast<double>(weights);
}

double weight_bytes(const TrainedMlp& network, const Mix& mix) {
    return weight_bytes(layer_sizes(network), mix);
}
double bits_per_weight(const TrainedMlp& network, const Mix& mix) {
    return bits_per_weight(layer_sizes(network), mix);
}

}  // namespace fp8lab
