// GPTQ (Frantar et al., arXiv 2210.17323): the columns of a layer's weights are cast one after the other, and what the
// cast of one loses is taken into the columns that are not cast yet, so that the error of the outputs X W^T is small.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/named.h"
#include "core/inference/format.h"
#include "core/nn/matrix.h"

namespace fp8lab {

// Which column is cast first.
enum class ColumnOrder {
    given,  // from left to right
    act,    // by falling energy H_jj of the inputs; of equal ones the left one first
};
inline constexpr std::array kColumnOrders = {Named{ColumnOrder::given, "given"},
                                             Named{ColumnOrder::act, "act"}};
// Throws usage_error with the names that there are.
ColumnOrder find_column_order(std::string_view name, std::string_view where);

// w (out, in) in FP32; x (rows, in) the inputs of the layer for rows of the training. With H = X^T X + damp mean(diag H) I,
// its rows and columns in the order of the casts, and H^-1 = U^T U, U upper triangular, all in float64:
//   for each column j in that order: q_j = cast(w_j), e = (w_j - q_j) / U_jj, w_k -= e U_jk for every k behind j.
// Scales of a row or of the tensor, and NVFP4's tensor scale, are computed from w. Blocks keep their columns in both orders:
//   given  a block's scales are computed when its first column is reached, from the changed columns;
//   act    the columns of a block are not neighbours in the order, so its scales are computed from w.
// The authors' code (github.com/IST-DASLab/gptq, gptq.py) has the second as actorder with static_groups; other names are
// desc_act and act_order. The code computes the order before the damping, as here; it does not define that of equal columns.
// An input that is always 0 gets H_jj = 1: its column is cast to nearest and changes no other. (That code sets it to 0.)
// Returns the weights as the GEMM reads them. Throws usage_error(layer, ...): H + damping is not positive definite, or x
// is not finite, or has not the columns of w.
Matrix<float> gptq(const LowFormat& format, const Matrix<float>& w, const Matrix<float>& x, double damp,
                   const std::string& layer, ColumnOrder order = ColumnOrder::given);

}  // namespace fp8lab
