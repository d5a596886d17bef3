// GPTQ (Frantar et al., arXiv 2210.17323): the columns of a layer's weights are cast from left to right, and what the cast
// of one loses is taken into the columns that are not cast yet, so that the error of the outputs X W^T is small.
#pragma once

#include <string>

#include "core/inference/format.h"
#include "core/nn/matrix.h"

namespace fp8lab {

// w (out, in) in FP32; x (rows, in) the inputs of the layer for rows of the training. With H = X^T X + damp mean(diag H) I
// and H^-1 = U^T U, U upper triangular, both in float64:
//   for each column j: q_j = cast(w_j), e = (w_j - q_j) / U_jj, w_k -= e U_jk for every k > j.
// The scales of a block are computed when its first column is reached, from the changed columns; those of a row or of the
// tensor, and NVFP4's tensor scale, from w. The columns stay in their order (GPTQ's desc_act false). An input that is
// always 0 gets H_jj = 1: its column is cast to nearest and changes no other. (The paper's code sets it to 0.)
// Returns the weights as the GEMM reads them. Throws usage_error(layer, ...): H + damping is not positive definite, or x
// is not finite, or has not the columns of w.
Matrix<float> gptq(const LowFormat& format, const Matrix<float>& w, const Matrix<float>& x, double damp,
                   const std::string& layer);

}  // namespace fp8lab
