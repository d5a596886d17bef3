// L9's arithmetic on a grid whose times follow a formula (tests/synthetic_grid.h), so that every number has a
// second derivation. The shipped recording is held by speed_recorded_test.cpp.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "labs/course/exercise_run.h"
#include "labs/speed/model.h"
#include "labs/speed/model_figures.h"
#include "tests/synthetic_grid.h"

using namespace fp8lab;
using namespace fp8lab::speed;

namespace {

Backends no_gpu() { return {cpu_backend()}; }

std::shared_ptr<const Shipped> with(std::vector<Recording> recordings) {
    return std::make_shared<const Shipped>(Shipped{std::move(recordings), ""});
}

struct Made {
    explicit Made(std::vector<Recording> recordings = {test::synthetic_recording()})
        : lab(with(std::move(recordings)), no_gpu()) {}
    Made& set(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
        return *this;
    }
    double operator()(std::string_view name) const {
        const auto metrics = lab.metrics();
        const auto found = std::ranges::find(metrics, name, &Metric::name);
        REQUIRE_MESSAGE(found != metrics.end(), name);
        return found->value;
    }
    std::string title(std::string_view id) const {
        for (const Figure& figure : lab.figures())
            if (figure.id == id) return figure.title;
        FAIL("no figure");
        return "";
    }
    SpeedLab lab;
};

}  // namespace

TEST_CASE("L9: FLOP per byte counts every operand once, and the scales") {
    // 2MNK over the bytes of x, w and the result, by hand.
    CHECK(intensity("fprop", {8192, 16384, 4096}, false, "delayed", 2) ==
          doctest::Approx(2341).epsilon(0.0005));
    CHECK(intensity("fprop", {8192, 16384, 4096}, true, "delayed", 2) ==
          doctest::Approx(2979).epsilon(0.0005));
    CHECK(intensity("dgrad", {8192, 16384, 4096}, true, "delayed", 2) ==
          doctest::Approx(4096).epsilon(0.0005));
    CHECK(intensity("wgrad", {8192, 16384, 4096}, true, "delayed", 4) ==
          doctest::Approx(2521).epsilon(0.0005));
    CHECK(intensity("fprop", {32, 3072, 768}, false, "delayed", 2) == doctest::Approx(30.4).epsilon(0.002));
    CHECK(intensity("fprop", {32, 3072, 768}, true, "delayed", 2) == doctest::Approx(58.5).epsilon(0.002));
    // fprop of (256, 512, 1024) with a scale for each row: 256 + 512 scales of 4 bytes.
    const double rows = 2.0 * 256 * 512 * 1024 / (256 * 1024 + 512 * 1024 + 2 * 256 * 512 + 4 * (256 + 512));
    CHECK(intensity("fprop", {256, 512, 1024}, true, "rowwise", 2) == doctest::Approx(rows));
    // Blocks of 128: 256 x 8 of x, 4 x 8 of w; wgrad reads no w, so both have 1 x 128.
    const double blocks =
        2.0 * 256 * 512 * 1024 / (256 * 1024 + 512 * 1024 + 2 * 256 * 512 + 4 * (256 * 8 + 4 * 8));
    CHECK(intensity("fprop", {256, 512, 1024}, true, "block128", 2) == doctest::Approx(blocks));
    const double wgrad =
        2.0 * 256 * 512 * 1024 / (256 * 512 + 256 * 1024 + 4 * 512 * 1024 + 4 * (512 * 2 + 1024 * 2));
    CHECK(intensity("wgrad", {256, 512, 1024}, true, "block128", 4) == doctest::Approx(wgrad));
}

TEST_CASE("L9: the times, ratios and quartiles are those of the recording") {
    const test::SyntheticGpu gpu;
    const Made made;
    const double bf16 = gpu.product_ms(8192, 16384, 4096, false, 2),
                 fp8 = gpu.product_ms(8192, 16384, 4096, true, 2);
    CHECK(made("fprop.bf16_ms") == doctest::Approx(bf16));
    CHECK(made("fprop.fp8_ms") == doctest::Approx(fp8));
    CHECK(made("fprop.ratio") == doctest::Approx(bf16 / fp8));
    CHECK(made("fprop.ratio_q1") == doctest::Approx(0.99 * bf16 / (1.01 * fp8)));
    CHECK(made("fprop.ratio_q3") == doctest::Approx(1.01 * bf16 / (0.99 * fp8)));
    CHECK(made("fprop.bf16_iqr_pct") == doctest::Approx(2));
    CHECK(made("fprop.bf16_tflops") == doctest::Approx(2.0 * 8192 * 16384 * 4096 / bf16 / 1e9));
    CHECK(made("wgrad.bf16_ms") == doctest::Approx(gpu.product_ms(16384, 4096, 8192, false, 4)));
    CHECK(made("dgrad.fp8_ms") == doctest::Approx(gpu.product_ms(8192, 4096, 16384, true, 2)));
    CHECK(made("recorded") == 1);
}

