// Asking cuBLASLt, the measurement of one layer, and the grid, on a GPU.
#include "kernels/bench/grid.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "kernels/bench/ask.h"
#include "kernels/bench/layer_operands.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::cuda;

namespace {

constexpr int kM = 64, kN = 128, kK = 256;
constexpr std::uint16_t kOneBf16 = 0x3F80;
constexpr std::uint8_t kOneE4m3 = 0x38;
constexpr std::uint16_t k256Bf16 = 0x4380;

// Operands of ones, so that every output is k, whatever the layout.
struct Ones {
    explicit Ones(int groups)
        : a16(std::vector<std::uint16_t>(size(groups, kM * kK), kOneBf16)),
          b16(std::vector<std::uint16_t>(size(groups, kN * kK), kOneBf16)),
          a8(std::vector<std::uint8_t>(size(groups, kM * kK), kOneE4m3)),
          b8(std::vector<std::uint8_t>(size(groups, kN * kK), kOneE4m3)),
          d(size(groups, kM * kN)),
          scales(std::vector<float>(4096, 1.0F)) {}
    static std::size_t size(int groups, int elements) { return static_cast<std::size_t>(groups * elements); }
    LtOperands of(const GemmSpec& spec) const {
        if (spec.a == Element::bf16) return {a16.get(), b16.get(), d.get(), nullptr, nullptr};
        return {a8.get(), b8.get(), d.get(), scales.get(), scales.get()};
    }
    Buffer<std::uint16_t> a16, b16;
    Buffer<std::uint8_t> a8, b8;
    Buffer<std::uint16_t> d;
    Buffer<float> scales;
};

GemmSpec fp8(int m, int n, int k, Element a = Element::e4m3, Element b = Element::e4m3) {
    return {Product::nt, m, n, k, a, b, Element::bf16, ScaleMode::tensor, ScaleMode::tensor, false};
}

std::size_t free_bytes() {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return available;
}

}  // namespace

TEST_CASE("what cuBLASLt is asked for is what it multiplies, in every layout and in groups") {
    NEEDS_GPU();
    const Stream stream;
    const Lt lt;
    for (const int groups : {1, 3}) {
        const Ones ones(groups);
        for (GemmSpec spec : {fp8(kM, kN, kK), GemmSpec{Product::nt, kM, kN, kK},
                              GemmSpec{Product::nn, kM, kN, kK}, GemmSpec{Product::tn, kM, kN, kK}}) {
            CAPTURE(to_string(spec));
            check(cudaMemset(ones.d.get(), 0xFF, ones.d.size() * 2), "cudaMemset");
            check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
            const Asked asked = ask(lt, lt_spec(spec, groups), ones.of(spec), stream.get());
            CHECK_MESSAGE(asked.answer.status == 0, asked.answer.words);
            CHECK_FALSE(asked.kernel.empty());
            const std::vector<std::uint16_t> d = ones.d.download();
            CHECK(std::ranges::count(d, k256Bf16) == static_cast<std::ptrdiff_t>(d.size()));
        }
    }
}

