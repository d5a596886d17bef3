// Root mean square layer normalisation: Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv
// 1910.07467, equation 4. Per row y = normalised * g, normalised = x * inverse_rms, inverse_rms = 1 / sqrt(mean
// x^2 + eps).
#pragma once

#include <vector>

#include "core/nn/matrix.h"

namespace fp8lab {

inline constexpr double kRmsEpsilon = 1e-6;

// x (rows, d), g (d) -> normalised (rows, d), inverse_rms (rows), y (rows, d), all resized. normalised and
// inverse_rms are what the backward pass needs; neither is rounded here. No output may be an input.
template <class T>
void rms_norm(const Matrix<T>& x, const std::vector<T>& g, double eps, Matrix<T>& normalised,
              std::vector<T>& inverse_rms, Matrix<T>& y);

// dy (rows, d) -> dx (rows, d), dg (d), both resized. With dn = dy * g: dx = inverse_rms (dn - normalised *
// mean(dn * normalised)), dg = sum over the rows of dy * normalised, in the order of the rows. No output
// may be an input.
template <class T>
void rms_norm_backward(const Matrix<T>& dy, const Matrix<T>& normalised, const std::vector<T>& inverse_rms,
                       const std::vector<T>& g, Matrix<T>& dx, std::vector<T>& dg);

}  // namespace fp8lab