TEST_CASE("L9: casts by hand, counted as asked, read twice by current scaling") {
    Made made;
    const double elements = 8192.0 * 4096 + 16384.0 * 4096;
    const auto us = [](double bytes, int casts) { return bytes / 3.11e6 + 2.5 * casts; };
    CHECK(made("casts_us") == doctest::Approx(us(3 * elements, 2)));
    CHECK(made("ratio_with_casts") ==
          doctest::Approx(made("fprop.bf16_ms") / (made("fprop.fp8_ms") + made("casts_us") / 1000)));
    made.set({"recipe=current"});
    CHECK(made("casts_us") == doctest::Approx(us(5 * elements, 2)));
    CHECK(made("cast_x_us") == doctest::Approx(us(5 * 8192.0 * 4096, 1)));
    made.set({"recipe=delayed", "casts=x"});
    CHECK(made("cast_x_us") == made("casts_us"));
    CHECK(made("cast_x_both_us") == doctest::Approx(1.3 * made("cast_x_us")));
    CHECK(made("casts_us") == doctest::Approx(us(3 * 8192.0 * 4096, 1)));
    made.set({"casts=none"});
    CHECK(made("casts_us") == 0);
    CHECK(made("ratio_with_casts") == doctest::Approx(made("fprop.ratio")));
}

TEST_CASE("L9: crossover and 1.5 are the smallest recorded M that the formula gives") {
    const test::SyntheticGpu gpu;
    for (const std::string casts : {"x+w", "x", "none"}) {
        CAPTURE(casts);
        Made made;
        made.set({"casts=" + casts});
        double crossover = NAN, enough = NAN;  // the formula's ratio rises with M
        for (int m = 32768; m >= 16; m /= 2) {
            const double x = 3.0 * m * 4096 / 3.11e9 + 0.0025, w = 3.0 * 16384 * 4096 / 3.11e9 + 0.0025;
            const double fp8 = gpu.product_ms(m, 16384, 4096, true, 2) + (casts != "none" ? x : 0) +
                               (casts == "x+w" ? w : 0);
            const double ratio = gpu.product_ms(m, 16384, 4096, false, 2) / fp8;
            if (ratio >= 1) crossover = m;
            if (ratio >= 1.5) enough = m;
        }
        CHECK(made("crossover_m") == crossover);
        if (std::isnan(enough))
            CHECK(std::isnan(made("m_at_1_5")));
        else
            CHECK(made("m_at_1_5") == enough);
    }
}

TEST_CASE("L9: the title of the sweep says at every M, from one on, or at no M") {
    Made made;
    made.set({"casts=none"});
    CHECK(made.title("sweep") == "Without casts FP8 wins at every M");
    made.set({"casts=x+w"});
    CHECK(made.title("sweep") ==
          fmt::format("With its casts FP8 wins from M = {:.0f} on", made("crossover_m")));
    test::SyntheticGpu slow;
    slow.fp8_tflops = 600, slow.memory_tb_s = 1000, slow.launch_ms = 0;
    Made never({test::synthetic_recording("slow", slow)});
    CHECK(never.title("sweep") == "With its casts FP8 wins at no M");
    CHECK(std::isnan(never("crossover_m")));
}

TEST_CASE("L9: one faster point below a slower one is not where FP8 wins from") {
    Recording recording = test::synthetic_recording();
    for (GridPoint& point : recording.grid->points)
        if (point.product == "fprop" && point.m == 16384 && point.n == 16384 && point.kind != "bf16")
            point.median_ms *= 10, point.q1_ms *= 10, point.q3_ms *= 10;
    CHECK(Made({recording})("crossover_m") == 32768);
}

