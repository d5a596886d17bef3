// L9 measuring on a GPU, which is a double here: what is measured, what stays after a stop, what a failure says.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/error.h"
#include "labs/speed/model.h"
#include "labs/speed/model_figures.h"
#include "tests/fake_gpu.h"
#include "tests/synthetic_grid.h"

using namespace fp8lab;
using namespace fp8lab::speed;

namespace {

struct Probed {
    std::vector<LayerProbe> probes;
    std::string refusal;  // why nothing can be measured
    bool no_fp8 = false;  // a GPU below compute capability 8.9
    std::atomic<int> rounds_before_end = 2;
    std::atomic<bool> stopped = false;
};

class ProbedBackend : public test::FakeGpuBackend {
  public:
    explicit ProbedBackend(std::shared_ptr<Probed> probed)
        : FakeGpuBackend(test::FakeGpu{}), probed_(std::move(probed)) {}
    LayerTimes measure_layer(const LayerProbe& probe, const LayerProgress& progress) override {
        if (!probed_->refusal.empty()) throw Error(ErrorKind::backend, "GPU memory", probed_->refusal);
        probed_->probes.push_back(probe);
        LayerTimes times;
        times.roofs.memory_tb_s = 4;
        const test::SyntheticGpu gpu;
        for (const std::string product : {"fprop", "dgrad", "wgrad"}) {
            for (const bool fp8 : {false, true}) {
                GridPoint point = test::synthetic_point(gpu, product, probe.m, probe.n, probe.k,
                                                        fp8 ? kind_of(probe, product) : "bf16");
                if (fp8 && probed_->no_fp8) {
                    static_cast<GridTime&>(point) = {};
                    point.status = 15, point.words = "CUBLAS_STATUS_NOT_SUPPORTED (15)";
                }
                times.points.push_back(point);
            }
            for (int round = 0; round < probed_->rounds_before_end; ++round)
                if (!progress(times, 0.5)) {
                    probed_->stopped = true;
                    return times;
                }
        }
        GridCast cast;
        cast.what = "x", cast.recipe = probe.recipe;
        static_cast<GridTime&>(cast) = gpu.timed(0.1);
        times.casts.push_back(cast);
        cast.what = "w";
        times.casts.push_back(cast);
        times.notices = {"The GPU works for others too."};
        times.whole = true;
        return times;
    }

  private:
    std::shared_ptr<Probed> probed_;
};

Backends probed_backends(const std::shared_ptr<Probed>& probed) {
    return {cpu_backend(), [probed]() -> Result<std::unique_ptr<Backend>> {
                return std::unique_ptr<Backend>(std::make_unique<ProbedBackend>(probed));
            }};
}

std::shared_ptr<const Shipped> one_recording() {
    return std::make_shared<const Shipped>(Shipped{{test::synthetic_recording()}, ""});
}

double number(const Lab& lab, std::string_view name) {
    for (const Metric& metric : lab.metrics())
        if (metric.name == name) return metric.value;
    return NAN;
}

}  // namespace

TEST_CASE("L9 live: Measure here measures the chosen layer first, then those beside it, and shows them") {
    const auto probed = std::make_shared<Probed>();
    SpeedLab lab(one_recording(), probed_backends(probed));
    set_field(lab.fields(), "m=1000");  // live, any size
    set_field(lab.fields(), "recipe=block128");
    set_field(lab.fields(), "repeats=50");
    lab.update();
    lab.act("measure");
    REQUIRE(probed->probes.size() == 3);
    CHECK(probed->probes[0].m == 1000);
    CHECK(probed->probes[0].recipe == "block128");
    CHECK(probed->probes[0].repeats == 50);
    CHECK(probed->probes[1].n == kNotebook.n);
    CHECK(lab.params().source == kLive);
    CHECK(number(lab, "recorded") == 0);
    CHECK(number(lab, "fprop.ratio") > 0);
    CHECK(number(lab, "casts_us") == doctest::Approx(200));
    CHECK(number(lab, "roof_memory") == 4);
    CHECK(lab.provenance() == Provenance::tensor_core);
    CHECK(lab.device() == "Test double");
    CHECK(std::ranges::count(lab.notices(), "The GPU works for others too.") == 1);
    lab.act("measure");  // those beside it are known already
    CHECK(probed->probes.size() == 4);
}

TEST_CASE("L9 live: what was not measured has no time, and no recording stands in for it") {
    SpeedLab lab(one_recording(), probed_backends(std::make_shared<Probed>()));
    lab.act("measure");
    CHECK(number(lab, "fprop.ratio") > 0);
    set_field(lab.fields(), "m=64");
    lab.update();
    CHECK(std::isnan(number(lab, "fprop.ratio")));
    CHECK(lab.figures().front().title == "This layer was not measured yet: press Measure here");
    CHECK(std::isnan(number(lab, "step.speedup")));
    set_field(lab.fields(), "source=synthetic");
    lab.update();
    CHECK(number(lab, "fprop.ratio") > 0);
}

