// Oracles: stall points and means of numerics.md 2 and curriculum.md 2.1, the accumulator written out in
// 64-bit integers, and what an H200 measured.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/formats/codec.h"
#include "labs/adding/model.h"
#include "tests/fake_gpu.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::adding;

namespace {

double number_metric(const AddingLab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}

struct Given {
    AddingLab lab;
    Given(std::initializer_list<std::string_view> assignments) {
        for (const std::string_view assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
};

const FormatInfo& e4m3() { return find_format("e4m3"); }

// The model in exact integers, one product at a time.
double reference_sum(std::span<const float> products, int bits, int interval) {
    double acc = 0, promoted = 0;
    for (std::size_t from = 0; from < products.size(); from += static_cast<std::size_t>(interval)) {
        const auto part =
            products.subspan(from, std::min(products.size() - from, static_cast<std::size_t>(interval)));
        for (std::size_t at = 0; at < part.size(); at += 32) {
            const auto group = part.subspan(at, std::min<std::size_t>(32, part.size() - at));
            double largest = std::fabs(acc);
            for (const float p : group) largest = std::max(largest, std::fabs(static_cast<double>(p)));
            if (largest == 0) continue;
            const double unit = std::ldexp(1.0, std::ilogb(largest) - bits);
            double sum = std::trunc(acc / unit);
            for (const float p : group) sum += std::trunc(static_cast<double>(p) / unit);
            if (sum != 0) {
                const double coarse = std::max(1.0, std::ldexp(1.0, std::ilogb(sum) - bits));
                sum = std::trunc(sum / coarse) * coarse;
            }
            acc = sum * unit;
        }
        if (part.size() == static_cast<std::size_t>(interval)) {
            promoted = static_cast<double>(static_cast<float>(promoted + acc));
            acc = 0;
        }
    }
    return static_cast<double>(static_cast<float>(promoted + acc));
}

double sum_of(std::span<const float> products, int bits, int interval) {
    Accumulator accumulator(bits, interval);
    accumulator.add(products);
    return accumulator.value();
}

}  // namespace

TEST_CASE("a sum of ones stops at 2^(M + 1): 16, 8, 256, 2048") {
    const AddingLab lab;
    for (const Sum& sum : lab->outcome->sums) {
        CAPTURE(std::string(sum.format.name));
        const bool fp32 = sum.format.name == "fp32";
        CHECK(sum.path.back() == (fp32 ? 4096 : std::exp2(sum.format.mantissa_bits + 1)));
        CHECK(sum.path.back() == (fp32 ? 4096 : sum.stall));
    }
    CHECK(number_metric(lab, "e4m3.stall") == 16);
    CHECK(number_metric(lab, "e5m2.stall") == 8);
    CHECK(number_metric(lab, "bf16.stall") == 256);
    CHECK(number_metric(lab, "fp16.stall") == 2048);
    CHECK(stall_of(find_format("fp32"), 0, 1) == 0x1p24);
    CHECK(lab.figures().front().title == "E4M3 stops at 16: adding 1 no longer changes it");
}

TEST_CASE("4096 gradients of 0.01: E4M3 keeps 0.25 of them, BF16 4, FP16 32, FP32 all") {
    const Given lab_given({"addend=0.01"});
    const AddingLab& lab = lab_given.lab;
    CHECK(number_metric(lab, "e4m3.sum") == 0.25);
    CHECK(number_metric(lab, "bf16.sum") == 4);
    CHECK(number_metric(lab, "fp16.sum") == 32);
    CHECK(number_metric(lab, "exact") == doctest::Approx(40.96));
    CHECK(std::fabs(number_metric(lab, "fp32.error_pct")) < 0.01);
}

TEST_CASE("stochastic sums pass every stall") {
    const Given lab_given({"addend=0.01", "rounding=stochastic"});
    const AddingLab& lab = lab_given.lab;
    for (const char* format : {"e4m3", "e5m2", "bf16", "fp16"}) {
        CAPTURE(format);
        CHECK(number_metric(lab, std::string(format) + ".sum") == doctest::Approx(40.96).epsilon(0.5));
    }
    CHECK(std::fabs(number_metric(lab, "fp16.error_pct")) < 1);
}

TEST_CASE("neighbours are the two values of the grid around a number") {
    CHECK(neighbours(e4m3(), 17.3).below == 16);
    CHECK(neighbours(e4m3(), 17.3).above == 18);
    CHECK(neighbours(e4m3(), -17.3).below == -18);
    CHECK(neighbours(e4m3(), 0.0005).below == 0);
    CHECK(neighbours(e4m3(), 0.0005).above == 0x1p-9);
    CHECK(neighbours(e4m3(), 18).below == 18);
    CHECK(neighbours(e4m3(), 18).above == 18);
}

TEST_CASE("the dice give the published means and deviations") {
    struct Row {
        double x, nearest, deviation, integer_mean, constant_mean;
    };
    constexpr int kDraws = 20000;
    for (const Row& row : {Row{1.03, 1, 0.053, 1.0301, 1.0293}, Row{17.3, 18, 0.954, 16.60, 18},
                           Row{300, 288, 15.5, 288, 288}, Row{0.0005, 0, 0.00085, 0.0005, 0.000507}}) {
        CAPTURE(row.x);
        const auto drawn = [&](Method method) { return draw_rounded(e4m3(), method, row.x, kDraws, 1); };
        CHECK(drawn(Method::nearest).mean == doctest::Approx(row.nearest));
        const RoundedDraws fair = drawn(Method::stochastic);
        CHECK(std::fabs(fair.mean - row.x) < 3 * fair.standard_error());
        CHECK(fair.deviation == doctest::Approx(row.deviation).epsilon(0.03));
        CHECK(fair.off_grid_pct == 0);
        const RoundedDraws integer = drawn(Method::integer), constant = drawn(Method::constant);
        CHECK(std::fabs(integer.mean - row.integer_mean) <= 4 * integer.standard_error() + 0.005 * row.x);
        CHECK(std::fabs(constant.mean - row.constant_mean) <= 4 * constant.standard_error() + 0.001 * row.x);
    }
    CHECK(draw_rounded(e4m3(), Method::integer, 1.03, kDraws, 1).deviation ==
          doctest::Approx(0.171).epsilon(0.05));
}

TEST_CASE("71 % of the notebook's results are no E4M3 values, and none with noise of the local gap") {
    const Given lab_given({"experiment=dice"});
    const AddingLab& lab = lab_given.lab;
    CHECK(number_metric(lab, "integer.tensor_off_grid_pct") == doctest::Approx(71).epsilon(0.01));
    for (const char* method : {"nearest", "stochastic", "constant"})
        CHECK(number_metric(lab, std::string(method) + ".tensor_off_grid_pct") == 0);
    // Of the whole numbers from 0 to 448 only 55 are E4M3 values.
    int on_grid = 0;
    for (int i = 0; i <= 448; ++i)
        on_grid += decode(e4m3(), encode(e4m3(), static_cast<float>(i))) == static_cast<float>(i);
    CHECK(on_grid == 55);
}

TEST_CASE("stochastic rounding costs a tensor about 3 dB") {
    const Given lab_given({"experiment=dice"});
    const AddingLab& lab = lab_given.lab;
    CHECK(number_metric(lab, "nearest.tensor_sqnr_db") == doctest::Approx(31.55).epsilon(0.005));
    const double cost =
        number_metric(lab, "nearest.tensor_sqnr_db") - number_metric(lab, "stochastic.tensor_sqnr_db");
    CHECK(cost == doctest::Approx(3.03).epsilon(0.1));
}

TEST_CASE("the accumulator is what 64-bit integers give") {
    for (const char* data : {"uniform", "normal"})
        for (const int bits : {3, 7, 13, 23})
            for (const int interval : {16, 100, 128, 1 << 20}) {
                const Products products = draw_products(data, 3, 1000, 9);
                CAPTURE(data);
                CAPTURE(bits);
                CAPTURE(interval);
                for (int r = 0; r < 3; ++r)
                    CHECK(sum_of(products.row(r), bits, interval) ==
                          reference_sum(products.row(r), bits, interval));
            }
}

TEST_CASE("small integers add up exactly in any accumulator, however they are handed over") {
    std::vector<float> products;
    Rng rng(3);
    for (int i = 0; i < 4000; ++i) products.push_back(static_cast<float>(rng.below(5)) - 2);
    double exact = 0;
    for (const float p : products) exact += static_cast<double>(p);
    CHECK(sum_of(products, 13, 1 << 20) == exact);
    Accumulator pieces(13, 128);
    for (std::size_t at = 0; at < products.size(); at += 32) pieces.add(std::span(products).subspan(at, 32));
    CHECK(pieces.value() == exact);
    Accumulator nothing(13, 128);
    CHECK(nothing.value() == 0);
}

TEST_CASE("the model of Hopper's accumulator agrees with an H200 while the kernel adds in one chain") {
    for (const char* data : {"uniform", "normal"}) {
        AddingLab lab;
        set_field(lab.fields(), "experiment=dot");
        set_field(lab.fields(), std::string("data=") + data);
        lab.update();
        const Dot& dot = lab->outcome->dot;
        const Hardware hardware = lab->hardware();
        REQUIRE(hardware.lines.size() == 20);
        CHECK(hardware.provenance == Provenance::recorded);
        // Of 32 sums the RMS of errors that cancel is known to an eighth, twice that is allowed; errors of
        // one sign are known far better.
        const double tolerance = std::string_view(data) == "uniform" ? 0.05 : 0.4;
        for (const AccumulationError& line : hardware.lines) {
            if (line.data != data || line.k > 4096) continue;
            CAPTURE(data);
            CAPTURE(line.k);
            CAPTURE(line.fast);
            const auto& model = line.fast ? dot.narrow : dot.promoted;
            const auto at = std::ranges::find(model, line.k, &DotError::k);
            REQUIRE(at != model.end());
            CHECK(at->rel_rms == doctest::Approx(line.rel_rms).epsilon(tolerance));
        }
    }
}

TEST_CASE("each recording is offered, and the one that is chosen gives the hardware's numbers") {
    AddingLab lab;
    set_field(lab.fields(), "experiment=dot");
    const auto where = [&](const std::string& hardware) {
        set_field(lab.fields(), "hardware=" + hardware);
        lab.update();
        return lab->hardware().where;
    };
    CHECK(where("recorded").starts_with("NVIDIA H200, 2026-"));
    CHECK(where("h100").starts_with("NVIDIA H100 80GB HBM3, 2026-"));
    CHECK(lab->hardware().provenance == Provenance::recorded);
    CHECK(lab->hardware().lines.size() == 20);
}

TEST_CASE("this machine's GPU takes the place of the recorded one, or the reason why there is none") {
    struct Gpu : test::FakeGpuBackend {
        Gpu() : FakeGpuBackend({}) {}
        std::vector<AccumulationError> accumulation_errors() override {
            return {{"uniform", 4096, true, 0.0625, -0.0625}, {"uniform", 4096, false, 0.0005, -0.0005}};
        }
    };
    const auto live = [](AddingLab& lab) {
        set_field(lab.fields(), "experiment=dot");
        set_field(lab.fields(), "hardware=live");
        lab.update();
        return lab->hardware();
    };
    AddingLab with{Backends(cpu_backend(), [] { return std::unique_ptr<Backend>(std::make_unique<Gpu>()); })};
    const Hardware measured = live(with);
    CHECK(measured.provenance == Provenance::tensor_core);
    CHECK(measured.where == "Test double, 80 GB");
    CHECK(measured.problem.empty());
    const Table table = with->table();
    REQUIRE(table.rows.size() == 5);
    CHECK(table.rows[3].label == "this GPU, fast");
    CHECK(table.rows[3].values == std::vector{6.25, -6.25});
    // Evidence must be repeatable where there is no such GPU.
    for (const Metric& metric : with.metrics()) CHECK_FALSE(metric.name.starts_with("hardware."));
    set_field(with.fields(), "hardware=recorded");
    with.update();
    CHECK(with->hardware().provenance == Provenance::recorded);

    AddingLab without{test::fake_backends(test::FakeGpu{.refusal = "No NVIDIA driver found"})};
    CHECK(live(without).lines.empty());
    CHECK(live(without).problem.find("No NVIDIA driver found") != std::string::npos);
    CHECK(without.figures().size() == 2);
}

TEST_CASE("a narrower accumulator or rarer promotion is never better on products of one sign") {
    const Products products = draw_products("uniform", 8, 4096, 1);
    const std::array length = {4096};
    double before = 1;
    for (int bits = 3; bits <= 23; ++bits) {
        const double error = accumulator_error(products, bits, 1 << 20, length).front().rel_rms;
        CAPTURE(bits);
        CHECK(error < before);
        before = error;
    }
    before = 0;
    for (int interval = 32; interval <= 4096; interval *= 2) {
        const DotError error = accumulator_error(products, 13, interval, length).front();
        CAPTURE(interval);
        CHECK(error.rel_rms > before);
        CHECK(error.rel_bias < 0);  // cut off: always too small
        before = error.rel_rms;
    }
}

TEST_CASE("errors are measured as the bench measures them") {
    // One row of two products, 1 and 2^-14 of it: 13 fraction bits lose the second.
    Products products;
    products.rows = 1;
    products.k = 2;
    products.cast = {1, 0x1p-14F};
    products.raw = {1.5, 0};
    const std::array length = {2};
    const DotError narrow = accumulator_error(products, 13, 128, length).front();
    CHECK(narrow.rel_bias == doctest::Approx(-0x1p-14 / (1 + 0x1p-14)));
    CHECK(narrow.rel_rms == doctest::Approx(-narrow.rel_bias));
    CHECK(accumulator_error(products, 14, 128, length).front().rel_rms == 0);
    CHECK(fp32_error(products, length).front().rel_rms == 0);
    CHECK(cast_error(products, length).front().rel_rms == doctest::Approx((0.5 - 0x1p-14) / 1.5));
}

TEST_CASE(
    "rounded to nearest a weight of 1 never moves, stochastically it arrives, with a master it follows") {
    const Given lab_given({"experiment=weight"});
    const AddingLab& lab = lab_given.lab;
    CHECK(number_metric(lab, "nearest") == 1);
    CHECK(number_metric(lab, "exact") == doctest::Approx(11).epsilon(1e-4));
    CHECK(number_metric(lab, "master_copy") == 11);
    const double deviation = number_metric(lab, "dice.deviation");
    CHECK(deviation == doctest::Approx(2.37).epsilon(0.25));
    CHECK(std::fabs(number_metric(lab, "dice.mean") - 11.02) < 3 * 2.37 / 8);
    CHECK(lab.figures().front().title ==
          "Rounded to nearest, the E4M3 weight never moves; with stochastic rounding it arrives");
    // Constant noise is too small as soon as the gap has grown.
    const Given constant_given({"experiment=weight", "rounding=constant"});
    const AddingLab& constant = constant_given.lab;
    CHECK(number_metric(constant, "dice.mean") < 5);
    CHECK(constant.figures().front().title.find("it ends at ") != std::string::npos);
    // BF16 moves, until its gap has grown.
    CHECK(number_metric(Given({"experiment=weight", "format=bf16"}).lab, "nearest") == 4);
}

TEST_CASE("each experiment has at most six controls and its own figures, titled with a finding") {
    for (const char* experiment : {"sum", "dice", "dot", "weight"})
        for (const char* rounding : {"nearest", "stochastic", "integer", "constant"})
            for (const char* format : {"e4m3", "e5m2", "bf16", "fp16", "fp32"}) {
                AddingLab lab;
                set_field(lab.fields(), std::string("experiment=") + experiment);
                set_field(lab.fields(), std::string("rounding=") + rounding);
                set_field(lab.fields(), std::string("format=") + format);
                lab.update();
                CAPTURE(experiment);
                CAPTURE(rounding);
                CAPTURE(format);
                int shown = 0;
                for (const Field& field : lab.fields()) {
                    CHECK_FALSE(field.info.help.empty());
                    shown += !field.info.more && lab.applies(field.info.name);
                }
                CHECK(shown <= 6);
                REQUIRE(lab.figures().size() == 2);
                for (const Figure& figure : lab.figures()) {
                    CHECK(figure.title.size() > 10);
                    const Extents extents = fit(figure);
                    for (const double edge : {extents.x.lo, extents.x.hi, extents.y.lo, extents.y.hi})
                        CHECK(std::isfinite(edge));
                    CHECK(extents.x.lo < extents.x.hi);
                }
                const Table table = lab->table();
                for (const Table::Row& row : table.rows) CHECK(row.values.size() == table.columns.size());
                CHECK_FALSE(lab.metrics().empty());
            }
}

TEST_CASE("adding: the field table reads back what it wrote and refuses what it does not know") {
    Given given({"experiment=dot", "width=10", "interval=64", "k=1000"});
    AddingLab& lab = given.lab;
    AddingLab other;
    other.restore(lab.state());
    other.update();
    CHECK(other.state() == lab.state());
    CHECK(number_metric(other, "narrow.rel_rms") == number_metric(lab, "narrow.rel_rms"));
    CHECK_THROWS_WITH_AS(set_field(lab.fields(), "rounding=up"), doctest::Contains("stochastic"), Error);
    CHECK_THROWS_AS(set_field(lab.fields(), "width=24"), Error);
    CHECK_THROWS_WITH_AS(parse_method("up"), doctest::Contains("constant"), Error);
    lab.reset();
    CHECK(lab.state() == AddingLab().state());
}

TEST_CASE("every number in the lesson of L7 is computed here") {
    std::set<std::string> computed;
    const auto add = [&](double value, int digits = 4) { computed.insert(format_number(value, digits)); };
    const AddingLab ones;
    for (const char* name : {"e4m3.stall", "e5m2.stall", "bf16.stall", "fp16.stall"})
        add(number_metric(ones, name));
    add(ones->params.addend);
    const double stall = number_metric(ones, "e4m3.stall");
    add((neighbours(e4m3(), stall + 0.1).above - stall) / ones->params.addend);

    const Given gradients_given({"addend=0.01"});
    const AddingLab& gradients = gradients_given.lab;
    add(gradients->params.terms);
    add(gradients->params.addend);
    add(number_metric(gradients, "exact"));
    add(number_metric(gradients, "e4m3.sum"));
    add(number_metric(gradients, "bf16.sum"));

    const Given dice_given({"experiment=dice", "draws=20000"});
    const AddingLab& dice = dice_given.lab;
    const Neighbours around = dice->outcome->dice.around;
    add(dice->params.x);
    add(around.above);
    add(around.below);
    const RoundedDraws& fair = dice->outcome->dice.draws[1];
    add(100.0 * fair.stored.at(around.above) / fair.draws, 2);
    add(number_metric(dice, "nearest.tensor_sqnr_db") - number_metric(dice, "stochastic.tensor_sqnr_db"), 1);
    add(number_metric(dice, "integer.tensor_off_grid_pct"), 2);
    add(number_metric(dice, "integer.mean"), 3);
    const RoundedDraws& tutorial = dice->outcome->dice.draws[2];
    REQUIRE(tutorial.method == Method::integer);
    for (const auto& [value, count] : tutorial.returned) add(value);
    // Noise within +-h turns 17.3 into 17 where it is below 17.5 - 17.3: in (h + 0.2) / 2h of the draws.
    const double h = 0.5, distance = 17.5 - dice->params.x, share = (h + distance) / (2 * h);
    CHECK(1.0 * tutorial.returned.at(17) / tutorial.draws ==
          doctest::Approx(share).epsilon(3 * std::sqrt((1 - share) / share / tutorial.draws)));
    add(h);
    add(100 * share);

    const Given dot_given({"experiment=dot"});
    const AddingLab& dot = dot_given.lab;
    add(dot->params.width);
    add(dot->params.k);
    add(dot->params.interval);
    add(100 * number_metric(dot, "narrow.rel_rms"), 2);
    CHECK(format_number(100 * number_metric(dot, "hardware.fast.k4096.rel_rms"), 2) ==
          format_number(100 * number_metric(dot, "narrow.rel_rms"), 2));
    add(100 * number_metric(dot, "promoted.rel_rms"), 2);
    CHECK(number_metric(dot, "hardware.fast.k16384.rel_rms") ==
          doctest::Approx(number_metric(dot, "hardware.fast.k4096.rel_rms")).epsilon(0.01));
    const Given chain_given({"experiment=dot", "k=16384"});
    const AddingLab& chain = chain_given.lab;
    add(chain->params.k);
    add(100 * number_metric(chain, "narrow.rel_rms"), 2);
    const Given cancelling_given({"experiment=dot", "data=normal"});
    const AddingLab& cancelling = cancelling_given.lab;
    CHECK(number_metric(cancelling, "cast.rel_rms") > 10 * number_metric(cancelling, "narrow.rel_rms"));

    const Given weight_given({"experiment=weight"});
    const AddingLab& weight = weight_given.lab;
    add(weight->params.updates);
    add((weight->outcome->weight.around.above - weight->params.start) / 2);
    add((weight->params.start - weight->outcome->weight.around.below) / 2);
    for (const std::string& number : test::lesson_numbers("adding")) {
        CAPTURE(number);
        CHECK(computed.count(number) == 1);
    }
}

TEST_CASE("in a window L7 computes apart: until then it shows the experiment of before, whole") {
    AddingLab lab, inline_lab;
    std::atomic<int> wakes = 0;
    lab.set_wake([&] { ++wakes; });
    for (const char* experiment : {"dice", "dot", "weight", "sum"}) {
        CAPTURE(experiment);
        for (AddingLab* each : {&lab, &inline_lab}) {
            set_field(each->fields(), std::string("experiment=") + experiment);
            set_field(each->fields(), "draws=20000");
            each->update();
        }
        CHECK(lab.figures().size() == 2);
        CHECK_FALSE(lab->table().rows.empty());
        CHECK_FALSE(lab.metrics().empty());
        while (lab.busy()) std::this_thread::yield();
        lab.update();
        CHECK(lab->outcome->params == lab->params);
        const auto ours = lab.metrics(), theirs = inline_lab.metrics();
        REQUIRE(ours.size() == theirs.size());
        for (std::size_t i = 0; i < ours.size(); ++i) {
            CHECK(ours[i].name == theirs[i].name);
            CHECK(ours[i].value == theirs[i].value);
        }
    }
    while (wakes == 0) std::this_thread::yield();
}