TEST_CASE("L9: no point is above its roof, whatever is chosen, the ridge is where the roofs meet") {
    for (const std::string recipe : {"delayed", "current", "rowwise", "block128"})
        for (const std::string fast : {"fprop", "all", "none"}) {
            CAPTURE(recipe);
            CAPTURE(fast);
            Made made;
            made.set({"recipe=" + recipe, "fast_accum=" + fast});
            const auto& o = made.lab.outcome();
            for (const Product* product :
                 {&o.products[0], &o.products[1], &o.products[2], &o.notebook, &o.middle}) {
                if (product->ran(false)) CHECK(product->tflops(false) <= o.roofs.bf16);
                if (product->ran(true)) CHECK(product->tflops(true) <= o.roofs.fp8);
            }
            CHECK(made("ridge_bf16") == doctest::Approx(made("roof_bf16") / made("roof_memory")));
        }
}

TEST_CASE("L9: Amdahl's law on a step whose parts are known") {
    // BF16 8 + 0.5 + 1.5 = 10 ms, FP8 4 + 0.5 + 1.5 = 6 ms: f = 0.8, r = 2.
    Made made;
    CHECK(made("gemm_share") == doctest::Approx(0.8));
    CHECK(made("gemm_ratio") == doctest::Approx(2));
    CHECK(made("amdahl") == doctest::Approx(1 / 0.6));
    CHECK(made("amdahl_casts") == doctest::Approx(10.0 / 6));
    CHECK(made("step.speedup") == doctest::Approx(10.0 / 6));
    CHECK(made("step.saved_pct") == doctest::Approx(40));
    CHECK(made("amdahl_error_pct") == doctest::Approx(0).epsilon(1e-9));
    CHECK(made("amdahl_ceiling") == doctest::Approx(5));
    CHECK(made("step.speedup_q1") == doctest::Approx(9.9 / 6.06));
    CHECK(made("parts_over_step") == doctest::Approx(1));
    // Casts that take 2 ms longer: the law does not see them, the prediction with casts does.
    Recording slow = test::synthetic_recording();
    slow.steps = {test::synthetic_step(4096, 16384, 8192, 8, 4, 0.5, 2.5)};
    const Made casts({slow});
    CHECK(casts("amdahl") == doctest::Approx(1 / 0.6));
    CHECK(casts("step.speedup") == doctest::Approx(10.0 / 8));
    CHECK(casts("amdahl_casts") == doctest::Approx(10.0 / 8));
    CHECK(casts("amdahl_error_pct") == doctest::Approx(100 * (8 / 6.0 - 1)));
}

TEST_CASE("L9: where parts run side by side, or some are missing, Amdahl's law is not applied") {
    for (const double of_median : {0.5, 0.89, 0.91, 1.14, 1.16, 2.0}) {
        CAPTURE(of_median);
        Recording recording = test::synthetic_recording();
        for (RecordedArm& arm : recording.steps.front().arms) {
            arm.median_ms /= of_median;
            arm.q1_ms /= of_median, arm.q3_ms /= of_median;
        }
        Made made({recording});
        CHECK(made("parts_over_step") == doctest::Approx(of_median));
        const bool applies = of_median > 0.9 && of_median < 1.15;
        CHECK(std::isnan(made("amdahl")) == !applies);
        CHECK((made.title("step") == "Parts of this step run side by side: Amdahl does not apply") ==
              !applies);
        CHECK_FALSE(std::isnan(made("step.speedup")));
    }
}

TEST_CASE("L9: without a step of this layer the nearest one is offered, of this recipe only") {
    Made made;
    made.set({"m=4096"});
    CHECK(made.title("step") == "No step was recorded for this layer");
    CHECK(std::isnan(made("step.speedup")));
    REQUIRE(made.lab.outcome().step.nearest);
    CHECK(made.lab.outcome().step.nearest->batch == 8192);
    made.set({"recipe=block128"});
    CHECK(made.lab.outcome().step.nearest == nullptr);
    // A step with weights in BF16 does another update: it is not this one.
    Recording other = test::synthetic_recording();
    other.steps.front().state = "bf16";
    CHECK(std::isnan(Made({other})("step.speedup")));
}

