// Casts a matrix of weights column by column, for methods that change the columns that are not cast yet (gptq.h). Without
// such changes the result is that of lowered_weights() (core/inference/lowering.h), to the bit.
#pragma once

#include <span>
#include <vector>

#include "core/inference/format.h"
#include "core/nn/matrix.h"

namespace fp8lab {

class ColumnCast {
  public:
    // `w`: (out, in), before any change. Of it is the amax that a scale per tensor, and NVFP4's tensor scale, follow from.
    ColumnCast(const LowFormat& format, const Matrix<float>& w);

    // So many columns share their scales; all of w where a scale is of a row or of the tensor.
    std::size_t width() const { return width_; }
    // Computes the scales of the next columns from what they are now: (out, at most width()).
    void start(const Matrix<float>& columns);
    // The values of one of these columns become what the GEMM reads.
    void cast(std::span<float> column) const;

  private:
    const LowFormat& format_;
    std::size_t width_ = 0;
    float tensor_amax_ = 0;
    std::vector<float> scale_, scale_inv_;  // of each row
};

}  // namespace fp8lab
