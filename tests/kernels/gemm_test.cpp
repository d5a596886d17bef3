// cuBLASLt plans: exact products of integers in every mode, scales where they belong, refusals in words.
#include "kernels/gemm/gemm.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "core/base/error.h"
#include "kernels/bench/measure.h"
#include "kernels/checks/probe.h"
#include "tests/kernels/gemm_reference.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

struct Gpu {
    cuda::Lt lt;
    cuda::Stream stream;
};

constexpr Element kWide = Element::bf16, kE4 = Element::e4m3, kE5 = Element::e5m2, kF32 = Element::f32;

// Every mode with every type and both outputs. Rows and blocks: Hopper's.
std::vector<GemmSpec> specs(int m, int n, int k) {
    std::vector<GemmSpec> out;
    for (const Element d : {kWide, kF32}) {
        for (const Product product : {Product::nt, Product::nn, Product::tn})
            out.push_back({product, m, n, k, kWide, kWide, d});
        const auto fp8 = [&](Element a, Element b, ScaleMode x, ScaleMode y, bool fast) {
            out.push_back({Product::nt, m, n, k, a, b, d, x, y, fast});
        };
        using enum ScaleMode;
        for (const bool fast : {true, false})
            for (const auto& [a, b] : {std::pair{kE4, kE4}, std::pair{kE4, kE5}, std::pair{kE5, kE4}})
                fp8(a, b, tensor, tensor, fast);
        if (!is_hopper()) continue;
        for (const bool fast : {true, false})
            for (const auto& [a, b] : {std::pair{kE4, kE4}, std::pair{kE5, kE4}}) fp8(a, b, row, row, fast);
        fp8(kE4, kE4, block128, square128, false);
        fp8(kE4, kE4, square128, block128, false);
        fp8(kE4, kE4, block128, block128, false);
        fp8(kE5, kE4, block128, square128, false);
        fp8(kE5, kE4, block128, block128, false);
    }
    for (const Product product : {Product::nt, Product::nn, Product::tn})
        out.push_back({product, m, n, k, kF32, kF32, kF32});
    return out;
}

double rounded(double value, Element to) {
    const auto single = static_cast<float>(value);
    return static_cast<double>(decode(format_of(to), encode(format_of(to), single)));
}

// Of rows `first`, `first + step` ...: how many elements are not the exact sum rounded to the output type.
int wrong_elements(const GemmSpec& spec, const Operand& a, const Operand& b, const std::vector<double>& got,
                   int step) {
    std::vector<double> wide_b(b.values.size());
    for (int c = 0; c < spec.n; ++c)
        for (int i = 0; i < spec.k; ++i) wide_b[index(c, spec.k, i)] = b.dequantised(c, i);
    int wrong = 0;
    std::vector<double> wide_a(static_cast<std::size_t>(spec.k));
    for (int r = 0; r < spec.m; r += step) {
        for (int i = 0; i < spec.k; ++i) wide_a[static_cast<std::size_t>(i)] = a.dequantised(r, i);
        for (int c = 0; c < spec.n; ++c) {
            double sum = 0;
            for (int i = 0; i < spec.k; ++i)
                sum += wide_a[static_cast<std::size_t>(i)] * wide_b[index(c, spec.k, i)];
            wrong += got[index(r, spec.n, c)] != rounded(sum, spec.d);
        }
    }
    return wrong;
}

struct ShapeAndStep {
    int m, n, k, step;  // every step-th row is checked
};

}  // namespace

// Integers in -2 ... 2 and scales of 1/2, 1 or 2: every partial sum is exact in FP32, and below 2^13 in units
// of the products also in the 14 bits of Hopper's accumulator, in any order.
TEST_CASE("products of small integers are exact in every mode, type, layout and shape") {
    NEEDS_GPU();
    const Gpu gpu;
    for (const auto& [m, n, k, step] :
         {ShapeAndStep{16, 16, 16, 1}, ShapeAndStep{48, 80, 112, 1}, ShapeAndStep{272, 144, 640, 5},
          ShapeAndStep{144, 400, 1040, 5}, ShapeAndStep{48, 80, 16384, 5}})
        for (const GemmSpec& spec : specs(m, n, k)) {
            const std::string name = to_string(spec);
            CAPTURE(name);
            std::mt19937 dice(static_cast<std::uint32_t>(m + k));
            std::uniform_int_distribution<int> integer(-2, 2), exponent(-1, 1);
            const auto value = [&] { return static_cast<float>(integer(dice)); };
            const auto scale = [&] { return std::ldexp(1.0F, exponent(dice)); };
            const Operand a = make_operand(m, k, spec.a, spec.a_scale, value, scale),
                          b = make_operand(n, k, spec.b, spec.b_scale, value, scale);
            try {
                const std::vector<double> got = product_on_gpu(gpu.lt, spec, a, b, gpu.stream.get());
                CHECK(wrong_elements(spec, a, b, got, step) == 0);
            } catch (const Error& error) {
                FAIL_CHECK(error.what());
            }
        }
}