TEST_CASE("L9: padding goes to the next multiple of 16 and its waste is exact") {
    CHECK(padded(4096) == 4096);
    CHECK(padded(4097) == 4112);
    CHECK(padded(1) == 16);
    Made made;
    made.set({"m=4096", "n=4096", "k=4096"});
    CHECK(made("pad_waste_pct") == 0);
    CHECK(made("refused") == 0);
    made.set({"k_off=1", "view=align"});
    CHECK(made("pad_waste_pct") == doctest::Approx(100 * (4112.0 / 4097 - 1)));
    CHECK(made("refused") == 3);
    CHECK(made("fprop.status") == 15);
    CHECK(std::isnan(made("fprop.ratio")));
    CHECK(made("fprop.bf16_ms") > 0);
    CHECK(made.title("align") ==
          "K = 4097: cuBLASLt refuses 3 of 3 FP8 products; padding to 4112 wastes 0.37 %");
    made.set({"pad=on"});
    CHECK(made("fprop.status") == 0);
    CHECK(made("fprop.fp8_ms") ==
          doctest::Approx(test::SyntheticGpu{}.product_ms(4096, 4096, 4112, true, 2)));
    made.set({"pad=off", "k_off=0", "m_off=1"});  // the batch: summed over in wgrad only
    CHECK(made("fprop.status") == 0);
    CHECK(made("wgrad.status") == 15);
    CHECK(made("refused") == 1);
}

TEST_CASE("L9: one product of 3d against three, formats and zeros are the recording's") {
    const test::SyntheticGpu gpu;
    Made made;
    const double three = 3 * gpu.product_ms(8192, 4096, 4096, true, 2),
                 one = gpu.product_ms(8192, 12288, 4096, true, 2);
    CHECK(made("qkv.fp8_gain_pct") == doctest::Approx(100 * (three / one - 1)));
    CHECK(made("formats.fp32_mb") == doctest::Approx(201.3).epsilon(0.001));
    CHECK(made("formats.fp8-fast_mb") == doctest::Approx(67.11).epsilon(0.001));
    CHECK(made("formats.mxfp8_status") == 15);
    CHECK(std::isnan(made("formats.mxfp8_tflops")));
    CHECK(made("zeros_gain_pct") == doctest::Approx(100 * (1 / 0.85 - 1)));
    made.set({"n3=1024"});
    CHECK(made("formats.fp32_mb") == doctest::Approx(12.58).epsilon(0.001));
    made.set({"m=2048"});
    CHECK(made("qkv.fp8_gain_pct") > 0);
    made.set({"m=4096"});
    CHECK(std::isnan(made("qkv.fp8_gain_pct")));
}

TEST_CASE("L9: groups and zeros have their own times, and none where nothing was recorded") {
    Made made;
    made.set({"m=128", "n=4096", "k=4096", "groups=64"});
    const test::SyntheticGpu gpu;
    const double ms = 64 * (gpu.product_ms(128, 4096, 4096, true, 2) - gpu.launch_ms) + gpu.launch_ms;
    CHECK(made("fprop.fp8_ms") == doctest::Approx(ms));
    CHECK(made("fprop.fp8_tflops") == doctest::Approx(64 * 2.0 * 128 * 4096 * 4096 / ms / 1e9));
    CHECK(std::isnan(made("dgrad.fp8_ms")));
    made.set({"groups=3"});
    CHECK(std::isnan(made("fprop.fp8_ms")));
    CHECK(made.title("roofline") == "3 groups of M = 128 were not recorded for this layer");
    made.set({"groups=1", "data=zeros", "m=8192", "n=8192", "k=8192"});
    CHECK(made("fprop.bf16_ms") == doctest::Approx(0.85 * gpu.product_ms(8192, 8192, 8192, false, 2)));
    CHECK(std::ranges::count(made.lab.notices(), "Zeros draw less power: not a training speed.") == 1);
    made.set({"m=4096"});
    CHECK(std::isnan(made("fprop.bf16_ms")));
}

TEST_CASE("L9: rows are recorded with fast accumulation in fprop only") {
    Made made;
    made.set({"recipe=rowwise"});
    CHECK(made("fprop.fp8_ms") > 0);
    CHECK(made("wgrad.fp8_ms") > 0);
    made.set({"fast_accum=none"});
    CHECK(std::isnan(made("fprop.fp8_ms")));
    CHECK(made("wgrad.fp8_ms") > 0);
    made.set({"fast_accum=all"});
    CHECK(made("fprop.fp8_ms") > 0);
    CHECK(std::isnan(made("wgrad.fp8_ms")));
    made.set({"recipe=block128"});  // which has no fast accumulation to choose
    CHECK(made("wgrad.fp8_ms") > 0);
}

