// L13's model over the real CPU trainer, for a few steps. Its exercises: tests/unit/course/exercises_test.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "tests/fake_gpu.h"
#include "tests/json.h"
#include "tests/te_code.h"
#include "tests/transformer_runs.h"

using namespace fp8lab;
using namespace fp8lab::transformer;

namespace {

std::unique_ptr<TransformerLab> lab_with(std::initializer_list<std::string> settings) {
    auto lab = std::make_unique<TransformerLab>();
    for (const std::string& setting : settings) set_field(lab->fields(), setting);
    lab->update();
    return lab;
}

const Metric* find_metric(const std::vector<Metric>& metrics, std::string_view name) {
    const auto at = std::ranges::find(metrics, name, &Metric::name);
    return at == metrics.end() ? nullptr : &*at;
}
double metric(const Lab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const Metric* found = find_metric(metrics, name);
    REQUIRE_MESSAGE(found, std::string(name));
    return found->value;
}

const Operation& operation(const std::vector<Operation>& ops, std::string_view id) {
    return *std::ranges::find(ops, id, &Operation::id);
}

}  // namespace

TEST_CASE("L13: the switches are options of arm B's recipe") {
    const auto text = [](std::initializer_list<std::string> settings) {
        return arm_b_text(lab_with(settings)->params());
    };
    CHECK(text({}) == "delayed");
    CHECK(text({"attention=fp8", "act=smooth", "wide=last", "history=1024"}) ==
          recipe_text(parse_recipe("delayed:history=1024:scope=attn:act=smooth:wide=last")));
    CHECK(text({"attention=fp8", "head=fp8", "arm_b=mxfp8"}) == recipe_text(parse_recipe("mxfp8:scope=all")));
    CHECK(text({"arm_b=bf16", "head=fp8", "wide=first"}) == "bf16");  // casts nothing to 8 bits
    CHECK(text({"arm_b=current", "wide=1.down", "history=4"}) ==
          recipe_text(parse_recipe("current:wide=1.down")));
    const auto spec = lab_with({"batch=16", "seed=3", "lr=0.01"})->spec();
    CHECK((spec.batch == 16 && spec.seed == 3 && spec.lr == 0.01 && spec.steps == 600));
    CHECK((spec.clip == 1 && spec.beta2 == 0.95 && spec.vocabulary == 55));
}

TEST_CASE("L13: the code for Transformer Engine says fp8_dpa once, with attention in FP8") {
    CHECK(lab_with({})->transformer_engine().find("fp8_dpa") == std::string::npos);
    const std::string code = lab_with({"attention=fp8"})->transformer_engine();
    CHECK(code.find("fp8_dpa=True") != std::string::npos);
    CHECK(code.find("fp8_dpa") == code.rfind("fp8_dpa"));
    CHECK(code.find("te.TransformerLayer(") != std::string::npos);
}

TEST_CASE("L13: Transformer Engine takes the code of the model with every recipe") {
    const test::TeSignatures te(read_text(FP8LAB_SOURCE "/tests/unit/scaling/te_signatures.json"));
    for (const Recipe& recipe : recipes())
        for (const char* attention : {"bf16", "fp8"}) {
            std::string code;
            try {
                code = lab_with({"arm_b=" + recipe.name, std::string("attention=") + attention})
                           ->transformer_engine();
            } catch (const Error&) {
                continue;  // L13 refuses the pair
            }
            CAPTURE(code);
            for (const std::string& problem : te.problems(code)) FAIL_CHECK(problem);
        }
}

TEST_CASE("L13: attention in FP8 with blocks of 128 is refused in one sentence") {
    TransformerLab lab;
    set_field(lab.fields(), "arm_b=block128");
    set_field(lab.fields(), "attention=fp8");
    CHECK_THROWS_WITH_AS(lab.update(), doctest::Contains("not supported with blocks of 128"), Error);
}

TEST_CASE("L13: the boxes say what each operation reads, and FP8's share of the work") {
    const auto lab = lab_with({});
    const auto ops = lab->operations();
    REQUIRE(ops.size() == kOperations);
    for (const char* id : {"qkv", "out", "gate_up", "down"}) {
        CHECK(operation(ops, id).format == "E4M3");
        CHECK(operation(ops, id).narrow);
    }
    for (const char* id : {"norm1", "attention", "norm2", "swiglu", "head"}) {
        CHECK(operation(ops, id).format == "BF16");
        CHECK_FALSE(operation(ops, id).narrow);
    }
    CHECK(metric(*lab, "fp8_ops") == 4);
    CHECK(metric(*lab, "flop_share_pct") == doctest::Approx(84.3).epsilon(0.001));
    CHECK(metric(*lab, "ln_v") == doctest::Approx(4.007).epsilon(0.001));
    CHECK(lab->block_title() == "The four linears are FP8: 84.3 % of the FLOP");
    const auto all = lab_with({"attention=fp8", "head=fp8"});
    CHECK(metric(*all, "fp8_ops") == 6);
    CHECK(metric(*all, "flop_share_pct") == doctest::Approx(100));
    const auto last = lab_with({"wide=last", "tensor=2.down.x"});
    CHECK(operation(last->operations(), "down").format == "BF16");
    CHECK(last->block_title().starts_with("4 of 8 linears are FP8: 42.1 %"));
    CHECK(lab_with({"arm_b=bf16"})->block_title() == "No operation of arm B is in 8 bits or fewer");
}