// A permuted scale errs by more than 1 here; one misplaced by a rounding rule by more than the bound. The
// error of every element is measured against the magnitude that its own sum has, so that small rows count as
// much as large ones.
TEST_CASE("row and block scales spread over 2^-8 to 2^8 stay within the bounds against float64") {
    NEEDS_HOPPER();
    const Gpu gpu;
    for (const auto& [m, n, k, step] : {ShapeAndStep{144, 272, 128, 1}, ShapeAndStep{272, 144, 640, 3},
                                        ShapeAndStep{144, 400, 1040, 3}, ShapeAndStep{160, 272, 4096, 7}})
        for (const GemmSpec& spec : specs(m, n, k)) {
            if (spec.a_scale == ScaleMode::none || spec.a_scale == ScaleMode::tensor) continue;
            const std::string name = to_string(spec);
            CAPTURE(name);
            std::mt19937 dice(static_cast<std::uint32_t>(n + k));
            std::normal_distribution<float> normal;
            std::uniform_real_distribution<float> exponent(-8, 8);
            const auto value = [&] { return normal(dice); };
            const auto scale = [&] { return std::exp2(exponent(dice)); };
            const Operand a = make_operand(m, k, spec.a, spec.a_scale, value, scale),
                          b = make_operand(n, k, spec.b, spec.b_scale, value, scale);
            std::vector<double> got;
            try {
                got = product_on_gpu(gpu.lt, spec, a, b, gpu.stream.get());
            } catch (const Error& error) {
                FAIL_CHECK(error.what());
                continue;
            }
            double square = 0;
            int count = 0;
            for (int r = 0; r < m; r += step)
                for (int c = 0; c < n; c += step, ++count) {
                    double sum = 0, magnitude = 0;
                    for (int i = 0; i < k; ++i) {
                        const double term = a.dequantised(r, i) * b.dequantised(c, i);
                        sum += term;
                        magnitude += term * term;
                    }
                    const double error = got[index(r, n, c)] - sum;
                    square += error * error / magnitude;
                }
            const double bound = (spec.fast_accum ? 1e-2 : 1e-3) + (spec.d == kWide ? 2e-3 : 0);
            CHECK(std::sqrt(square / count) < bound);
        }
}

TEST_CASE("a product in a graph gives the bytes of the product outside, and of itself") {
    NEEDS_GPU();
    const Gpu gpu;
    constexpr int kSize = 528;
    const GemmSpec spec{Product::nt,       kSize, kSize, kSize, kE4, kE5, kWide, ScaleMode::tensor,
                        ScaleMode::tensor, false};
    std::mt19937 dice(3);
    std::normal_distribution<float> normal;
    const auto value = [&] { return normal(dice); };
    const auto scale = [] { return 0.37F; };
    const Operand a = make_operand(kSize, kSize, kE4, ScaleMode::tensor, value, scale),
                  b = make_operand(kSize, kSize, kE5, ScaleMode::tensor, value, scale);
    const Buffer<std::uint8_t> a_bytes = on_device(a, kE4, false), b_bytes = on_device(b, kE5, false);
    const Buffer<float> scales{std::span<const float>(a.scales)};
    const Buffer<std::uint16_t> outside(kSize * kSize), inside(kSize * kSize);
    const cuda::GemmPlan plan(gpu.lt, spec, gpu.stream.get());
    const auto run = [&](const Buffer<std::uint16_t>& d) {
        plan.run(a_bytes.get(), b_bytes.get(), d.get(), scales.get(), scales.get(), gpu.stream.get());
    };
    run(outside);
    const cuda::Graph graph(gpu.stream.get(), [&] { run(inside); });
    for (int i = 0; i < 3; ++i) {
        cuda::check(cudaMemsetAsync(inside.get(), 0xFF, 2 * inside.size(), gpu.stream.get()), "poison");
        graph.launch(gpu.stream.get());
        gpu.stream.wait();
        CHECK(inside.download() == outside.download());
    }
}

TEST_CASE("a capture that fails leaves its stream as it was") {
    NEEDS_GPU();
    const cuda::Stream stream;
    const Buffer<std::uint16_t> bytes(64);
    const auto poison = [&] {
        cuda::check(cudaMemsetAsync(bytes.get(), 0xFF, 2 * bytes.size(), stream.get()), "poison");
    };
    const auto fails = [&] {
        poison();
        throw Error(ErrorKind::failed, "capture", "on purpose");
    };
    CHECK_THROWS_WITH_AS(cuda::Graph(stream.get(), fails), "capture: on purpose", Error);
    CHECK(bytes.download() == std::vector<std::uint16_t>(64, 0));  // captured, and never run
    poison();
    stream.wait();
    CHECK(bytes.download() == std::vector<std::uint16_t>(64, 0xFFFF));
}

