// The functions between the layers, in the network's own precision (FP32 in training).
#pragma once

#include <span>

#include "core/nn/train_spec.h"

namespace fp8lab {

// value[i] = f(in[i]), slope[i] = f'(in[i]); all of one size. gelu: 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715
// z^3))), Hendrycks and Gimpel, "Gaussian Error Linear Units", section 2. relu has slope 0 at 0.
template <class T>
void activate(Activation kind, std::span<const T> in, std::span<T> value, std::span<T> slope);

}  // namespace fp8lab
