#include "kernels/optimizer/parameters.h"

#include <cstdint>
#include <span>

#include "core/formats/codec.h"
#include "core/scaling/moment_storage.h"

namespace fp8lab::cuda {
namespace {

std::size_t area(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

std::size_t bytes_for(Element element, Shape s) {
    if (bytes_of(element) == 1) return eight_bit_moment_bytes(area(s.rows, s.cols));
    return area(s.padded_rows, s.padded_cols) * static_cast<std::size_t>(bytes_of(element));
}

const FormatInfo& eight_bits(Element element) {
    return find_format(element == Element::e4m3 ? "e4m3" : "e5m2");
}

}  // namespace

Parameters::Parameters(Element element, Shape shape)
    : element_(element), shape_(shape), memory_(bytes_for(element, shape)) {
    fill_zeros(memory_.get(), memory_.bytes());
}

Parameters::Parameters(Element element, Shape shape, Memory memory)
    : element_(element), shape_(shape), memory_(std::move(memory)) {}

std::size_t Parameters::count() const { return area(shape_.rows, shape_.cols); }

// Behind the codes.
float* Parameters::scale_inv() const {
    if (bytes_of(element_) > 1 || memory_.bytes() == 0) return nullptr;
    const std::size_t groups = (count() + kMomentGroup - 1) / kMomentGroup;
    return reinterpret_cast<float*>(static_cast<std::uint8_t*>(memory_.get()) + groups * kMomentGroup);
}

void Parameters::write_codes(const std::vector<float>& values) const {
    const MomentCodes codes = moment_codes(eight_bits(element_), values);
    copy_to_device(memory_.get(), codes.codes.data(), codes.codes.size());
    copy_to_device(scale_inv(), codes.scale_inv.data(), codes.scale_inv.size() * sizeof(float));
}

std::vector<float> Parameters::read_codes() const {
    MomentCodes codes{std::vector<std::uint8_t>(count()),
                      std::vector<float>((count() + kMomentGroup - 1) / kMomentGroup)};
    const auto read = [](void* to, const void* from, std::size_t bytes) {
        check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy from the GPU");
    };
    read(codes.codes.data(), memory_.get(), codes.codes.size());
    read(codes.scale_inv.data(), scale_inv(), codes.scale_inv.size() * sizeof(float));
    return moment_values(eight_bits(element_), codes);
}

void Parameters::write(const std::vector<float>& values) const {
    if (memory_.bytes() == 0) return;
    fill_zeros(memory_.get(), memory_.bytes());
    if (values.empty()) return;
    if (bytes_of(element_) == 1) return write_codes(values);
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
    if (bytes_of(element_) == 1) return read_codes();
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
