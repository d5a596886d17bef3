#include "core/inference/methods/rotated.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/inference/methods/rotation.h"
#include "core/nn/models/transformer/model.h"

namespace fp8lab {
namespace {

using Weights = Matrix<float>;

std::span<float> parameter(Model<float>& model, const std::string& name) {
    const auto& specs = model.plan().parameters;
    const auto at = std::ranges::find(specs, name, &ParameterSpec::name);
    return model.parameters()[static_cast<std::size_t>(at - specs.begin())].value;
}

Weights right_of(const Weights& w, const Weights& r) {  // W R
    Weights out;
    multiply_nn(w, r, out);
    return out;
}
Weights left_of(const Weights& w, const Weights& r) {  // R^T W
    Weights out;
    multiply_tn(r, w, out);
    return out;
}

Weights with_gain(Weights w, std::span<const float> gain) {
    for (std::size_t row = 0; row < w.rows; ++row)
        for (std::size_t c = 0; c < w.cols; ++c) w.row(row)[c] *= gain[c];
    return w;
}

// H of each head along the diagonal.
Weights of_heads(std::size_t heads, std::size_t size) {
    const Weights one = hadamard_blocks(size);
    Weights out(heads * size, heads * size);
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t r = 0; r < size; ++r)
            std::ranges::copy(one.row(r),
                              out.row(h * size + r).begin() + static_cast<std::ptrdiff_t>(h * size));
    return out;
}

// Rows of qkv: the queries of all heads, their keys, their values.
Weights with_rotated_values(Weights qkv, const TransformerShape& shape) {
    const std::size_t first = shape.d + shape.key_cols(), n = shape.key_cols();
    Weights values(n, qkv.cols);
    std::copy_n(qkv.values.begin() + static_cast<std::ptrdiff_t>(first * qkv.cols), n * qkv.cols,
                values.values.begin());
    values = left_of(values, of_heads(shape.kv_heads, shape.head_size()));
    std::ranges::copy(values.values, qkv.values.begin() + static_cast<std::ptrdiff_t>(first * qkv.cols));
    return qkv;
}

}  // namespace

RotatedModel rotated_model(TokenModel& model, std::uint64_t seed) {
    if (model.spec().model != "transformer")
        throw usage_error("method", "rotates transformers; this model is " + model.spec().model);
    const TransformerShape shape = transformer_shape(model.spec());
    const Weights r = random_hadamard(shape.d, seed), heads = of_heads(shape.heads, shape.head_size());
    RotatedModel out{model.copy(), {}};
    const auto gain_before = [&](const std::string& layer) {
        if (layer == "head") return parameter(*out.model, "norm");
        const std::string block = layer.substr(0, layer.find('.'));
        return parameter(*out.model, block + (layer.ends_with(".qkv") ? ".norm1" : ".norm2"));
    };
    for (std::size_t l = 0; l < model.layers().size(); ++l) {
        const std::string& name = model.layers()[l].name;
        Weights w = model.weights(l);
        if (name.ends_with(".out"))
            w = left_of(right_of(w, heads), r);
        else if (name.ends_with(".down"))
            w = left_of(w, r);
        else
            w = right_of(with_gain(std::move(w), gain_before(name)), r);
        if (name.ends_with(".qkv")) w = with_rotated_values(std::move(w), shape);
        out.weights.push_back(std::move(w));
    }
    const std::span<float> rows = parameter(*out.model, "embedding");
    Weights embedding(rows.size() / shape.d, shape.d);
    std::ranges::copy(rows, embedding.values.begin());
    std::ranges::copy(right_of(embedding, r).values, rows.begin());
    for (const ParameterSpec& spec : out.model->plan().parameters)
        if (spec.name.ends_with("norm") || spec.name.ends_with("norm1") || spec.name.ends_with("norm2"))
            std::ranges::fill(parameter(*out.model, spec.name), 1.0F);
    return out;
}

}  // namespace fp8lab
