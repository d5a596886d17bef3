// Device memory for the scales of a tensor with more than one scale.
#pragma once

#include <cstdint>

#include "kernels/device/device.h"
#include "kernels/device/launch.h"

namespace fp8lab::cuda {

class ScaleBuffers {
  public:
    ScaleBuffers() = default;  // empty: for a tensor with one scale
    ScaleBuffers(ScaleMode scaling, Shape s)
        : columns_at_(count(scale_inv_count(scaling, s.padded_rows, s.padded_cols))),
          scale_inv_(columns_at_ + count(scale_inv_count(scaling, s.padded_cols, s.padded_rows))),
          amaxes_(scaling == ScaleMode::row ? scale_inv_.size() + 1 : 0) {}

    ScaleVectors vectors(const ScaleControls* controls) const {
        return {scale_inv_.get(), scale_inv_.get() + columns_at_, amaxes_.get(),
                amaxes_.get() ? amaxes_.get() + scale_inv_.size() : nullptr, controls};
    }
    std::size_t amaxes() const { return amaxes_.size(); }
    const Buffer<float>& scale_inv() const { return scale_inv_; }  // of rows, then of columns
    std::size_t columns_at() const { return columns_at_; }

  private:
    static std::size_t count(int n) { return static_cast<std::size_t>(n); }
    std::size_t columns_at_ = 0;  // a multiple of 4: cuBLASLt needs 16-byte alignment
    Buffer<float> scale_inv_;
    Buffer<std::uint32_t> amaxes_;  // and behind them `arrived`
};

}  // namespace fp8lab::cuda
