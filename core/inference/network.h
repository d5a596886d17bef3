// A trained multilayer perceptron for inference: its layers in FP32, read from a checkpoint of `train --save`.
//   y = x w^T + b, the activation between the layers and none after the last.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/matrix.h"
#include "core/nn/train_spec.h"
#include "core/tensors/safetensors.h"

namespace fp8lab {

struct LinearLayer {
    Matrix<float> w;       // (out, in)
    std::vector<float> b;  // (out)
};

struct TrainedMlp {
    std::vector<LinearLayer> layers;
    Activation activation = Activation::relu;
    bool classifies = true;         // its outputs are logits: the loss was cross-entropy
    std::string command_line = {};  // of the training, as in the file

    std::size_t inputs() const { return layers.front().w.cols; }
    std::size_t outputs() const { return layers.back().w.rows; }
    std::size_t weights() const;     // their number, without biases
    std::vector<int> sizes() const;  // d0, ..., dn
};

// Throws input_error with `where`: not a checkpoint of this program, a layer without its w or b, shapes that do not
// follow each other, weights that are not finite, metadata that do not name activation and loss.
TrainedMlp mlp_of(const SafeTensors& file, const std::string& where);
TrainedMlp read_mlp(const std::filesystem::path& path);

// The value of an option in a command line, "relu" of "--activation"; empty: it has no such option.
std::string option_in(std::string_view command_line, std::string_view option);

// The outputs in FP32. x (rows, inputs).
Matrix<float> forward(const TrainedMlp& network, const Matrix<float>& x);
// The input of every layer: x, and what the activations gave.
std::vector<Matrix<float>> layer_inputs(const TrainedMlp& network, const Matrix<float>& x);

// For passes that cast in between: computes y = x w^T + b, and applies the activation to y in place.
void multiply_layer(const Matrix<float>& x, const Matrix<float>& w, const std::vector<float>& b,
                    Matrix<float>& y);
void activate_in_place(Activation activation, Matrix<float>& y);

}  // namespace fp8lab