TEST_CASE("what breaks a rule is refused in words before cuBLASLt is asked") {
    NEEDS_GPU();
    const Gpu gpu;
    using enum ScaleMode;
    struct Refused {
        GemmSpec spec;
        const char* mentions;
    };
    const std::vector<Refused> cases = {
        {{Product::nt, 0, 16, 16, kWide, kWide, kWide}, "at least 1"},
        {{Product::nt, 24, 16, 16, kE4, kE4, kWide, tensor, tensor}, "multiples of 16"},
        {{Product::nt, 16, 24, 16, kE4, kE4, kWide, tensor, tensor}, "multiples of 16"},
        {{Product::nt, 16, 16, 24, kE4, kE4, kWide, tensor, tensor}, "multiples of 16"},
        {{Product::nn, 16, 16, 16, kE4, kE4, kWide, tensor, tensor}, "contiguous along k"},
        {{Product::tn, 16, 16, 16, kE4, kE4, kWide, tensor, tensor}, "contiguous along k"},
        {{Product::nt, 16, 16, 16, kE5, kE5, kWide, tensor, tensor}, "two E5M2"},
        {{Product::nt, 16, 16, 16, kE4, kWide, kWide, tensor, none}, "both"},
        {{Product::nt, 16, 16, 16, kE4, kE4, kE4, tensor, tensor}, "bf16 or f32"},
        {{Product::nt, 16, 16, 16, kWide, kWide, kWide, tensor, tensor}, "FP8 operands"},
        {{Product::nt, 16, 16, 16, kWide, kWide, kWide, none, none, true}, "FP8 operands"},
        {{Product::nt, 16, 16, 16, kE4, kE4, kWide, row, tensor}, "row scales"},
        {{Product::nt, 16, 16, 16, kE4, kE4, kWide, block128, tensor}, "block scales"},
        {{Product::nt, 16, 16, 16, kE4, kE4, kWide, square128, square128}, "only one"},
        {{Product::nt, 16, 16, 16, kE4, kE4, kWide, block128, square128, true}, "no fast accumulation"}};
    for (const Refused& c : cases) {
        const std::string name = to_string(c.spec);
        CAPTURE(name);
        try {
            const cuda::GemmPlan plan(gpu.lt, c.spec, gpu.stream.get());
            FAIL_CHECK("was not refused");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::backend);
            CHECK(error.where() == name);
            CHECK(error.why().find(c.mentions) != std::string::npos);
        }
    }
}

namespace {

Capability named(const std::vector<Capability>& found, std::string_view part) {
    for (const Capability& c : found)
        if (c.name.find(part) != std::string::npos) return c;
    FAIL("not probed: " << std::string(part));
    return {};
}

}  // namespace

TEST_CASE("the probe finds what every FP8 GPU has, and tells the status of what this one lacks") {
    NEEDS_GPU();
    const Gpu gpu;
    const std::vector<Capability> found = cuda::probe_capabilities(gpu.lt, gpu.stream.get());
    for (const char* everywhere : {"BF16", "FP8 E4M3, tensor scales", "FP8 E5M2 x E4M3"})
        CHECK(named(found, everywhere).available);
    for (const Capability& c : found) {
        CAPTURE(c.name);
        CHECK(c.available == c.refusal.empty());
        if (!c.available) CHECK(c.refusal.find("cuBLASLt") != std::string::npos);
    }
}

TEST_CASE("on Hopper the probe finds rows and blocks, and the status of what came with Blackwell") {
    NEEDS_HOPPER();
    const Gpu gpu;
    const std::vector<Capability> found = cuda::probe_capabilities(gpu.lt, gpu.stream.get());
    for (const char* hopper : {"OUTER_VEC", "1x128 x 128x128", "1x128 x 1x128"})
        CHECK(named(found, hopper).available);
    for (const char* blackwell : {"MXFP8", "NVFP4"})
        CHECK(named(found, blackwell).refusal.find("CUBLAS_STATUS_NOT_SUPPORTED (15)") != std::string::npos);
}

// reference: one H200, U(0,1), K = 4096: -6.6e-2 fast, -5e-4 with promotion.
TEST_CASE("fast accumulation loses several per cent of sums of one sign, promotion does not") {
    NEEDS_HOPPER();
    int checked = 0;
    for (const AccumulationError& e : cuda::accumulation_errors()) {
        if (e.data != "uniform" || e.k != 4096) continue;
        ++checked;
        if (e.fast)
            CHECK(e.rel_bias < -0.03);
        else
            CHECK(e.rel_rms < 1e-3);
    }
    CHECK(checked == 2);
}
