// L8 on a GPU: what it shows, how it fails, and how it goes back to the CPU. With a test double.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <thread>

#include "core/base/error.h"
#include "labs/live/cost.h"
#include "labs/train/model.h"
#include "tests/fake_gpu.h"

using namespace fp8lab;
using namespace fp8lab::train;
using test::FakeGpu;

namespace {

struct GpuLab : TrainLab {
    explicit GpuLab(Backends backends, std::initializer_list<const char*> settings = {})
        : TrainLab(std::move(backends)) {
        change("batch=16");
        for (const char* setting : settings) change(setting);
    }
    void change(const char* setting) {
        set_field(fields(), setting);
        update();
    }
    std::string words(std::string_view name) const { return find(name).text; }
    double number(std::string_view name) const { return find(name).value; }
    bool has(std::string_view name) const {
        for (const Metric& metric : metrics())
            if (metric.name == name) return true;
        return false;
    }
    Metric find(std::string_view name) const {
        for (const Metric& metric : metrics())
            if (metric.name == name) return metric;
        throw std::runtime_error("no metric " + std::string(name));
    }
    Figure figure(std::string_view id) const {
        for (Figure& figure : figures())
            if (figure.id == id) return figure;
        throw std::runtime_error("no figure " + std::string(id));
    }
};

}  // namespace

TEST_CASE("the GPU is made when a training first needs it, once, and only where it was asked for") {
    const auto gpu = std::make_shared<FakeGpu>();
    GpuLab lab(test::fake_backends(gpu), {"backend=cpu"});
    lab.advance(2);
    CHECK(gpu->made == 0);
    CHECK(lab.provenance() == Provenance::cpu_emulated);
    CHECK(lab.device().empty());
    lab.change("backend=auto");
    CHECK(lab.waiting() == std::vector<std::string>{"backend"});
    for (int i = 0; i < 2; ++i) {
        lab.restart();
        lab.advance(2);
        CHECK(lab.provenance() == Provenance::tensor_core);
        CHECK(lab.device() == "Test double, 80 GB");
        CHECK(lab.waiting().empty());
    }
    CHECK(gpu->made == 1);
}

TEST_CASE("costs are shown where they were measured: medians, quartiles, speed-up, TFLOP/s, memory, parts") {
    GpuLab lab(test::fake_backends());
    lab.advance(3);
    CHECK(lab.number("step_ms_a") == 12);
    CHECK(lab.number("step_ms_b") == 7.5);
    CHECK(lab.number("step_q1_ms_b") == doctest::Approx(7.425));
    CHECK(lab.number("tflops_a") == doctest::Approx(500));
    CHECK(lab.number("speedup_b") == doctest::Approx(1.6));
    CHECK(lab.number("memory_b") == doctest::Approx(3.9e9));
    const auto speedup = speedup_of(lab.history(), 1);
    REQUIRE(speedup);
    CHECK(speedup->lo == doctest::Approx(0.99 * 12 / (1.02 * 7.5)));
    CHECK(speedup->hi == doctest::Approx(1.02 * 12 / (0.99 * 7.5)));
    const Figure step = lab.figure("step");
    CHECK(step.title == "FP8 is 1.60 times as fast as BF16");
    double end = 0;
    int bands = 0;
    for (const Series& series : step.series)
        if (const auto* band = std::get_if<BandSeries>(&series.shape)) end = band->x->back(), ++bands;
    CHECK(bands == 8);
    CHECK(end == doctest::Approx(7.5));  // the parts of arm B end where its step does
    lab.change("backend=cpu");
    lab.restart();
    lab.advance(1);
    CHECK_FALSE(lab.has("tflops_a"));
    CHECK_THROWS(lab.figure("step"));
}

TEST_CASE("where the arms' provenance differs, every figure says so arm by arm") {
    GpuLab lab(test::fake_backends(), {"arm_b=nvfp4"});
    lab.advance(1);
    CHECK(lab.provenance() == Provenance::gpu_emulated);
    CHECK(lab.words("provenance_a") == "tensor-core");
    CHECK(lab.words("provenance_b") == "gpu-emulated");
    CHECK(lab.figure("loss").parameters[1].second == "bf16 tensor-core, nvfp4 gpu-emulated");
}