TEST_CASE("L9: M that was not recorded is kept, has no times, and names its neighbours") {
    Made made;
    made.set({"m=5000"});
    CHECK(made.lab.params().m == 5000);
    CHECK(std::isnan(made("fprop.bf16_ms")));
    CHECK(made.title("roofline") == "M = 5000 was not recorded; its neighbours are 4096 and 8192");
    made.set({"m=4096", "n=5000"});
    CHECK(made.title("roofline").starts_with("A layer 4096 \u2192 5000 was not recorded; recorded: "));
    made.set({"n=16384", "n_off=1"});
    CHECK(made.title("roofline") == "Sizes one off were recorded for M = N = K = 4096 only");
}

TEST_CASE("L9: what the sliders and the disc ask for is a recorded value") {
    Made made;
    made.lab.choose_m(5000);
    CHECK(made.lab.params().m == 4096);
    made.lab.step_m(1);
    CHECK(made.lab.params().m == 8192);
    made.set({"m=5000"});
    made.lab.step_m(-1);
    CHECK(made.lab.params().m == 4096);
    made.set({"m=16"});
    made.lab.step_m(-1);
    CHECK(made.lab.params().m == 16);
    made.lab.choose_n(3000);  // its only layer has K = 768
    CHECK(made.lab.params().n == 3072);
    CHECK(made.lab.params().k == 768);
    made.lab.choose_k(4000);
    CHECK(made.lab.params().k == 4096);
    made.lab.update();
    for (const int m : made.lab.outcome().all_m) {
        made.lab.choose_by_intensity(
            intensity("fprop", {m, made.lab.params().n, made.lab.params().k}, false, "delayed", 2));
        CHECK(made.lab.params().m == m);
    }
}

TEST_CASE("L9: a second recording is chosen, and laid over the first") {
    test::SyntheticGpu other;
    other.bf16_tflops = 300, other.fp8_tflops = 500, other.memory_tb_s = 2;
    Made made({test::synthetic_recording("one"), test::synthetic_recording("two", other)});
    const auto lines = [&] {
        const auto figures = made.lab.figures();
        return std::ranges::count_if(
            figures[1].series, [](const Series& s) { return std::holds_alternative<LineSeries>(s.shape); });
    };
    const auto before = lines();
    CHECK(made("roof_bf16") == doctest::Approx(700).epsilon(0.02));
    made.set({"over=two"});
    CHECK(lines() == before + 1);
    CHECK(made("roof_bf16") == doctest::Approx(700).epsilon(0.02));
    made.set({"source=two", "over=none"});
    CHECK(made("roof_bf16") == doctest::Approx(300).epsilon(0.02));
    CHECK(made.lab.device().starts_with("Synthetic GPU two, driver 1.2"));
}

TEST_CASE("L9: without a recording and without a GPU it says so, and offers no exercise") {
    Made made(std::vector<Recording>{});
    CHECK(made.lab.exercises().empty());
    CHECK(std::isnan(made("fprop.ratio")));
    for (const Figure& figure : made.lab.figures()) CHECK_FALSE(figure.title.empty());
    CHECK_FALSE(made.lab.thumbnail().id.empty());
    CHECK(std::ranges::any_of(made.lab.notices(),
                              [](const std::string& n) { return n.starts_with("No GPU here"); }));
}

TEST_CASE("L9: a recording with no grid has its steps only") {
    Recording recording = test::synthetic_recording();
    recording.grid.reset();
    Made made({recording});
    CHECK(made("step.speedup") > 1);
    CHECK(std::isnan(made("fprop.ratio")));
    CHECK(made.title("roofline").ends_with("has no times of layers"));
}

TEST_CASE("L9: every figure has a title in every state of its menus") {
    Made made;
    const nlohmann::json before = made.lab.state();
    for (const Field& field : made.lab.fields())
        for (const Choice& choice : field.choices) {
            CAPTURE(field.info.name + "=" + choice.id);
            made.set({field.info.name + "=" + choice.id});
            for (const Figure& figure : made.lab.figures()) CHECK_FALSE(figure.title.empty());
            made.lab.restore(before);
        }
}
