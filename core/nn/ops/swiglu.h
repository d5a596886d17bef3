// The gated activation of a transformer's feed-forward part: Shazeer, "GLU Variants Improve Transformer", arXiv
// 2002.05202; and the scales that Smooth-SwiGLU gives its channels: Fishman et al., "Scaling FP8 training to
// trillion-token LLMs", arXiv 2409.12517, section 4.4.
#pragma once

#include <vector>

#include "core/nn/matrix.h"

namespace fp8lab {

// silu(g) = g / (1 + e^-g).
//   swiglu  silu(g) * u
//   clamp   min(silu(g), kGateLimit) * clamp(u, -kGateLimit, kGateLimit)
enum class GatedActivation { swiglu, clamp };
inline constexpr double kGateLimit = 10;

// gate_up (rows, 2f), g in the first f columns and u in the others -> a (rows, f), resized.
template <class T>
void gated_activation(GatedActivation kind, const Matrix<T>& gate_up, Matrix<T>& a);

// da (rows, f), gate_up of the forward pass -> dgate_up (rows, 2f), resized. The derivative of a factor is 0
// where it is limited and at the limit itself. dgate_up is another object.
template <class T>
void gated_activation_backward(GatedActivation kind, const Matrix<T>& da, const Matrix<T>& gate_up,
                               Matrix<T>& dgate_up);

// s_c = 2^-round(log2 amax_c), amax_c of column c of a (rows, f); 1 where amax_c is 0 or not finite. scales (f)
// is resized. Scaled by s_c the column's amax is in [2^-0.5, 2^0.5]. The exponent of s_c is limited to -126 ..
// 126, so that s_c and 1 / s_c are exact in FP32 and in BF16.
template <class T>
void channel_scales(const Matrix<T>& a, std::vector<T>& scales);

// out[r][c] = m[r][c] * scales[c]; out is resized and may be the same object as m.
template <class T>
void scale_columns(const Matrix<T>& m, const std::vector<T>& scales, Matrix<T>& out);
template <class T>
void scale_columns(Matrix<T>& m, const std::vector<T>& scales) {
    scale_columns(m, scales, m);
}

// out[r][c] = m[r][c] / scales[c]: exact for powers of two, as long as nothing underflows or overflows.
template <class T>
void unscale_columns(const Matrix<T>& m, const std::vector<T>& scales, Matrix<T>& out);

}  // namespace fp8lab