TEST_CASE(
    "L13: the health of a tensor is its newest step, the mean of the last 100, and the steps that saturate") {
    const auto lab = lab_with({});
    const ModelPlan& plan = lab->plan();
    const std::size_t x = plan.find("1.down.x")->index, w = plan.find("1.down.w")->index;
    Health health;
    for (int step = 0; step < 150; ++step) {
        StepRecord record;
        record.step = step;
        record.tensors.resize(plan.tensors.size());
        record.tensors[x].underflow_pct = step < 100 ? 0 : 50;
        record.tensors[x].amax = static_cast<float>(step);
        record.tensors[x].overflow_pct = step % 2 == 0 ? 1 : 0;
        record.tensors[w].overflow_pct = step % 2 == 0 ? 1 : 0;  // in the same steps
        health.append(plan, std::span(&record, 1));
    }
    CHECK(health.tensors()[x].lost_pct == 50);
    CHECK(health.tensors()[x].tail_lost_pct == doctest::Approx(25));
    CHECK(health.tensors()[x].amax == 149);
    CHECK(health.tensors()[x].saturated_steps == 75);
    CHECK(health.gemms()[plan.tensors[x].gemm] == 75);
    const Worst worst = worst_of(health, plan, lab->spec().arms[1], false);
    CHECK((worst.name == "1.down.x" && worst.lost_pct == doctest::Approx(25)));
    CHECK(worst_of(health, plan, lab->spec().arms[0], false).name.empty());  // BF16 casts nothing narrow
}

TEST_CASE(
    "L13: a few steps: the first loss is ln V, every number and figure has a name that was told before") {
    for (const char* task : {"task=text", "task=copying"}) {
        const auto lab = lab_with({task});
        const auto names = lab->metric_names(), ids = lab->figure_ids();
        lab->advance(3);
        REQUIRE(lab->step() == 3);
        CHECK_FALSE(lab->busy());
        CHECK(metric(*lab, "first_loss_b") == doctest::Approx(metric(*lab, "ln_v")).epsilon(0.01));
        for (const Metric& m : lab->metrics())
            CHECK_MESSAGE(std::ranges::find(names, m.name) != names.end(), m.name);
        for (const Figure& f : lab->figures()) CHECK_MESSAGE(std::ranges::find(ids, f.id) != ids.end(), f.id);
        CHECK(lab->history().arms()[1].watched->id == lab->selected());
    }
}

TEST_CASE(
    "L13: a channel aligned by hand and one aligned after so many steps are the same run, its record repeats "
    "it") {
    const auto by_hand = lab_with({"batch=4", "seed=2"});
    CHECK(by_hand->why_not_align() == "Start the training first.");
    carry_out(*by_hand, std::array{acts("run to 3"), acts("align")});
    CHECK(by_hand->why_not_align() == "Done: a channel is aligned once.");
    CHECK_FALSE(by_hand->aligned_at());
    carry_out(*by_hand, std::array{acts("align"), acts("run to 6")});
    const auto by_field = lab_with({"batch=4", "seed=2", "align_step=3"});
    by_field->advance(6);
    REQUIRE(by_hand->aligned_at() == 3);
    REQUIRE(by_field->aligned_at() == 3);
    CHECK(by_hand->record() == by_field->record());
    const auto* w = by_hand->history().arms()[1].find(*by_hand->plan().find("1.gate_up.w"));
    CHECK(w->amax.values()[2] < 3);
    CHECK(w->amax.values()[3] > 20);
    CHECK(metric(*by_hand, "1.down.x.amax") > 1e4);
    // BF16 does not notice.
    const auto never = lab_with({"batch=4", "seed=2"});
    never->advance(6);
    CHECK(metric(*never, "loss_a") == doctest::Approx(metric(*by_hand, "loss_a")).epsilon(0.005));

    TransformerLab again;
    for (const char* setting : {"batch=4", "seed=2"}) set_field(again.fields(), setting);
    again.replay(by_hand->record());
    CHECK(again.record() == by_hand->record());
    CHECK(again.aligned_at() == 3);
    for (const Metric& m : by_hand->metrics()) {
        const auto others = again.metrics();
        const Metric* other = find_metric(others, m.name);
        REQUIRE_MESSAGE(other, m.name);
        if (std::isfinite(m.value)) CHECK(other->value == doctest::Approx(m.value).epsilon(1e-5));
        CHECK(other->text == m.text);
    }
    again.restart();
    CHECK(again.params().align_step == 0);  // set by the button, of the run before
    by_field->restart();
    CHECK(by_field->params().align_step == 3);
}

