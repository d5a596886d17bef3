// bench step on a GPU, with a test double: what is computed from the trainer's own times.
#include <doctest/doctest.h>

#include "app/cli/bench/bench_step.h"
#include "app/cli/train/train_report.h"
#include "core/backend/infer_case.h"
#include "core/base/error.h"
#include "tests/fake_gpu.h"

using namespace fp8lab;
using namespace fp8lab::cli;

namespace {

// Products of 1e12 FLOP in 2 ms and in 1 ms, and one that the card refuses.
struct Card : test::FakeGpuBackend {
    using FakeGpuBackend::FakeGpuBackend;
    std::vector<Timed> time_products(std::array<int, 3>, int repeats) override {
        std::vector<Timed> lines(3);
        const char* names[] = {"bf16", "fp8", "mxfp8"};
        for (std::size_t i = 0; i < 3; ++i) {
            lines[i].name = names[i];
            lines[i].median_ms = 2 - static_cast<double>(i);
            lines[i].flop = 1e12;
            lines[i].repeats = repeats;
        }
        lines[2].refusal = "CUBLAS_STATUS_NOT_SUPPORTED";
        return lines;
    }
    // 2 ms, and 1 GB copied in 0.5 ms.
    InferTime time_infer(const InferCase& of, int repeats) override {
        asked = of;
        return {.median_ms = 2,
                .q1_ms = 1.9,
                .q3_ms = 2.2,
                .repeats = repeats,
                .copy_ms = 0.5,
                .copy_bytes = 1e9,
                .memory_bytes = 3e9};
    }
    InferCase asked;
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

TEST_CASE("several GPUs are timed beside one with the same rows, an MLP and a whole transformer") {
    class TwoCards final : public test::FakeGpuBackend {
      public:
        using FakeGpuBackend::FakeGpuBackend;
        int devices() const override { return 2; }
    };
    TwoCards cards{test::FakeGpu{}};
    const BenchOptions mlp{
        .layers = "16,32,16", .recipe = "delayed,bf16", .devices = "0,1", .batch = 8, .repeat = 2};
    const auto step = bench_step_devices(cards, mlp, true);
    CHECK(step["bench"] == "ddp");
    CHECK(step["layers"] == std::vector{16, 32, 16});
    CHECK(step["rows"] == 8);
    CHECK(step["gpus"] == 2);
    const BenchOptions options{.recipe = "delayed,bf16",
                               .shape = "32,2,48,16,1",
                               .devices = "all",
                               .shard = "zero1",
                               .gather = "e4m3",
                               .sum = "fp32",
                               .batch = 4,
                               .repeat = 2};
    const auto out = bench_blocks_devices(cards, options, true);
    CHECK(out["bench"] == "transformer");
    CHECK(out["sizes"]["d"] == 32);
    CHECK(out["rows"] == 64);  // tokens of each
    CHECK(out["shard"] == "zero1");
    CHECK(out["sum"] == "fp32");
    CHECK(out["vocabulary"] == 55);
    REQUIRE(out["arms"].size() == 2);
    CHECK(out["arms"][0]["gather"] == "e4m3");
    CHECK(out["arms"][1]["gather"] == "bf16");
    CHECK(out["arms"][0]["median_ms"] == 12);
    CHECK(out["arms"][0]["weak_scaling"] == 1);
    BenchOptions alone = options;
    alone.devices.clear();
    CHECK_THROWS_AS(step_spec(alone, "bf16", 1), Error);  // --shard without --devices
}

TEST_CASE("the sweep takes no shape of the user's") {
    Card card{test::FakeGpu{}};
    CHECK_THROWS_AS(sweep_step(card, {.layers = "16,32,16"}, true), Error);
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

TEST_CASE("train's report copes with steps without statistics and names provenance where the arms differ") {
    test::FakeGpuBackend card{test::FakeGpu{.statistics_every = 3}};
    TrainOptions options;
    options.recipes = "bf16,unscaled,nvfp4";
    options.batch = 16;
    options.steps = 6;
    const auto trainer = card.make_trainer(make_train_spec(options));
    TrainReport report(trainer->spec(), card.device());
    trainer->step(6);
    const Snapshot snapshot = trainer->snapshot();
    report.add(snapshot);
    const ArmSummary unscaled = report.summaries()[1];
    CHECK(unscaled.worst_underflow == "dy1");
    CHECK(unscaled.worst_underflow_pct > 1);  // of the two steps that were measured
    CHECK(unscaled.median_step_ms == 7.5);
    const auto json = report.json();
    CHECK(json["arms"][1]["provenance"] == "tensor-core");
    CHECK(json["arms"][2]["provenance"] == "gpu-emulated");
    CHECK(json["arms"][2]["emulated_because"] == "no such cast");
    CHECK_FALSE(json["arms"][1].contains("emulated_because"));
    CHECK(json["arms"][1]["memory_bytes"] == doctest::Approx(3.9e9));
    CHECK(json["arms"][1]["timed_steps"] == 64);
    REQUIRE(json["arms"][1]["parts_ms"].size() == 4);
    CHECK(json["arms"][1]["parts_ms"]["GEMM"] == doctest::Approx(5.1));
    CHECK(json["arms"][1]["first_loss"] == snapshot.arms[1].records.front().loss);
    CHECK(
        report.table().find("7.5 ms a step (GEMM 5.1, casts 1.125, optimiser 0.975, gaps 0.3), 3.90 GB\n") !=
        std::string::npos);
    CHECK(report.table().find("gpu-emulated") != std::string::npos);
    CHECK(report.csv().find("# nvfp4: gpu-emulated (no such cast)\n") != std::string::npos);
    CHECK(report.csv().find(",nan") == std::string::npos);
}

TEST_CASE("bench infer: the case that is asked for, and its floor by the copy of the same call") {
    Card card{test::FakeGpu{}};
    const auto llama = bench_infer_gpu(card, {.repeat = 7}, true);
    CHECK(card.asked.d == 4096);
    CHECK(card.asked.layers == 4);
    CHECK(llama["shape"] == std::vector{4096, 32, 8, 14336, 2048, 4});
    CHECK(llama["weights"] == "bf16");
    CHECK(llama["repeats"] == 7);
    CHECK(llama["weight_bytes"] == 2.0 * 4 * 218'103'808);  // L17's specification: 218.1 M weights a layer
    CHECK(llama["cache_bytes"] == 4.0 * 8'388'608);         // and 8.39 MB of BF16 for a sequence
    CHECK(llama["per_layer_us"] == doctest::Approx(500));
    CHECK(llama["copy_gb_per_s"] == doctest::Approx(2000));
    CHECK(llama["floor_ms"] == doctest::Approx((2.0 * 4 * 218'103'808 + 4.0 * 8'388'608) / 2e9));
    CHECK(llama["ratio_to_floor"] == doctest::Approx(2 / llama["floor_ms"].get<double>()));
    CHECK(llama["tokens_per_s"] == doctest::Approx(500));
    const BenchOptions options{
        .shape = "64,4,2,96,20,3", .weights = "e4m3-weight-only", .kv = "e4m3", .batch = 8};
    const auto out = bench_infer_gpu(card, options, true);
    CHECK(card.asked.batch == 8);
    CHECK(card.asked.kv_heads == 2);
    CHECK(card.asked.formats.weights == ServedWeights::weight_only);
    CHECK(card.asked.formats.cache == ServedCache::e4m3);
    CHECK(out["weight_bytes"] == 3.0 * (64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 96 * 64));
    CHECK(out["cache_bytes"] == 2.0 * 3 * 8 * 2 * 16 * 20);
    CHECK(out["tokens_per_s"] == doctest::Approx(4000));
}
