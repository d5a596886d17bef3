// Arrays that an optimiser has for the weights of a layer: the weights, a moment, or the gradient.
#pragma once

#include <vector>

#include "kernels/device/device.h"
#include "kernels/device/launch.h"

namespace fp8lab::cuda {

// (rows, cols) values on the device: in FP32 or BF16 (padded_rows, padded_cols), with zeros in the padding; moments in E4M3 or
// E5M2 as MomentStore (kernels/device/launch.h) has them.
class Parameters {
  public:
    Parameters() = default;
    Parameters(Element element, Shape shape);                 // zeros
    Parameters(Element element, Shape shape, Memory memory);  // as it is, of the size that the shape needs
    Element element() const { return element_; }
    void* get() const { return memory_.get(); }
    float* scale_inv() const;  // of moments in 8 bits; else null
    // (rows, cols) as FP32; fewer bits are rounded to nearest on writing, and values that they had before stay. No values: zeros. Without memory write()
    // does nothing and read() returns nothing. Done on return; no kernel may use the memory meanwhile.
    void write(const std::vector<float>& values) const;
    std::vector<float> read() const;

  private:
    std::size_t count() const;  // of real values
    void write_codes(const std::vector<float>& values) const;
    std::vector<float> read_codes() const;

    Element element_ = Element::f32;
    Shape shape_{};
    Memory memory_;
};

}  // namespace fp8lab::cuda
