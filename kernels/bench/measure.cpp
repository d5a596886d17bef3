#include "kernels/bench/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "kernels/bench/copy.h"
#include "kernels/bench/turns.h"
#include "kernels/device/random_fill.h"
#include "kernels/gemm/gemm.h"

namespace fp8lab::cuda {
namespace {

std::size_t elements_in(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

Memory random_memory(std::size_t elements, Element element, std::uint32_t seed, cudaStream_t stream) {
    Memory memory(elements * static_cast<std::size_t>(bytes_of(element)));
    fill_random(memory.get(), element, memory.bytes(), seed, stream);
    return memory;
}

// A product with its operands, kept alive by the job that runs it.
struct Operands {
    GemmPlan plan;
    Memory a, b, d;
    Buffer<float> scales;
};

Job product_job(const std::string& name, const GemmSpec& spec, const Lt& lt, cudaStream_t stream) {
    Job job;
    job.line.name = name;
    job.line.flop = 2.0 * spec.m * spec.n * spec.k;
    try {
        const std::size_t scales = spec.a_scale == ScaleMode::none
                                       ? 1
                                       : elements_in(std::max(spec.m, spec.n), spec.k / 128 + 4) + 1024;
        const auto operands = std::make_shared<Operands>(Operands{
            GemmPlan(lt, spec, stream), random_memory(elements_in(spec.m, spec.k), spec.a, 1, stream),
            random_memory(elements_in(spec.n, spec.k), spec.b, 2, stream),
            Memory(elements_in(spec.m, spec.n) * static_cast<std::size_t>(bytes_of(spec.d))),
            Buffer<float>(std::span<const float>(std::vector<float>(scales, 1.0F)))});
        job.line.kernel = kernel_name([&](cudaStream_t s) {
            operands->plan.run(operands->a.get(), operands->b.get(), operands->d.get(),
                               operands->scales.get(), operands->scales.get(), s);
        });
        job.run = [operands](cudaStream_t s) {
            operands->plan.run(operands->a.get(), operands->b.get(), operands->d.get(),
                               operands->scales.get(), operands->scales.get(), s);
        };
    } catch (const Error& refused) {
        job.line.refusal = refused.why();
    }
    return job;
}

}  // namespace

void summarise(Timed& line, std::vector<double> ms) {
    if (ms.empty()) return;
    std::ranges::sort(ms);
    const auto quantile = [&](double q) {
        return ms[static_cast<std::size_t>(std::lround(q * static_cast<double>(ms.size() - 1)))];
    };
    line.median_ms = quantile(0.5);
    line.q1_ms = quantile(0.25);
    line.q3_ms = quantile(0.75);
    line.repeats = static_cast<int>(ms.size());
}

std::vector<Timed> time_in_turns(std::vector<Job> jobs, int repeats, cudaStream_t stream) {
    std::vector<GridTime> times(jobs.size());
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < jobs.size(); ++i)
        if (jobs[i].run) turns.push_back({&times[i], jobs[i].run, rough_ms(jobs[i].run, stream)});
    time_turns(turns, repeats, stream, {});
    std::vector<Timed> lines;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        Timed& line = jobs[i].line;
        line.median_ms = times[i].median_ms;
        line.q1_ms = times[i].q1_ms;
        line.q3_ms = times[i].q3_ms;
        line.repeats = times[i].repeats;
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<Timed> time_products(std::array<int, 3> mnk, int repeats) {
    const Stream stream;
    const Lt lt;
    const cudaStream_t s = stream.get();
    const auto [m, n, k] = mnk;
    const Element e4 = Element::e4m3, e5 = Element::e5m2, b16 = Element::bf16;
    const ScaleMode t = ScaleMode::tensor;
    const auto fp8 = [&](Element a, Element d, ScaleMode x, ScaleMode y, bool fast) {
        return GemmSpec{Product::nt, m, n, k, a, e4, d, x, y, fast};
    };
    constexpr int kCeiling = 8192;
    std::vector<Job> jobs;
    jobs.push_back(product_job("BF16 8192x8192x8192 (ceiling)",
                               {Product::nt, kCeiling, kCeiling, kCeiling, b16, b16, b16}, lt, s));
    jobs.push_back(product_job("BF16", {Product::nt, m, n, k, b16, b16, b16}, lt, s));
    jobs.push_back(product_job("E4M3, tensor scales, fast accumulation", fp8(e4, b16, t, t, true), lt, s));
    jobs.push_back(product_job("E4M3, tensor scales", fp8(e4, b16, t, t, false), lt, s));
    jobs.push_back(
        product_job("E5M2 x E4M3 to FP32, tensor scales", fp8(e5, Element::f32, t, t, false), lt, s));
    jobs.push_back(
        product_job("E4M3, row scales", fp8(e4, b16, ScaleMode::row, ScaleMode::row, false), lt, s));
    jobs.push_back(product_job("E4M3, 1x128 x 128x128 scales",
                               fp8(e4, b16, ScaleMode::block128, ScaleMode::square128, false), lt, s));
    jobs.push_back(product_job("E4M3, 1x128 x 1x128 scales",
                               fp8(e4, b16, ScaleMode::block128, ScaleMode::block128, false), lt, s));
    jobs.push_back(product_job("MXFP8, 1x32 scales",
                               fp8(e4, b16, ScaleMode::block32, ScaleMode::block32, false), lt, s));
    return time_in_turns(std::move(jobs), repeats, s);
}

std::vector<AccumulationError> accumulation_errors() {
    const Stream stream;
    const Lt lt;
    constexpr int kSize = 256;
    std::vector<AccumulationError> found;
    for (const std::string data : {"uniform", "normal"})
        for (const int k : {256, 1024, 4096, 16384, 65536}) {
            Rng rng(static_cast<std::uint64_t>(k));
            const auto operand = [&] {
                std::vector<float> values(elements_in(kSize, k));
                for (float& x : values)
                    x = data == "uniform" ? static_cast<float>(rng.uniform()) : rng.normal();
                std::vector<std::uint8_t> codes(values.size());
                encode(find_format("e4m3"), values, std::span(codes));
                return Buffer<std::uint8_t>(std::span<const std::uint8_t>(codes));
            };
            const Buffer<std::uint8_t> a = operand(), b = operand();
            const Buffer<double> exact(elements_in(kSize, kSize));
            exact_product(a.get(), b.get(), exact.get(), kSize, kSize, k, stream.get());
            const Buffer<float> one(std::span<const float>(std::vector<float>(4, 1.0F))),
                d(elements_in(kSize, kSize));
            for (const bool fast : {true, false}) {
                const GemmPlan plan(lt,
                                    {Product::nt, kSize, kSize, k, Element::e4m3, Element::e4m3, Element::f32,
                                     ScaleMode::tensor, ScaleMode::tensor, fast},
                                    stream.get());
                plan.run(a.get(), b.get(), d.get(), one.get(), one.get(), stream.get());
                stream.wait();
                const std::vector<float> got = d.download();
                const std::vector<double> want = exact.download();
                double error = 0, square = 0, bias = 0, size = 0;
                for (std::size_t i = 0; i < got.size(); ++i) {
                    const double e = static_cast<double>(got[i]) - want[i];
                    error += e * e;
                    square += want[i] * want[i];
                    bias += e;
                    size += std::abs(want[i]);
                }
                found.push_back({data, k, fast, std::sqrt(error / square), bias / size});
            }
        }
    return found;
}

}  // namespace fp8lab::cuda
