// Changes of a network's scales between its layers that leave its function as it is: what relu(s z) = s relu(z), s > 0,
// allows. Every factor is a power of two, so that nothing is rounded.
#pragma once

#include "core/inference/network.h"

namespace fp8lab {

// The `channels` inputs of layer 2 with the largest amax over x become `ratio` times as large: rows of w1 and b1 times
// ratio, columns of w2 divided by it. Exact for powers of two. Throws usage_error: an activation other than relu, one
// layer only.
TrainedMlp with_outliers(TrainedMlp network, const Matrix<float>& x, std::size_t channels, float ratio);

// SmoothQuant (Xiao et al., arXiv 2211.10438, equation 4): each input channel j of layers 2 to n is divided by
//   s_j = amax(X_j)^alpha / amax(W_j)^(1 - alpha),
// here rounded to a power of two, and the column j of w is multiplied by it. The division is folded into the layer
// before. X are the inputs of the layer for x. A channel that is always 0 keeps s_j = 1. Throws as with_outliers().
TrainedMlp smoothed(TrainedMlp network, const Matrix<float>& x, double alpha);

// The parts that both use: the largest |value| of each column, added to `amaxes` (empty: none yet); and s_j of the
// channels, a power of two, 1 where a channel is always 0.
void add_column_amaxes(const Matrix<float>& m, std::vector<float>& amaxes);
std::vector<float> smoothing_scales(const std::vector<float>& inputs, const std::vector<float>& weights,
                                    double alpha);

}  // namespace fp8lab
