// Products in float64 for the tests of cuBLASLt plans, over the very values that the tensor core gets.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "core/formats/codec.h"
#include "kernels/gemm/gemm.h"

namespace fp8lab::test {

using cuda::Buffer;
using cuda::Element;
using cuda::GemmSpec;
using cuda::Product;
using cuda::ScaleMode;

constexpr std::size_t index(int row, int cols, int col) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(cols) + static_cast<std::size_t>(col);
}
inline const FormatInfo& format_of(Element e) {
    constexpr std::string_view kNames[] = {"fp32", "bf16", "e4m3", "e5m2"};
    return find_format(kNames[static_cast<std::size_t>(e)]);
}

// An operand (outer, k): its values, the bytes that the device gets, and the scales in cuBLASLt's layout.
struct Operand {
    int outer = 0, k = 0;
    std::vector<float> values;  // (outer, k), representable in the element
    ScaleMode mode = ScaleMode::none;
    std::vector<float> scales;

    // The place of the scale of element (o, i): gemm.h's table.
    std::size_t scale_at(int o, int i) const {
        const int blocks = (k + 127) / 128, stride = (blocks + 3) / 4 * 4;
        if (mode == ScaleMode::row) return static_cast<std::size_t>(o);
        if (mode == ScaleMode::block128) return index(i / 128, outer, o);
        if (mode == ScaleMode::square128) return index(o / 128, stride, i / 128);
        return 0;
    }
    std::size_t scale_count() const { return scale_at(outer - 1, k - 1) + 4; }  // with the padding
    double dequantised(int o, int i) const {
        const double x = static_cast<double>(values[index(o, k, i)]);
        return mode == ScaleMode::none ? x : x * static_cast<double>(scales[scale_at(o, i)]);
    }
};

// Values and scales from `value` and `scale`; values are rounded to the element.
inline Operand make_operand(int outer, int k, Element element, ScaleMode mode,
                            const std::function<float()>& value, const std::function<float()>& scale) {
    Operand x{outer, k, std::vector<float>(index(outer, k, 0)), mode, {}};
    for (float& v : x.values) v = decode(format_of(element), encode(format_of(element), value()));
    if (mode == ScaleMode::none) return x;
    x.scales.resize(x.scale_count());
    for (float& s : x.scales) s = scale();
    return x;
}

// The operand as it lies in device memory: (outer, k), or (k, outer) where the product wants that.
inline Buffer<std::uint8_t> on_device(const Operand& x, Element element, bool k_first) {
    const auto size = static_cast<std::size_t>(cuda::bytes_of(element));
    std::vector<std::uint8_t> bytes(x.values.size() * size);
    for (int o = 0; o < x.outer; ++o)
        for (int i = 0; i < x.k; ++i) {
            const std::uint32_t code = encode(format_of(element), x.values[index(o, x.k, i)]);
            const std::size_t at = (k_first ? index(i, x.outer, o) : index(o, x.k, i)) * size;
            for (std::size_t b = 0; b < size; ++b) bytes[at + b] = static_cast<std::uint8_t>(code >> (8 * b));
        }
    return Buffer<std::uint8_t>(std::span<const std::uint8_t>(bytes));
}

// What the plan gives, (m, n), as float64.
inline std::vector<double> product_on_gpu(const cuda::Lt& lt, const GemmSpec& spec, const Operand& a,
                                          const Operand& b, cudaStream_t stream) {
    const Buffer<std::uint8_t> a_bytes = on_device(a, spec.a, spec.product == Product::tn),
                               b_bytes = on_device(b, spec.b, spec.product != Product::nt);
    const Buffer<float> a_scales{std::span<const float>(a.scales)},
        b_scales{std::span<const float>(b.scales)};
    const std::size_t count = index(spec.m, spec.n, 0),
                      size = static_cast<std::size_t>(cuda::bytes_of(spec.d));
    Buffer<std::uint8_t> d(count * size);
    d.upload(std::vector<std::uint8_t>(count * size, 0xFF));  // NaN: what is not written shows
    const cuda::GemmPlan plan(lt, spec, stream);
    plan.run(a_bytes.get(), b_bytes.get(), d.get(), a_scales.get(), b_scales.get(), stream);
    cuda::check(cudaStreamSynchronize(stream), "product");
    const std::vector<std::uint8_t> bytes = d.download();
    std::vector<double> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t code = 0;
        for (std::size_t byte = 0; byte < size; ++byte)
            code |= static_cast<std::uint32_t>(bytes[i * size + byte]) << (8 * byte);
        out[i] = static_cast<double>(decode(format_of(spec.d), code));
    }
    return out;
}

}  // namespace fp8lab::test
