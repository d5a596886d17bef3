// bench step on a GPU, with a test double: what is computed from the trainer's own times.
#include <doctest/doctest.h>

#include "app/cli/bench_step.h"
#include "core/base/error.h"
#include "tests/fake_gpu.h"
#include "tests/unit/cli/process.h"

using namespace fp8lab;
using namespace fp8lab::cli;

namespace {

// Products of 1.1e12 FLOP in 2 ms and in 1 ms, and one that the card refuses.
struct Card : test::FakeGpuBackend {
    using FakeGpuBackend::FakeGpuBackend;
    std::vector<Timed> time_products(std::array<int, 3>, int repeats) override {
        return {
            {.name = "bf16", .median_ms = 2, .q1_ms = 1.9, .q3_ms = 2.2, .repeats = repeats, .flop = 1e12},
            {.name = "fp8", .median_ms = 1, .q1_ms = 1, .q3_ms = 1, .repeats = repeats, .flop = 1e12},
            {.name = "mxfp8", .refusal = "CUBLAS_STATUS_NOT_SUPPORTED"}};
    }
};

}  // namespace

TEST_CASE("bench step takes the GPU's own times, and compares with bf16 and with the fastest product") {
    Card card{test::FakeGpu{}};
    const BenchOptions options{.layers = "16,32,16", .recipe = "delayed,bf16", .batch = 8, .repeat = 2};
    const auto out = bench_step_gpu(card, options, true);
    CHECK(out["provenance"] == "tensor-core");
    CHECK(out["reference"] == "bf16");
    REQUIRE(out["ceilings"].size() == 3);
    CHECK(out["ceilings"][0]["tflops"] == doctest::Approx(500));
    CHECK(out["ceilings"][2]["refusal"] == "CUBLAS_STATUS_NOT_SUPPORTED");
    REQUIRE(out["arms"].size() == 2);
    const auto& delayed = out["arms"][0];  // the double's first arm: 12 ms; bf16 is its second, 7.5 ms
    CHECK(delayed["recipe"] == "delayed");
    CHECK(delayed["median_ms"] == 12);
    CHECK(delayed["iqr_ms"] == doctest::Approx(0.36));
    CHECK(delayed["ratio_to_reference"] == doctest::Approx(1.6));
    CHECK(delayed["tflops"] == doctest::Approx(500));
    CHECK(delayed["ratio_to_ceiling"] == doctest::Approx(0.5));
    CHECK(delayed["parts_ms"]["GEMM"] == doctest::Approx(0.68 * 12));
    CHECK(delayed["provenance"] == "tensor-core");
    CHECK(out["arms"][1]["ratio_to_reference"] == 1);
}

TEST_CASE("the sweep needs a GPU and says so; with layers of its own it takes none") {
    Card card{test::FakeGpu{}};
    CHECK_THROWS_AS(sweep_step(card, {.layers = "16,32,16"}, true), Error);
    const Finished run = fp8lab("bench step --backend cpu --sweep");
    CHECK(run.code == 3);
    CHECK(run.out.empty());
    CHECK(run.err.find("bench step --sweep: ") != std::string::npos);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(fp8lab("bench cast --sweep").code == 2);
}

TEST_CASE("sizes that the card refuses leave a reason, not a time") {
    Card card{test::FakeGpu{.widest = 0}};
    const auto out = sweep_step(card, {.repeat = 1}, true);
    REQUIRE(out["points"].size() == 20);
    for (const auto& point : out["points"]) {
        CHECK(point["refusal"].get<std::string>().find("GPU memory") != std::string::npos);
        CHECK_FALSE(point.contains("speedup"));
    }
    REQUIRE(out["crossover"].size() == 4);
    CHECK(out["crossover"][0]["width"].is_null());
}
