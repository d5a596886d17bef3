#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "core/formats/codec.h"
#include "kernels/checks/probe.h"

namespace fp8lab::cuda {
namespace {

// Integers from -2 to 2 under scales of 1/2, 1 and 2, neighbours under different ones.
struct Operand {
    Operand(Element element, ScaleMode mode, int rows, int length) : scaling(mode), outer(rows), k(length) {
        const FormatInfo& format = find_format(element == Element::e4m3 ? "e4m3" : "e5m2");
        std::vector<std::uint8_t> bytes;
        for (int o = 0; o < outer; ++o)
            for (int i = 0; i < k; ++i)
                bytes.push_back(static_cast<std::uint8_t>(encode(format, static_cast<float>(integer(o, i)))));
        codes = Buffer<std::uint8_t>(std::span<const std::uint8_t>(bytes));
        std::vector<float> all(static_cast<std::size_t>(scale_inv_count(scaling, outer, k)));
        for (int o = 0; o < outer; ++o)
            for (int i = 0; i < k; i += kMxBlock) put(all, o, i);
        scales = Buffer<float>(std::span<const float>(all));
    }
    static int integer(int o, int i) { return (o * 7 + i * 3 + o * i) % 5 - 2; }
    int exponent(int o, int i) const {
        const int row = scaling == ScaleMode::square128 ? o / kBlock : o,
                  block =
                      scaling == ScaleMode::row ? 0 : i / (scaling == ScaleMode::block32 ? kMxBlock : kBlock);
        return (row * 5 + block * 2) % 3 - 1;
    }
    void put(std::vector<float>& all, int o, int i) const {
        constexpr int kBias = 127;  // of E8M0
        if (scaling == ScaleMode::block32)
            reinterpret_cast<std::uint8_t*>(all.data())[mx_scale_at(k, o, i)] =
                static_cast<std::uint8_t>(kBias + exponent(o, i));
        else
            all[static_cast<std::size_t>(scale_inv_at(scaling, outer, k, o, i))] =
                std::ldexp(1.0F, exponent(o, i));
    }
    double value(int o, int i) const { return std::ldexp(integer(o, i), exponent(o, i)); }

    ScaleMode scaling;
    int outer, k;
    Buffer<std::uint8_t> codes;
    Buffer<float> scales;
};

std::vector<double> as_doubles(const Buffer<std::uint8_t>& bytes, Element element) {
    const std::vector<std::uint8_t> raw = bytes.download();
    std::vector<float> values(raw.size() / static_cast<std::size_t>(bytes_of(element)));
    if (element == Element::bf16) {
        std::vector<std::uint16_t> codes(values.size());
        std::copy_n(raw.data(), raw.size(), reinterpret_cast<std::uint8_t*>(codes.data()));
        decode(find_format("bf16"), codes, values);
    } else {
        std::copy_n(raw.data(), raw.size(), reinterpret_cast<std::uint8_t*>(values.data()));
    }
    return {values.begin(), values.end()};
}

// How many elements of every 16th row are further from the exact sum than BF16 and a short accumulator
// explain.
int wrong_elements(const GemmSpec& spec, const Operand& a, const Operand& b,
                   const std::vector<double>& found) {
    constexpr int kStep = 16;
    constexpr double kRounding = 0x1p-7, kAccumulator = 0x1p-9;
    int wrong = 0;
    for (int m = 0; m < spec.m; m += kStep)
        for (int n = 0; n < spec.n; ++n) {
            double sum = 0, size = 0;
            for (int i = 0; i < spec.k; ++i) {
                const double term = a.value(m, i) * b.value(n, i);
                sum += term;
                size += std::abs(term);
            }
            const double got = found[static_cast<std::size_t>(m) * static_cast<std::size_t>(spec.n) +
                                     static_cast<std::size_t>(n)];
            wrong += !(std::abs(got - sum) <= kRounding * std::abs(sum) + kAccumulator * size);
        }
    return wrong;
}

}  // namespace

std::string refusal_of(const Lt& lt, const GemmSpec& spec, cudaStream_t stream) {
    try {
        const GemmPlan plan(lt, spec, stream);
        const Operand a(spec.a, spec.a_scale, spec.m, spec.k), b(spec.b, spec.b_scale, spec.n, spec.k);
        const Buffer<std::uint8_t> d(static_cast<std::size_t>(spec.m) * static_cast<std::size_t>(spec.n) *
                                     static_cast<std::size_t>(bytes_of(spec.d)));
        plan.run(a.codes.get(), b.codes.get(), d.get(), a.scales.get(), b.scales.get(), stream);
        check(cudaStreamSynchronize(stream), "product");
        const int wrong = wrong_elements(spec, a, b, as_doubles(d, spec.d));
        return wrong == 0 ? "" : fmt::format("{}: {} elements are wrong", to_string(spec), wrong);
    } catch (const Error& refused) {
        return fmt::format("{}: {}", refused.where(), refused.why());
    }
}

}  // namespace fp8lab::cuda
