#include "core/inference/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/nn/ops/activation.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {
namespace {

// w1 b1 w2 b2 ...
LinearLayer layer_of(const SafeTensors& file, const std::string& number, const std::string& where) {
    const auto find = [&](const std::string& name, std::size_t dimensions) -> const SafeTensor& {
        const auto hit = file.tensors.find(name);
        if (hit == file.tensors.end()) throw input_error(where, "tensor '" + name + "' is missing");
        if (hit->second.shape.size() != dimensions || hit->second.values.empty())
            throw input_error(where, fmt::format("tensor '{}' must have {} dimension{} and not be empty",
                                                 name, dimensions, dimensions == 1 ? "" : "s"));
        const auto bad =
            std::ranges::find_if_not(hit->second.values, [](float v) { return std::isfinite(v); });
        if (bad != hit->second.values.end())
            throw input_error(where, fmt::format("tensor '{}', element {}, is not finite", name,
                                                 bad - hit->second.values.begin()));
        return hit->second;
    };
    const SafeTensor &w = find("w" + number, 2), &b = find("b" + number, 1);
    if (b.shape[0] != w.shape[0])
        throw input_error(where, fmt::format("b{} has {} elements, w{} has {} rows", number, b.shape[0],
                                             number, w.shape[0]));
    LinearLayer layer{Matrix<float>(w.shape[0], w.shape[1]), b.values};
    layer.w.values = w.values;
    return layer;
}

}  // namespace

std::size_t TrainedMlp::weights() const {
    std::size_t n = 0;
    for (const LinearLayer& layer : layers) n += layer.w.values.size();
    return n;
}

std::vector<int> TrainedMlp::sizes() const {
    std::vector<int> out = {static_cast<int>(inputs())};
    for (const LinearLayer& layer : layers) out.push_back(static_cast<int>(layer.w.rows));
    return out;
}

std::string option_in(std::string_view command_line, std::string_view option) {
    const std::string wanted = std::string(option) + " ";
    const std::size_t at = command_line.rfind(wanted);
    if (at == command_line.npos || (at > 0 && command_line[at - 1] != ' ')) return {};
    const std::size_t from = at + wanted.size();
    return std::string(command_line.substr(from, command_line.find(' ', from) - from));
}

TrainedMlp mlp_of(const SafeTensors& file, const std::string& where) {
    const auto line = file.metadata.find("command_line");
    if (line == file.metadata.end())
        throw input_error(where, "its metadata have no command line, so it is no checkpoint of train --save");
    TrainedMlp out;
    out.command_line = line->second;
    const std::string activation = option_in(out.command_line, "--activation"),
                      loss = option_in(out.command_line, "--loss");
    const auto named = [&](Activation a) { return to_string(a) == activation; };
    if (named(Activation::relu))
        out.activation = Activation::relu;
    else if (named(Activation::tanh))
        out.activation = Activation::tanh;
    else if (named(Activation::gelu))
        out.activation = Activation::gelu;
    else
        throw input_error(where, "its metadata name no activation, so it is no multilayer perceptron");
    if (loss != to_string(LossKind::mse) && loss != to_string(LossKind::cross_entropy))
        throw input_error(where, "its metadata name no loss that is known here");
    out.classifies = loss == to_string(LossKind::cross_entropy);
    for (int l = 1; file.tensors.contains("w" + std::to_string(l)) || l == 1; ++l) {
        out.layers.push_back(layer_of(file, std::to_string(l), where));
        const std::size_t in = out.layers.back().w.cols,
                          before = l == 1 ? in : out.layers[out.layers.size() - 2].w.rows;
        if (in != before)
            throw input_error(where,
                              fmt::format("w{} has {} columns, w{} has {} rows", l, in, l - 1, before));
    }
    return out;
}

TrainedMlp read_mlp(const std::filesystem::path& path) {
    const TensorStore store{RandomFile(path)};
    const std::string where = store.files().front().where();
    SafeTensors used{{}, store.metadata(0)};  // the moments, two thirds of the file, are not read
    for (int l = 1; store.find("w" + std::to_string(l)); ++l)
        for (const char* const kind : {"w", "b"}) {
            const StoredTensor* const tensor = store.find(kind + std::to_string(l));
            if (!tensor) continue;
            require_values(store, *tensor);
            require_memory(where, static_cast<double>(tensor->values()) * sizeof(float));
            std::vector<float> values(tensor->values());
            store.read_rows(*tensor, 0, values);
            used.tensors[tensor->name] = {tensor->shape, std::move(values)};
        }
    return mlp_of(used, where);
}

void multiply_layer(const Matrix<float>& x, const Matrix<float>& w, const std::vector<float>& b,
                    Matrix<float>& y) {
    multiply_nt(x, w, y);
    for (std::size_t r = 0; r < y.rows; ++r) {
        const auto row = y.row(r);
        for (std::size_t c = 0; c < row.size(); ++c) row[c] += b[c];
    }
}

void activate_in_place(Activation activation, Matrix<float>& y) {
    if (activation == Activation::relu) {
        for (float& v : y.values) v = std::max(v, 0.0F);
        return;
    }
    std::vector<float> slope(y.values.size());
    activate<float>(activation, y.values, y.values, slope);
}

Matrix<float> forward(const TrainedMlp& network, const Matrix<float>& x) {
    Matrix<float> in = x, y;
    for (std::size_t l = 0; l < network.layers.size(); ++l) {
        multiply_layer(in, network.layers[l].w, network.layers[l].b, y);
        if (l + 1 == network.layers.size()) break;
        activate_in_place(network.activation, y);
        std::swap(in, y);
    }
    return y;
}

std::vector<Matrix<float>> layer_inputs(const TrainedMlp& network, const Matrix<float>& x) {
    std::vector<Matrix<float>> out = {x};
    for (std::size_t l = 0; l + 1 < network.layers.size(); ++l) {
        Matrix<float> y;
        multiply_layer(out.back(), network.layers[l].w, network.layers[l].b, y);
        activate_in_place(network.activation, y);
        out.push_back(std::move(y));
    }
    return out;
}

}  // namespace fp8lab