TEST_CASE("steps without statistics leave gaps, not zeros") {
    const auto means = [](Backends backends, int every) {
        GpuLab lab(std::move(backends), {"arm_b=unscaled", "steps=40"});
        lab.advance(40);
        const TensorTrack& dy1 = *lab.history().arms()[1].find(MlpTensor{TensorClass::dy, 1});
        CHECK(dy1.amax.size() == 40);
        CHECK(dy1.underflow_pct.size() == static_cast<std::size_t>(40 / every));
        double sum = 0;  // of every fourth step, whatever was measured
        for (std::size_t i = 0; i < dy1.underflow_pct.size(); ++i)
            if (static_cast<int>(dy1.underflow_step.values()[i]) % 4 == 0)
                sum += dy1.underflow_pct.values()[i];
        return std::pair{dy1.underflow_mean_pct(), sum / 10};
    };
    const auto [gpu_mean, gpu_fourths] = means(test::fake_backends({.statistics_every = 4}), 4);
    const auto [cpu_mean, cpu_fourths] = means(Backends(cpu_backend()), 1);
    CHECK(gpu_mean == doctest::Approx(cpu_fourths).epsilon(1e-12));
    CHECK(gpu_fourths == cpu_fourths);
    CHECK(cpu_mean != cpu_fourths);
    GpuLab never(test::fake_backends({.statistics_every = 1000}), {"steps=40"});
    never.advance(2);
    never.advance(38);
    CHECK(never.verdict().empty());
    CHECK(std::isfinite(never.number("worst_underflow_pct")));  // step 0 was measured
}

TEST_CASE("a GPU that turns out to be of no use: auto says why and takes the CPU, cuda fails") {
    const std::string reason =
        "The NVIDIA driver is too old: it supports CUDA 11.4, this program was built for 13.0.";
    GpuLab automatic(test::fake_backends({.refusal = reason}));
    CHECK(automatic.backend() == "cuda");
    automatic.advance(2);
    CHECK(automatic.step() == 2);
    CHECK(automatic.provenance() == Provenance::cpu_emulated);
    CHECK(automatic.backend() == "cpu");
    CHECK(automatic.gpu_reason() == reason);
    CHECK(automatic.waiting().empty());
    GpuLab explicitly(test::fake_backends({.refusal = reason}), {"backend=cuda"});
    try {
        explicitly.advance(2);
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::backend);
        CHECK(std::string(error.what()).find(reason) != std::string::npos);
    }
    CHECK(explicitly.failed());
    CHECK(explicitly.message().find(reason) != std::string::npos);
}

TEST_CASE("out of memory is a sentence on the stage, and the CPU is still there") {
    GpuLab lab(test::fake_backends(), {"task=noise", "size=4096", "backend=cuda"});
    CHECK(lab.spec().layers == std::vector{4096, 16384, 4096});
    CHECK_THROWS_AS(lab.advance(1), Error);
    CHECK(lab.message() == "GPU memory: the arms need 96.4 GB, 79.1 GB are free; half the batch would fit");
    CHECK(lab.figures()[0].title == lab.message());
    lab.change("backend=cpu");
    lab.restart();
    CHECK_THROWS_WITH_AS(lab.advance(1), doctest::Contains("4096-16384-4096: is offered on the GPU only"),
                         Error);
    lab.change("size=768");
    lab.change("batch=1");
    lab.restart();
    lab.advance(1);
    CHECK(lab.step() == 1);
    CHECK(lab.message().empty());
}

TEST_CASE("a GPU lost while it trains ends that training, what it reached stays, and the CPU goes on") {
    GpuLab lab(test::fake_backends({.lost_at = 6}));
    lab.advance(5);
    lab.advance(5);
    CHECK(lab.failed());
    CHECK(lab.message() == "step: the GPU is lost (cudaErrorDeviceLost)");
    CHECK(lab.history().arms()[0].loss.size() >= 5);
    lab.change("backend=cpu");
    lab.restart();
    lab.advance(8);
    CHECK(lab.step() == 8);
}

TEST_CASE("a reset waits neither for a GPU that prepares itself nor for its last step") {
    std::promise<void> ready;
    GpuLab lab(test::fake_backends(
        {.prepare = [go = ready.get_future().share()](const Preparation&) { go.wait(); }}));
    lab.run();
    lab.restart();  // would never return
    lab.run();
    lab.restart();
    CHECK(lab.step() == 0);
    ready.set_value();
    lab.advance(3);
    CHECK(lab.step() == 3);
}

TEST_CASE("what a GPU prepares is told while it lasts") {
    std::promise<void> ready;
    GpuLab lab(test::fake_backends({.prepare = [go = ready.get_future().share()](const Preparation& told) {
        told.begin("bf16: fprop of layer 1");
        go.wait();
    }}));
    CHECK(lab.preparing().empty());
    lab.run();
    for (int ms = 0; ms < 20'000 && lab.preparing().empty(); ++ms) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lab.update();
    }
    CHECK(lab.preparing() == "Preparing bf16: fprop of layer 1");
    ready.set_value();
    lab.advance(3);
    CHECK(lab.preparing().empty());
}