TEST_CASE("the contest keeps an algorithm that multiplies") {
    NEEDS_GPU();
    const Stream stream;
    const Lt lt;
    const Ones ones(1);
    const GemmSpec spec = fp8(kM, kN, kK);
    LtProduct product(lt, lt_spec(spec), kContestants);
    REQUIRE(product.candidates() > 0);
    Answer refused;
    const auto ms = short_contest(product, ones.of(spec), stream.get(), refused);
    REQUIRE(ms);
    CHECK(*ms > 0);
    CHECK(refused.status == 0);
    CHECK(product.candidates() == 1);
    check(cudaMemset(ones.d.get(), 0xFF, ones.d.size() * 2), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    product.run(ones.of(spec), stream.get());
    stream.wait();
    CHECK(std::ranges::count(ones.d.download(), k256Bf16) == kM * kN);
}

TEST_CASE("a refusal has cuBLASLt's status and name, and nothing ran") {
    NEEDS_GPU();
    const Stream stream;
    const Lt lt;
    const Ones ones(1);
    LtSpec short_sums = lt_spec(fp8(kM, kN, kK));
    short_sums.compute = CUBLAS_COMPUTE_16F;
    short_sums.d = CUDA_R_16F;
    for (const LtSpec& spec :
         {lt_spec(fp8(kM, kN, kK, Element::e5m2, Element::e5m2)), short_sums, lt_spec(fp8(kM, kN, kK - 1))}) {
        const Asked asked = ask(lt, spec, ones.of(fp8(kM, kN, kK)), stream.get());
        CHECK(asked.answer.status != 0);
        CHECK((asked.answer.from == "heuristic" || asked.answer.from == "matmul"));
        CHECK_MESSAGE(asked.answer.words.starts_with("CUBLAS_STATUS_"), asked.answer.words);
        CHECK(asked.kernel.empty());
    }
    // The one before it is none of those after it.
    CHECK(ask(lt, fp8(kM, kN, kK), ones.of(fp8(kM, kN, kK)), stream.get()).answer.status == 0);
}

TEST_CASE("a layer has times of all products and casts, its progress rises, and its memory is freed") {
    NEEDS_GPU();
    LayerProbe probe;
    probe.m = 256;
    probe.n = 512;
    probe.k = 384;
    probe.repeats = 5;
    measure_layer(probe, {});  // the context and the libraries take memory once
    const std::size_t before = free_bytes();
    for (const char* recipe : {"delayed", "current"}) {
        probe.recipe = recipe;
        double last = 0;
        bool rises = true;
        const LayerTimes times = measure_layer(probe, [&](const LayerTimes&, double done) {
            rises = rises && done >= 0 && done <= 1 + 1e-9;
            last = done;
            return true;
        });
        CHECK(times.whole);
        CHECK(rises);
        CHECK(last > 0.9);
        for (const char* product : {"fprop", "dgrad", "wgrad"})
            for (const bool narrow : {false, true}) {
                const GridPoint* point = times.point(product, narrow);
                REQUIRE(point);
                CHECK_MESSAGE(point->ran(), point->words);
                CHECK(point->q1_ms <= point->median_ms);
                CHECK(point->median_ms <= point->q3_ms);
                CHECK(point->graph_ms > 0);
                CHECK(point->m == probe.m);
            }
        for (const char* what : {"x", "w", "dy"}) {
            REQUIRE(times.cast(what));
            CHECK(times.cast(what)->ran());
            CHECK(times.cast(what)->both_ms > 0);
        }
        CHECK(times.roofs.memory_tb_s > 0);
        CHECK(times.roofs.fp8.tflops > times.roofs.bf16.tflops);
    }
    constexpr std::size_t kSlack = std::size_t{16} << 20;
    CHECK(free_bytes() + kSlack >= before);
}

TEST_CASE("a layer that is stopped keeps what was measured") {
    NEEDS_GPU();
    LayerProbe probe;
    probe.m = probe.n = probe.k = 512;
    probe.repeats = 6;
    const LayerTimes times = measure_layer(probe, [](const LayerTimes& so_far, double) {
        const GridPoint* first = so_far.point("fprop", true);
        return !(first && first->ran());
    });
    CHECK_FALSE(times.whole);
    REQUIRE(times.point("fprop", true));
    CHECK(times.point("fprop", true)->ran());
    CHECK(times.point("wgrad", true) == nullptr);
    CHECK(times.casts.empty());
}

TEST_CASE("a layer that FP8 refuses is measured in BF16, and the refusal is its result") {
    NEEDS_HOPPER();
    LayerProbe probe;
    probe.m = probe.n = 256;
    probe.k = 257;
    probe.repeats = 5;
    const LayerTimes times = measure_layer(probe, {});
    REQUIRE(times.point("fprop", true));
    CHECK(times.point("fprop", true)->status != 0);
    CHECK_FALSE(times.point("fprop", true)->words.empty());
    REQUIRE(times.point("fprop", false));
    CHECK(times.point("fprop", false)->ran());
}

TEST_CASE("a layer that does not fit and one that cannot be are refused in a sentence") {
    NEEDS_GPU();
    LayerProbe probe;
    probe.m = probe.n = probe.k = 1 << 17;
    CHECK_THROWS_WITH_AS(measure_layer(probe, {}), doctest::Contains("GB are free"), Error);
    probe.k = 0;
    CHECK_THROWS_WITH_AS(measure_layer(probe, {}), doctest::Contains("from 1 to"), Error);
    probe = {};
    probe.recipe = "mxfp8";
    CHECK_THROWS_WITH_AS(measure_layer(probe, {}), doctest::Contains("none of the recipes"), Error);
}

TEST_CASE("a grid whose time is over has its ceilings, and says what it left out") {
    NEEDS_GPU();
    GridOptions options;
    options.seconds = 0.01;
    options.repeats = 3;
    const GemmGrid grid = measure_grid(options, {});
    CHECK(grid.points.empty());
    CHECK(grid.roofs.memory_tb_s > 0);
    CHECK(grid.roofs.bf16.tflops > 0);
    CHECK(std::ranges::count(grid.ceilings, std::string("end"), &GridCeiling::when) == 4);
    REQUIRE_FALSE(grid.skipped.empty());
    CHECK(grid.skipped.front().what.starts_with("points: 216 from"));
    CHECK(grid.skipped.front().why.find("time limit") != std::string::npos);
    // Stopped at once: nothing is measured any more.
    const GemmGrid stopped = measure_grid(options, [](const std::string&, double) { return false; });
    CHECK(stopped.points.empty());
    CHECK(stopped.skipped.front().why == "stopped");
}
