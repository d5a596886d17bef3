// AWQ (Lin et al., arXiv 2306.00978): input channels with large values keep more of their weights' precision, because
// they are divided and their weights multiplied by s_j before the cast.
#pragma once

#include <vector>

#include "core/inference/format.h"
#include "core/nn/matrix.h"

namespace fp8lab {

inline constexpr float kAwqFloor = 1e-3F;

// s of each input channel: with m_j = mean |X_j| over the rows of x, s_j = m_j^a, at least 1e-4, divided by the root of
// the largest times the smallest; of a = 0, 0.05, ..., 0.95 the one with the least |X W^T - (X / s) cast(W s)^T|, the
// first of equal ones. w (out, in), x (rows, in). No power of two: in a served model s is folded into the norm or the layer
// before.
// `floor`: channels with m_j < kAwqFloor get s_j = 1 after all. Without it a channel that is 0 in the rows of the training
// and not later is divided by so small an s that it becomes the amax of all inputs.
std::vector<float> awq_divisors(const LowFormat& format, const Matrix<float>& w, const Matrix<float>& x,
                                bool floor);

}  // namespace fp8lab