TEST_CASE("L13: every press of Step counts, also during a step and past the step of an alignment") {
    const auto lab = lab_with({"batch=4", "align_step=3"});
    int told = 0;
    lab->set_listener([&](std::string_view action) { told += action == "step" ? 1 : 0; });
    for (int i = 0; i < 7; ++i) lab->act("step");
    CHECK(lab->stepping());
    while (lab->busy()) lab->update();
    CHECK_FALSE(lab->stepping());
    CHECK(told == 7);
    CHECK(lab->step() == 7);
    CHECK(lab->aligned_at() == 3);
    const auto at_once = lab_with({"batch=4", "align_step=3"});
    at_once->advance(7);
    CHECK(lab->record() == at_once->record());
    lab->act("run to 12");
    CHECK_FALSE(lab->stepping());
    while (lab->busy()) lab->update();
    CHECK(lab->step() == 12);
}

TEST_CASE("L13: the time that is left comes from the recorded run, then from the steps of this machine") {
    TransformerLab lab;
    lab.update();
    const auto before = lab.time_left();
    CHECK(before.words.starts_with("about "));
    CHECK(before.help.find("recorded on") != std::string::npos);
    set_field(lab.fields(), "task=copying");
    lab.update();
    CHECK(lab.time_left().words.empty());  // was not recorded
    set_field(lab.fields(), "task=text");
    lab.run_to(4);
    while (lab.busy()) lab.update();
    CHECK(lab.time_left().words.ends_with(" left"));
    CHECK(lab.time_left().help.find("measured here") != std::string::npos);
    lab.restart();
    CHECK(lab.time_left().help.find("measured here") != std::string::npos);
}

TEST_CASE("L13: aligned while it runs, the step is found, a setting changed on the way leaves no record") {
    const auto lab = lab_with({"batch=4"});
    lab->advance(2);
    lab->run_to(40);
    lab->align();
    while (lab->busy()) lab->update();
    REQUIRE(lab->aligned_at());
    const int at = *lab->aligned_at();
    CHECK((at >= 2 && at < 40));
    const auto again = lab_with({"batch=4", "align_step=" + std::to_string(at)});
    again->advance(40);
    CHECK(again->record() == lab->record());
    set_field(lab->fields(), "act=smooth");
    lab->update();
    lab->advance(2);
    CHECK(lab->record().empty());
    CHECK(lab->no_record().find("act=smooth was set after step 40") != std::string::npos);
    CHECK(lab_with({"task=copying"})->why_not_align().starts_with("Only in the task text"));
}

TEST_CASE("L13: a record that does not fit its settings is refused") {
    const auto lab = lab_with({"batch=4"});
    lab->advance(2);
    const auto json = parsed(lab->record());
    const auto refused = [](const nlohmann::json& record) {
        TransformerLab other;
        CHECK_THROWS_AS(other.replay(record.dump()), Error);
    };
    auto damaged = json;
    damaged["arms"][1]["recipe"] = "current";
    refused(damaged);
    damaged = json;
    damaged["arms"][0].erase("gemms");
    refused(damaged);
    damaged = json;
    damaged["aligned_at"] = 2;
    refused(damaged);
    damaged = json;
    damaged["arms"][1]["tensors"]["1.down.x"] = {1, 2};
    refused(damaged);
    damaged = json;
    damaged["arms"].erase(1);
    refused(damaged);
}

