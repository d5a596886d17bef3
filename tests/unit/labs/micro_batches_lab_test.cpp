// Micro-batches in L8 and L13: what their settings train, what the lab counts, and what it refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "labs/transformer/model.h"
#include "tests/fake_gpu.h"
#include "train_lab.h"

using namespace fp8lab;
using namespace fp8lab::train;
using namespace fp8lab::test;

namespace {

bool has(const std::vector<Metric>& metrics, std::string_view name) {
    return std::ranges::find(metrics, name, &Metric::name) != metrics.end();
}

const table::Row& row_of(const std::vector<table::Row>& rows, std::string_view name) {
    return *std::ranges::find_if(rows, [&](const table::Row& row) { return row.field.info.name == name; });
}

bool is_shown(TrainLab& lab, std::string_view name) { return row_of(lab.rows(), name).shown; }

std::vector<std::string> offered(Lab& lab, int batch) {
    const auto fields = lab.fields();
    std::vector<std::string> out;
    for (const Choice& choice : live::dividing(*find_field(fields, "accumulate"), batch))
        out.push_back(choice.id);
    return out;
}

}  // namespace

TEST_CASE("L8 and L13: without micro-batches the command, the metrics and the record say nothing of them") {
    auto lab = small_lab({"steps=10"});
    transformer::TransformerLab other(cpu_backend());
    set_field(other.fields(), "batch=4");
    lab->advance(10);
    other.advance(2);
    CHECK(lab->command().find("--accumulate") == std::string::npos);
    CHECK(other.command().find("--accumulate") == std::string::npos);
    for (const std::string& record : {lab->record(), other.record()}) {
        REQUIRE_FALSE(record.empty());
        CHECK(record.find("accumulate") == std::string::npos);
        CHECK(record.find("saturated_casts") == std::string::npos);
    }
    CHECK_FALSE(has(lab->metrics(), "saturated_casts_pct_x1"));
    CHECK_FALSE(has(lab->metrics(), "accumulate_error_b_pct"));
    CHECK_FALSE(has(other.metrics(), "1.down.x.saturated_casts_pct"));
    CHECK(live::sum_words(lab->history().arms()[1], lab->spec().accumulate).empty());
}

TEST_CASE("L8: the settings of micro-batches are those of the command, and act on Reset") {
    auto lab = small_lab({"accumulate=4", "accumulate_in=e4m3", "weight_cache=each", "amax_of=last"});
    CHECK(
        lab->command().ends_with(" --accumulate 4 --accumulate-in e4m3 --weight-cache each --amax-of last"));
    lab->advance(2);
    set_field(lab->fields(), "accumulate=8");
    lab->update();
    CHECK(lab->waiting() == std::vector<std::string>{"micro-batches"});
    CHECK(lab->spec().accumulate.micro_batches == 4);
    lab->restart();
    CHECK(lab->spec().accumulate.micro_batches == 8);
}

TEST_CASE("L8: a setting that is not shown has no effect: one micro-batch, no arm of delayed scaling") {
    auto lab = small_lab({"accumulate_in=e4m3", "weight_cache=each", "amax_of=last"});
    CHECK(lab->command().find("--accumulate") == std::string::npos);
    CHECK_FALSE(is_shown(*lab, "accumulate_in"));
    CHECK_FALSE(is_shown(*lab, "amax_of"));
    set_field(lab->fields(), "accumulate=2");
    lab->update();
    CHECK(is_shown(*lab, "accumulate_in"));
    CHECK(is_shown(*lab, "amax_of"));
    set_field(lab->fields(), "arm_b=current");
    lab->update();
    CHECK_FALSE(is_shown(*lab, "amax_of"));
    CHECK(lab->spec().accumulate.amax == AmaxOf::max);
    set_field(lab->fields(), "arm_c=delayed");
    lab->update();
    CHECK(is_shown(*lab, "amax_of"));
    CHECK(lab->spec().accumulate.amax == AmaxOf::last);
}

