#include "kernels/optimizer/parameters.h"

#include <cstdint>
#include <span>

#include "core/formats/codec.h"

namespace fp8lab::cuda {
namespace {

std::size_t area(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

}  // namespace

Parameters::Parameters(Element element, Shape shape)
    : element_(element),
      shape_(shape),
      memory_(area(shape.padded_rows, shape.padded_cols) * static_cast<std::size_t>(bytes_of(element))) {
    fill_zeros(memory_.get(), memory_.bytes());
}

Parameters::Parameters(Element element, Shape shape, Memory memory)
    : element_(element), shape_(shape), memory_(std::move(memory)) {}

void Parameters::write(const std::vector<float>& values) const {
    if (memory_.bytes() == 0) return;
    fill_zeros(memory_.get(), memory_.bytes());
    if (values.empty()) return;
    const auto size = static_cast<std::size_t>(bytes_of(element_)),
               cols = static_cast<std::size_t>(shape_.cols), rows = static_cast<std::size_t>(shape_.rows);
    const auto copy = [&](const void* from) {
        copy_rows_to_device(memory_.get(), static_cast<std::size_t>(shape_.padded_cols) * size, from,
                            cols * size, rows);
    };
    if (element_ == Element::f32) return copy(values.data());
    std::vector<std::uint16_t> codes(values.size());
    encode(find_format("bf16"), values, std::span(codes), {.overflow = Overflow::nonsaturate});
    copy(codes.data());
}

std::vector<float> Parameters::read() const {
    if (memory_.bytes() == 0) return {};
    const auto size = static_cast<std::size_t>(bytes_of(element_)),
               cols = static_cast<std::size_t>(shape_.cols), rows = static_cast<std::size_t>(shape_.rows);
    std::vector<float> values(area(shape_.rows, shape_.cols));
    const auto copy = [&](void* to) {
        check(
            cudaMemcpy2D(to, cols * size, memory_.get(), static_cast<std::size_t>(shape_.padded_cols) * size,
                         cols * size, rows, cudaMemcpyDeviceToHost),
            "copy from the GPU");
    };
    if (element_ == Element::f32) {
        copy(values.data());
        return values;
    }
    std::vector<std::uint16_t> codes(values.size());
    copy(codes.data());
    decode(find_format("bf16"), std::span<const std::uint16_t>(codes), values);
    return values;
}

}  // namespace fp8lab::cuda