TEST_CASE("L9 live: every M of this N and K becomes a sweep") {
    const auto probed = std::make_shared<Probed>();
    SpeedLab lab(one_recording(), probed_backends(probed));
    lab.act("measure_grid");
    CHECK(lab.outcome().sweep.points.size() == 12);
    CHECK(lab.outcome().all_m.front() == 16);
    CHECK(lab.outcome().all_m.back() == 32768);
}

TEST_CASE("L9 live: a stop keeps what was measured, the rest has no time") {
    const auto probed = std::make_shared<Probed>();
    probed->rounds_before_end = 1'000'000;  // until it is stopped, in the first product
    SpeedLab lab(one_recording(), probed_backends(probed));
    lab.set_wake([] {});
    lab.act("measure");
    const auto until = [&](auto done) {
        for (int i = 0; i < 5000 && !done(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            lab.update();
        }
        REQUIRE(done());
    };
    until([&] { return number(lab, "fprop.fp8_ms") > 0; });  // shown while it is measured
    CHECK(lab.busy());
    lab.act("stop");
    until([&] { return !lab.busy(); });
    CHECK(probed->stopped);
    CHECK(number(lab, "fprop.ratio") > 0);
    CHECK(std::isnan(number(lab, "dgrad.ratio")));
    CHECK(number(lab, "recorded") == 0);
}

TEST_CASE("L9 live: memory that is too small, and no GPU at all, are said in a sentence") {
    const auto probed = std::make_shared<Probed>();
    probed->refusal = "the operands need 96.4 GB, 79.1 GB are free";
    SpeedLab lab(one_recording(), probed_backends(probed));
    lab.act("measure");
    CHECK(
        std::ranges::any_of(lab.notices(), [](const std::string& n) { return n.find("96.4 GB") != n.npos; }));
    CHECK(std::isnan(number(lab, "fprop.ratio")));
    probed->refusal.clear();
    lab.act("measure");
    CHECK(number(lab, "fprop.ratio") > 0);
    CHECK(std::ranges::none_of(lab.notices(),
                               [](const std::string& n) { return n.find("96.4 GB") != n.npos; }));

    SpeedLab bare(one_recording(), Backends(cpu_backend()));
    bare.act("measure");
    CHECK(std::isnan(number(bare, "fprop.ratio")));
    CHECK(std::ranges::any_of(bare.notices(),
                              [](const std::string& n) { return n.starts_with("No GPU here"); }));
}

TEST_CASE("L9 live: a GPU without FP8 has BF16 times, and the refusal for FP8") {
    const auto probed = std::make_shared<Probed>();
    probed->no_fp8 = true;
    SpeedLab lab(one_recording(), probed_backends(probed));
    lab.act("measure");
    CHECK(number(lab, "fprop.bf16_ms") > 0);
    CHECK(number(lab, "fprop.status") == 15);
    CHECK(number(lab, "refused") == 3);
    CHECK(std::isnan(number(lab, "fprop.ratio")));
    CHECK(lab.figures().front().title ==
          "cuBLASLt refuses 3 of 3 FP8 products: CUBLAS_STATUS_NOT_SUPPORTED (15)");
}

TEST_CASE("L9 live: one step is trained in BF16 and in the recipe, and its parts are those of the GPU") {
    SpeedLab lab(one_recording(), probed_backends(std::make_shared<Probed>()));
    for (const char* setting : {"m=16", "n=256", "k=256"}) set_field(lab.fields(), setting);
    lab.act("measure_step");
    CHECK(number(lab, "step.bf16_ms") == doctest::Approx(test::fake_cost(0).step_ms));
    CHECK(number(lab, "step.fp8_ms") == doctest::Approx(test::fake_cost(1).step_ms));
    CHECK(number(lab, "gemm_share") == doctest::Approx(0.68));
    CHECK(number(lab, "amdahl") == doctest::Approx(1 / (1 - 0.68 + 0.68 * 7.5 / 12)));
    const auto metrics = lab.metrics();
    CHECK(std::ranges::find(metrics, "step.layers", &Metric::name)->text == "256-256-256, batch 16");
}

TEST_CASE("L9 live: times that vary by more than a tenth are called noisy in the panel's number") {
    GridTime time;
    time.median_ms = 1, time.q1_ms = 0.9, time.q3_ms = 1.05;
    CHECK(iqr_pct(time) == doctest::Approx(15));
    CHECK(iqr_pct(time) > kNoisyPct);
    CHECK(std::isnan(iqr_pct(GridTime{})));
}