TEST_CASE("micro-batches that do not divide the batch are not offered, and refused with both numbers") {
    auto lab = small_lab();
    transformer::TransformerLab other(cpu_backend());
    CHECK(offered(*lab, 100) == std::vector<std::string>{"1", "2", "4"});
    CHECK(offered(other, 8) == std::vector<std::string>{"1", "2", "4", "8"});
    set_field(lab->fields(), "accumulate=64");
    CHECK(offered(*lab, 100) == std::vector<std::string>{"1", "2", "4", "64"});  // the chosen one stays
    CHECK_THROWS_WITH_AS(lab->update(), "--accumulate: 64 micro-batches do not divide a batch of 32", Error);
}

TEST_CASE("L8: a record keeps the casts that saturate and the error of the sums") {
    const std::initializer_list<const char*> settings = {"steps=60", "accumulate=4", "accumulate_in=e5m2",
                                                         "amax_of=last"};
    auto lab = small_lab(settings), again = small_lab(settings);
    lab->advance(60);
    again->replay(lab->record());
    for (const char* name : {"saturated_casts_pct_x1", "saturated_casts_pct_dy3", "saturated_casts_pct_w1",
                             "accumulate_error_a_pct", "accumulate_error_b_pct"})
        CHECK(metric(*again, name) == metric(*lab, name));
    // By hand: the share of a tensor's casts, 4 of each step.
    const auto trainer = cpu_backend()->make_trainer(lab->spec());
    trainer->step(60);
    double casts = 0, error = 0;
    const Snapshot snapshot = trainer->snapshot();
    for (const StepRecord& record : snapshot.arms[1].records) {
        casts += double{record.tensors[0].saturated_casts};
        error += record.accumulate_error_pct;
    }
    CHECK(casts > 0);
    CHECK(metric(*lab, "saturated_casts_pct_x1") == doctest::Approx(100 * casts / (4 * 60)));
    CHECK(metric(*lab, "accumulate_error_b_pct") == doctest::Approx(error / 60));
    CHECK(live::sum_words(lab->history().arms()[1], lab->spec().accumulate)
              .starts_with("The sums of 4 micro-batches in E5M2 are "));
}

TEST_CASE("L13: a record keeps the casts that saturate and the error of the sums") {
    const auto with_settings = [](transformer::TransformerLab& lab) {
        for (const char* setting : {"batch=4", "accumulate=4", "accumulate_in=bf16", "amax_of=each"})
            set_field(lab.fields(), setting);
        lab.update();
    };
    transformer::TransformerLab lab(cpu_backend()), again(cpu_backend());
    with_settings(lab), with_settings(again);
    lab.advance(12);
    again.replay(lab.record());
    CHECK(again.record() == lab.record());
    const auto value = [](const transformer::TransformerLab& of, std::string_view name) {
        const auto metrics = of.metrics();
        REQUIRE_MESSAGE(has(metrics, name), name);
        return std::ranges::find(metrics, name, &Metric::name)->value;
    };
    double most = 0;
    for (const OperandSpec& tensor : lab.plan().tensors) {
        const std::string name = tensor.name + ".saturated_casts_pct";
        if (!has(lab.metrics(), name)) continue;
        most = std::max(most, value(lab, name));
        CHECK(value(again, name) == doctest::Approx(value(lab, name)).epsilon(1e-5));
    }
    CHECK(most > 0);
    CHECK(most <= 100);
    CHECK(value(lab, "accumulate_error_b_pct") > 0.01);
    CHECK(value(again, "accumulate_error_b_pct") ==
          doctest::Approx(value(lab, "accumulate_error_b_pct")).epsilon(1e-5));
}

TEST_CASE("L8: what a GPU refuses of micro-batches is shown as its sentence, and the CPU still trains it") {
    const auto gpu = std::make_shared<FakeGpu>();
    gpu->prepare = [](const Preparation&) {
        throw Error(ErrorKind::backend, "--accumulate", "sums in E4M3 are computed on the CPU only");
    };
    TrainLab lab(fake_backends(gpu));
    for (const char* setting : {"batch=32", "accumulate=4", "accumulate_in=e4m3", "backend=cuda"})
        set_field(lab.fields(), setting);
    CHECK_THROWS_AS(lab.advance(2), Error);
    CHECK(lab.message().find("sums in E4M3 are computed on the CPU only") != std::string::npos);
    set_field(lab.fields(), "backend=cpu");
    lab.restart();
    lab.advance(2);
    CHECK(lab.step() == 2);
    CHECK(lab.message().empty());
}