TEST_CASE("L13: the recorded trainings are those of this trainer: their first steps, trained again") {
    const test::TransformerRuns runs;
    // Twice the largest difference over these steps between OpenBLAS's kernels for Zen, Cooper Lake, Skylake-X, Haswell,
    // Sandy Bridge and Nehalem: 1.8e-4 (nvfp4-te). See recorded_losses_test.
    constexpr double kTolerance = 3.6e-4;
    const auto check = [&](const char* key, std::initializer_list<std::string> settings) {
        CAPTURE(key);
        constexpr std::size_t kAgain = 12;
        const auto lab = lab_with(settings);
        lab->advance(kAgain);
        for (std::size_t arm = 0; arm < 2; ++arm) {
            const auto losses = lab->history().arms().at(arm).loss.values();
            REQUIRE(losses.size() == kAgain);
            for (std::size_t i = 0; i < kAgain; ++i)
                CHECK(runs.all().at(key)["arms"][arm]["loss"][i].get<double>() ==
                      doctest::Approx(losses[i]).epsilon(kTolerance));
        }
    };
    check("600", {});
    check("600 arm_b=nvfp4-te wide=last", {"arm_b=nvfp4-te", "wide=last"});
}

// About ten minutes of two cores for all: labs_tests -ns -tc="*records the trainings*"
TEST_CASE("L13: records the trainings of the exercises that are not in the file" * doctest::skip()) {
    test::TransformerRuns runs;
    const TransformerLab all;
    for (const Exercise& exercise : all.exercises()) {
        std::vector<std::vector<Event>> attempts = {exercise.solver};
        for (const NearMiss& miss : exercise.near_misses) attempts.push_back(miss.events);
        for (const std::vector<Event>& events : attempts) {
            std::string missing;
            runs.trail(exercise, events, missing);
            if (missing.empty()) continue;
            TransformerLab lab;
            const Trail trail = perform(lab, exercise, events);
            runs.add(missing, trail.steps.back().record);
            MESSAGE(missing << ": gap " << trail.now().number("gap_b_pct") << " %, worst x "
                            << trail.now().text("worst_x") << " " << trail.now().number("worst_x_lost_pct")
                            << " %, dy " << trail.now().text("worst_dy") << " "
                            << trail.now().number("worst_dy_lost_pct") << " %");
        }
    }
}

TEST_CASE(
    "L13: on a GPU it says where it ran and what a step took, and a change of backend waits for Reset") {
    TransformerLab lab(test::fake_backends());
    for (const char* setting : {"batch=4", "backend=cpu"}) set_field(lab.fields(), setting);
    lab.update();
    lab.advance(2);
    CHECK(lab.provenance() == Provenance::cpu_emulated);
    CHECK(lab.device().empty());
    CHECK(lab.cost_sentence().empty());
    CHECK(lab.figures().back().id == "histogram");
    CHECK_FALSE(find_metric(lab.metrics(), "ms_a"));
    set_field(lab.fields(), "backend=auto");
    lab.update();
    CHECK(lab.waiting() == std::vector<std::string>{"backend"});
    lab.restart();
    lab.advance(2);
    CHECK(lab.waiting().empty());
    CHECK(lab.backend() == "cuda");
    CHECK(lab.provenance() == Provenance::tensor_core);
    CHECK(lab.device() == "Test double, 80 GB");
    CHECK(metric(lab, "ms_a") == 12);
    CHECK(metric(lab, "ms_b") == 7.5);
    CHECK(metric(lab, "ms_b.GEMM") == doctest::Approx(5.1));
    CHECK(metric(lab, "speedup_b") == doctest::Approx(1.6));
    CHECK(lab.cost_sentence().starts_with("FP8 is 1.60 times as fast as BF16"));
    CHECK(lab.figures().back().id == "step");
    CHECK_FALSE(lab.recorded());  // there is a GPU
}

TEST_CASE("L13: auto takes the CPU where the GPU cannot be made, cuda says why") {
    test::FakeGpu gpu;
    gpu.refusal = "The driver is too old.";
    TransformerLab lab(test::fake_backends(gpu));
    set_field(lab.fields(), "batch=4");
    lab.update();
    lab.advance(1);
    CHECK(lab.provenance() == Provenance::cpu_emulated);
    CHECK(lab.waiting().empty());
    CHECK(lab.gpu_reason() == "The driver is too old.");
    TransformerLab wanted(test::fake_backends(gpu));
    for (const char* setting : {"batch=4", "backend=cuda"}) set_field(wanted.fields(), setting);
    wanted.update();
    CHECK_THROWS_WITH_AS(wanted.advance(1), doctest::Contains("The driver is too old."), Error);
}

TEST_CASE("L13: the histogram of a tensor in BF16 shows its values, not the lower end of the window") {
    const auto lab = lab_with({"batch=4", "backend=cpu", "tensor=1.attention.q"});
    lab->advance(2);
    const auto figures = lab->figures();
    const auto figure = std::ranges::find(figures, std::string_view("histogram"), &Figure::id);
    REQUIRE(figure != figures.end());
    REQUIRE(figure->x.range);
    CHECK(figure->x.range->hi >= metric(*lab, "1.attention.q.amax"));
    CHECK(figure->x.range->lo < 1e-3);
}
