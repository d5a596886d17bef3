// L8's model over the real CPU trainer.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.h"
#include "labs/train/model.h"
#include "tests/json.h"
#include "tests/unit/labs/train_lab.h"

using namespace fp8lab;
using namespace fp8lab::train;
using test::figure_of;
using test::metric;
using test::small_lab;
using test::snapshot_of;
using test::watch;

TEST_CASE("a trainer that throws leaves its sentence and everything reached so far") {
    struct Broken : Trainer {
        explicit Broken(std::unique_ptr<Trainer> real) : inner(std::move(real)) {}
        void step(int n) override {
            if (inner->steps_done() == 7) throw std::runtime_error("the device is lost");
            inner->step(n);
        }
        void set(const Command& command) override { inner->set(command); }
        Snapshot snapshot() override { return inner->snapshot(); }
        int steps_done() const override { return inner->steps_done(); }
        const std::optional<NonFinite>& stopped(int arm) const override { return inner->stopped(arm); }
        const TrainSpec& spec() const override { return inner->spec(); }
        void save(const std::filesystem::path& dir) const override { inner->save(dir); }
        void load(const std::filesystem::path& path) override { inner->load(path); }
        std::unique_ptr<Trainer> inner;
    };
    struct BrokenBackend : Backend {
        DeviceInfo device() const override { return inner->device(); }
        std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec, const Preparation&) override {
            return std::make_unique<Broken>(inner->make_trainer(spec));
        }
        std::unique_ptr<Backend> inner = cpu_backend();
    };
    TrainLab lab(Backends(std::make_unique<BrokenBackend>()));
    lab.advance(5);
    CHECK(lab.step() == 5);
    lab.advance(5);
    CHECK(lab.status().state == RunState::failed);
    CHECK(lab.message() == "the device is lost");
    CHECK(lab.figures()[0].title == "the device is lost");
    CHECK(lab.history().arms()[1].loss.size() >= 5);
    lab.restart();
    CHECK(lab.message().empty());
}

TEST_CASE("the title says what the curves and the worst gradient say") {
    const auto title = [](const std::vector<double>& b, float underflow, std::optional<float> lost_l1 = {}) {
        History history;
        history.append(snapshot_of(0, {{1, 1}, b}, underflow, lost_l1), mlp_plan(std::vector{4, 1}));
        TrainSpec spec;
        spec.arms = {parse_recipe("bf16"), parse_recipe("delayed")};
        return finding({history, spec, {}, {}});
    };
    CHECK(title({1, 1}, 0) == "The two curves stay together");
    CHECK(title({1.02, 1.02}, 29.9F) == "The two curves stay together");
    CHECK(title({1.02, 1.02}, 30.1F) == "The curves agree, and 30.1 % of dy1’s elements became 0");
    CHECK(title({1.02, 1.02}, 30.1F, 2.24F) ==
          "The curves agree, and 30.1 % of dy1’s elements became 0, 2.2 % of its absolute sum");
    CHECK(title({1.2, 1.2}, 30.1F) == "FP8 is 20.0 % above BF16");
    CHECK(title({0.8, 0.8}, 0) == "FP8 is 20.0 % below BF16");
    CHECK(title({12, 12}, 0) == "FP8\u2019s loss is 12 times BF16\u2019s");
}

TEST_CASE("a run that passes by its loss and has lost its gradient is told, a healthy one is not") {
    auto lost = small_lab({"arm_b=unscaled", "batch=1024"});  // the mean over more is smaller
    CHECK(lost->verdict().empty());                           // nothing has been seen yet
    lost->advance(300);
    REQUIRE(metric(*lost, "worst_underflow_pct") >= 30);
    REQUIRE(std::abs(metric(*lost, "gap_b_pct")) <= 5);
    CHECK(lost->verdict().find(" % of dy1’s elements became 0") != std::string::npos);
    // Counted, a third; weighed, next to nothing.
    CHECK(metric(*lost, "worst_lost_l1_pct") > 0.5);
    CHECK(metric(*lost, "worst_lost_l1_pct") < 5);
    CHECK(metric(*lost, "worst_lost_energy_pct") < 1);
    CHECK(lost->verdict().find("of its absolute sum and ") != std::string::npos);
    auto healthy = small_lab();
    healthy->advance(300);
    REQUIRE(metric(*healthy, "worst_underflow_pct") < 30);
    CHECK(healthy->verdict().empty());
}

TEST_CASE("a record keeps the lost mass, one of before has none, which is not told as 0") {
    const auto has = [](const TrainLab& lab, std::string_view name) {
        const auto metrics = lab.metrics();
        return std::ranges::any_of(metrics, [&](const Metric& metric) { return metric.name == name; });
    };
    auto lab = small_lab({"arm_b=unscaled", "steps=100"});
    lab->advance(100);
    const std::string record = lab->record();
    auto again = small_lab({"arm_b=unscaled", "steps=100"});
    again->replay(record);
    for (const char* name : {"worst_underflow_pct", "worst_lost_l1_pct", "worst_lost_energy_pct",
                             "shown_lost_l1_pct", "lost_l1_pct_dy1", "lost_energy_pct_dy2", "lost_l1_pct_x1"})
        CHECK(metric(*again, name) == doctest::Approx(metric(*lab, name)));

    auto json = parsed(record);
    REQUIRE(json["arms"][1]["tensors"]["dy1"].contains("lost_l1_pct"));
    for (auto& arm : json["arms"])
        for (auto& tensor : arm["tensors"]) {
            tensor.erase("lost_l1_pct");
            tensor.erase("lost_energy_pct");
        }
    auto old = small_lab({"arm_b=unscaled", "steps=100"});
    old->replay(json.dump());
    CHECK(metric(*old, "worst_underflow_pct") == doctest::Approx(metric(*lab, "worst_underflow_pct")));
    for (const char* name : {"worst_lost_l1_pct", "worst_lost_energy_pct", "lost_l1_pct_dy1"})
        CHECK_FALSE(has(*old, name));
    CHECK(std::isnan(old->history().arms()[1].find(MlpTensor{TensorClass::dy, 1})->lost_l1_mean_pct()));
    CHECK(old->verdict().find("absolute sum") == std::string::npos);
}

TEST_CASE("curriculum.md 1.7: 39 % of dy1 are zero at step 1500, 2.2 % of its sum, 0.04 % of its energy") {
    for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
        CAPTURE(std::string(seed));
        TrainLab lab(cpu_backend());
        for (const char* setting : {"arm_b=unscaled", "tensor=dy1", "steps=1500", seed})
            set_field(lab.fields(), setting);
        lab.update();
        lab.advance(1500);
        CHECK(std::abs(metric(lab, "shown_underflow_pct") - 39) <= 3);
        CHECK(std::abs(metric(lab, "shown_lost_l1_pct") - 2.2) <= 0.5);
        CHECK(std::abs(metric(lab, "shown_lost_energy_pct") - 0.04) <= 0.02);
    }
}

TEST_CASE("a tensor of a layer that the task lacks gives way to its last layer's") {
    auto lab = small_lab({"tensor=dy3"});
    CHECK(lab->shown_tensor() == MlpTensor{TensorClass::dy, 3});
    set_field(lab->fields(), "task=noise");  // two layers
    CHECK(lab->shown_tensor() == MlpTensor{TensorClass::dy, 2});
}

TEST_CASE("two arms of the same kind get names of their own") {
    const auto looks = arm_looks({parse_recipe("delayed"), parse_recipe("current"), parse_recipe("bf16")});
    CHECK(looks[0].name == "FP8 A");
    CHECK(looks[1].name == "FP8 B");
    CHECK(looks[2].name == "BF16");
    CHECK(looks[0].dash == Dash::dash);  // the reference lies on top of the solid curve
    CHECK(looks[1].dash == Dash::solid);
}

TEST_CASE("the lab's series are those of the trainer, whatever the snapshots' rhythm") {
    auto lab = small_lab({"steps=30"});
    lab->advance(7);
    lab->advance(23);
    REQUIRE(lab->step() == 30);
    const auto trainer = cpu_backend()->make_trainer(lab->spec());
    trainer->step(30);
    const Snapshot all = trainer->snapshot();
    for (std::size_t arm = 0; arm < 2; ++arm) {
        CAPTURE(arm);
        const ArmTrack& track = lab->history().arms()[arm];
        REQUIRE(track.loss.size() == 30);
        double underflow = 0;
        for (std::size_t i = 0; i < 30; ++i) {
            CHECK(track.step.values()[i] == double(i));
            CHECK(track.loss.values()[i] == all.arms[arm].records[i].loss);
            const TensorRecord& dy1 = all.arms[arm].records[i].tensors[2];
            if (!dy1.applies) continue;
            CHECK(track.find(MlpTensor{TensorClass::dy, 1})->scale.values()[i] == double{dy1.scale});
            underflow += double{dy1.underflow_pct};
        }
        if (arm == 1)
            CHECK(track.find(MlpTensor{TensorClass::dy, 1})->underflow_mean_pct() ==
                  doctest::Approx(underflow / 30));
    }
}

TEST_CASE("a margin moved between two steps shows in the next step's scale") {
    // Unfused order: the scale of step t + 1 is computed at the end of step t. A margin that arrives before
    // step t acts in the update at its end. With history 1 and a weight that hardly moves, margin 1 halves
    // w2's scale.
    auto lab = small_lab({"steps=100", "lr=1e-5"});
    lab->advance(10);
    set_field(lab->fields(), "margin=1");
    lab->update();
    lab->advance(5);
    const auto scale = lab->history().arms()[1].find(MlpTensor{TensorClass::w, 2})->scale.values();
    CHECK(scale[10] == doctest::Approx(scale[9]).epsilon(0.02));
    CHECK(scale[11] == doctest::Approx(scale[9] / 2).epsilon(0.02));
    CHECK(lab->history().arms()[0].loss.size() == 15);  // the run went on
    CHECK(lab->spec().arms[1].margin == 1);
    CHECK(lab->command().find("# changed after step 10: arm B") != std::string::npos);
}

TEST_CASE("a recipe changed in mid-run acts at the next step and keeps the curves") {
    auto lab = small_lab({"steps=40"});
    lab->advance(10);
    const double loss = lab->history().arms()[1].loss.last();
    set_field(lab->fields(), "arm_b=unscaled");
    lab->update();
    lab->advance(10);
    const ArmTrack& arm = lab->history().arms()[1];
    CHECK(arm.loss.size() == 20);
    CHECK(arm.loss.values()[9] == loss);
    const auto scale = arm.find(MlpTensor{TensorClass::w, 1})->scale.values();
    CHECK(scale[9] > 1);
    CHECK(scale[10] == 1);
}

TEST_CASE("what cannot act in mid-run waits for the restart and says so") {
    auto lab = small_lab({"steps=40"});
    CHECK(lab->waiting().empty());
    lab->advance(5);
    for (const char* setting : {"seed=7", "arm_c=current"}) set_field(lab->fields(), setting);
    lab->update();
    CHECK(lab->waiting() == std::vector<std::string>{"arm C", "seed"});
    lab->advance(1);
    CHECK(lab->spec().arms.size() == 2);
    const double before = lab->history().arms()[0].loss.values()[0];
    lab->restart();
    CHECK(lab->step() == 0);
    CHECK(lab->waiting().empty());
    lab->advance(2);
    CHECK(lab->history().arms().size() == 3);
    CHECK(lab->history().arms()[0].loss.values()[0] != before);
}

TEST_CASE("no step is made where none is asked for") {
    auto lab = small_lab({"steps=20"});
    lab->advance(0);
    CHECK(lab->step() == 0);
    lab->advance(20);
    lab->advance(5);
    lab->run_to(3);
    lab->update();
    CHECK(lab->step() == 20);
}

TEST_CASE("Run after a record was shown begins a training, which is the recorded one again") {
    auto lab = small_lab({"steps=20"});
    lab->advance(20);
    const std::string record = lab->record();
    REQUIRE_FALSE(record.empty());
    auto other = small_lab({"steps=20"});
    other->replay(record);
    CHECK(other->step() == 20);
    CHECK(other->finished());
    other->act("run");
    CHECK(other->step() == 0);
    watch(*other, [&] { return !other->busy(); });
    CHECK(other->step() == 20);
    CHECK(other->record() == record);
    other->replay(record);
    other->act("restart");
    CHECK(other->step() == 0);
    CHECK(other->record().empty());
}

TEST_CASE("bench reaches the training of a lab that trains, and of no other") {
    const auto lab = find_lab("L8").make(), other = find_lab("L1").make();
    CHECK(&live::session_of(*lab) == lab.get());
    CHECK_THROWS_WITH_AS(live::session_of(*other), "bits: does not train", Error);
}

TEST_CASE("a restart repeats the run to the last bit") {
    auto lab = small_lab({"steps=20"});
    lab->advance(20);
    const std::vector<double> first(*lab->history().arms()[1].loss.data());
    lab->restart();
    lab->advance(20);
    CHECK(*lab->history().arms()[1].loss.data() == first);
}

TEST_CASE("a training that becomes non-finite pauses, names the tensor and keeps its series") {
    // Non-saturating casts turn the first overflow into Inf or NaN: a poisoned batch is above any scale from
    // the past.
    auto lab = small_lab({"steps=60", "overflow=nonsaturate", "margin=1"});
    lab->advance(20);
    REQUIRE_FALSE(lab->history().arms()[1].stopped.has_value());
    lab->poison();
    lab->advance(20);
    const ArmTrack& arm = lab->history().arms()[1];
    REQUIRE(arm.stopped.has_value());
    CHECK(arm.stopped->step == 20);
    CHECK(lab->status().state == RunState::paused);
    CHECK(lab->message() == "FP8 stopped at step 20: " + arm.stopped->tensor + " is not finite");
    CHECK(lab->figures()[0].title == lab->message());
    CHECK(arm.loss.size() >= 20);
    for (std::size_t i = 0; i < 20; ++i) CHECK(std::isfinite(arm.loss.values()[i]));
    CHECK(std::isnan(gap_pct(lab->history(), 1)));

    lab->advance(10);  // the other arm goes on when it is told to
    CHECK(lab->history().arms()[0].loss.size() == 31);
    CHECK(lab->history().arms()[1].loss.size() == arm.loss.size());
}

TEST_CASE("a poisoned batch is marked at the step in which it came, in a running training too") {
    auto lab = small_lab({"steps=4000", "batch=1", "speed_limit=200"});
    lab->set_wake([] {});  // there is a window: the speed limit holds
    lab->run();
    watch(*lab, [&] { return lab->step() > 20; });
    lab->poison();
    const auto marks = [&] {
        std::vector<double> at;
        const auto figures = lab->figures();
        for (const Series& series : figure_of(figures, "loss").series) {
            if (series.name.starts_with("batch")) at.push_back(std::get<VLine>(series.shape).x);
        }
        return at;
    };
    watch(*lab, [&] { return !marks().empty(); });
    lab->pause();
    const auto amax = lab->history().arms()[1].find(MlpTensor{TensorClass::x, 1})->amax.values();
    const auto largest = std::ranges::max_element(amax) - amax.begin();
    REQUIRE(marks().size() == 1);
    CHECK(marks()[0] == double(largest));
}

TEST_CASE("run, pause and run-to act on the live training, which ends as done") {
    auto lab = small_lab({"steps=5000", "batch=1"});
    int wakes = 0;
    lab->set_wake([&wakes] { ++wakes; });
    lab->run();
    watch(*lab, [&] { return lab->step() > 3; });
    lab->pause();
    watch(*lab, [&] { return lab->status().state == RunState::paused; });
    const int paused_at = lab->step();
    CHECK(paused_at < 5000);
    CHECK(wakes > 0);
    lab->restart();
    CHECK(lab->step() == 0);
    lab->run_to(12);
    watch(*lab, [&] { return lab->step() == 12; });
    lab->single_step();
    watch(*lab, [&] { return lab->step() == 13; });
    set_field(lab->fields(), "steps=20");
    lab->restart();
    lab->run();
    watch(*lab, [&] { return lab->finished() && lab->step() == 20; });
}

TEST_CASE("the command line that is copied parses to the same training") {
    auto lab = small_lab({"steps=50", "task=spiral", "history=4", "margin=1", "algo=most_recent", "bwd=e4m3",
                          "round_update=stochastic", "master=none", "arm_c=mxfp8", "seed=9", "lr=0.001"});
    const TrainSpec spec = lab->spec();
    const std::string command = lab->command();
    REQUIRE(command.starts_with("fp8lab train "));
    std::string recipes;
    for (const Recipe& arm : spec.arms) {
        CHECK(command.find(arm.name) != std::string::npos);
        recipes += (recipes.empty() ? "" : ",") + arm.name;
    }
    TrainOptions options;
    options.task = "spiral";
    options.batch = 32;
    options.lr = 0.001;
    options.steps = 50;
    options.schedule = "cosine";
    options.seed = 9;
    options.recipes = recipes;
    CHECK("fp8lab train " + command_line(make_train_spec(options)) == command);
    const Recipe again = parse_recipe(spec.arms[1].name);
    CHECK(again.history == 4);
    CHECK(again.margin == 1);
    CHECK(again.algo == AmaxAlgo::most_recent);
    CHECK(again.bwd->name == "e4m3");
    CHECK(again.master == MasterWeights::none);
    CHECK(again.round_update == Rounding::stochastic);
}

TEST_CASE("Transformer Engine's recipe carries arm B's settings") {
    auto lab = small_lab({"history=4", "margin=1"});
    const std::string code = lab->transformer_engine();
    CHECK(code.find("DelayedScaling(") != std::string::npos);
    CHECK(code.find("amax_history_len=4") != std::string::npos);
    CHECK(code.find("margin=1") != std::string::npos);
}

TEST_CASE("settings of delayed scaling leave other recipes alone") {
    auto lab = small_lab({"arm_b=current", "history=4", "margin=2"});
    CHECK(lab->spec().arms[1].name == "current");
    set_field(lab->fields(), "arm_b=bf16");
    set_field(lab->fields(), "overflow=nonsaturate");
    CHECK(lab->spec().arms[1].name == "bf16");
}

TEST_CASE("state and restore carry every setting, and refuse what they do not know") {
    auto lab = small_lab({"history=4", "task=spiral", "lr=0.01"});
    const nlohmann::json state = lab->state();
    TrainLab other(cpu_backend());
    other.restore(state);
    CHECK(other.state() == state);
    CHECK(other.params().history == 4);
    nlohmann::json broken = state;
    broken["no_such_setting"] = 1;
    CHECK_THROWS_AS(other.restore(broken), Error);
    CHECK(other.state() == state);
    other.reset();
    CHECK(other.params().history == Params{}.history);
}

TEST_CASE("the histogram's bars are the watched tensor's counts over the format's window") {
    auto lab = small_lab({"steps=20", "tensor=dy2"});
    lab->advance(10);
    const TensorView& view = *lab->history().arms()[1].watched;
    CHECK(view.id == MlpTensor{TensorClass::dy, 2});
    const auto figures = lab->figures();
    const Figure& figure = figure_of(figures, "histogram");
    double before = 0, lo = 0, hi = 0;
    for (const Series& series : figure.series) {
        if (series.name == "before") {
            const auto& bars = std::get<BarSeries>(series.shape);
            CHECK(bars.edges->size() == bars.heights->size() + 1);
            for (const double height : *bars.heights) before += height;
        }
        if (series.name == "E5M2 window") {
            lo = std::get<XSpan>(series.shape).lo;
            hi = std::get<XSpan>(series.shape).hi;
        }
    }
    CHECK(before ==
          doctest::Approx(100.0 * double(view.before.n - view.before.zeros) / double(view.before.n)));
    CHECK(hi == doctest::Approx(57344 / double{view.scale}));                 // E5M2's largest value
    CHECK(lo == doctest::Approx(std::ldexp(1.0, -16) / double{view.scale}));  // its smallest
}

TEST_CASE("every figure holds finite numbers and names its command") {
    auto lab = small_lab({"steps=20", "task=spiral"});
    for (const int steps : {0, 1, 19}) {
        CAPTURE(steps);
        if (steps > 0) lab->advance(steps);
        const auto figures = lab->figures();
        for (const Figure& figure : figures) {
            CAPTURE(figure.id);
            CHECK_FALSE(figure.title.empty());
            CHECK(figure.parameters.at(0).second == lab->command());
            const Extents extents = fit(figure);
            CHECK(std::isfinite(extents.x.lo));
            CHECK(extents.x.hi > extents.x.lo);
            CHECK(extents.y.hi > extents.y.lo);
            for (const Series& series : figure.series) {
                const auto* line = std::get_if<LineSeries>(&series.shape);
                if (!line) continue;
                CHECK(line->x->size() == line->y->size());
                for (const double y : *line->y) CHECK(std::isfinite(y));
            }
        }
        CHECK(figures.size() == (steps > 0 ? 10 : 8));  // and a boundary for each arm
    }
    CHECK(metric(*lab, "step") == 20);
    CHECK(metric(*lab, "loss_b") == lab->history().arms()[1].tail_loss());
    CHECK(metric(*lab, "gap_b_pct") ==
          doctest::Approx(100 * (metric(*lab, "loss_b") / metric(*lab, "loss_a") - 1)));
    CHECK(metric(*lab, "accuracy_a") >= 0);
}

TEST_CASE("the thumbnail shows two falling curves before anything has run") {
    const TrainLab lab(cpu_backend());
    const Figure figure = lab.thumbnail();
    REQUIRE(figure.series.size() == 2);
    for (const Series& series : figure.series) {
        const auto& loss = *std::get<LineSeries>(series.shape).y;
        CHECK(loss.size() == 200);
        CHECK(loss.back() < 0.7 * loss.front());
    }
}

TEST_CASE("an interval, a format or a rounding of the fields reaches the recipe") {
    auto lab = small_lab({"interval=4", "fwd=e5m2", "round=stochastic"});
    const Recipe arm = lab->spec().arms[1];
    CHECK(arm.interval == 4);
    CHECK(arm.fwd->name == "e5m2");
    CHECK(arm.round == Rounding::stochastic);
    CHECK(arm.round_bwd == Rounding::stochastic);
    CHECK_THROWS_AS(set_field(lab->fields(), "arm_b=fp9"), Error);
    CHECK_THROWS_AS(set_field(lab->fields(), "history=0"), Error);
}

TEST_CASE("the lesson's numbers are those of the runs that it tells the reader to make") {
    // Sums in another order (another BLAS) move the gap by a few tenths of a percent.
    const auto ends = [](std::initializer_list<const char*> settings) {
        TrainLab lab(cpu_backend());
        const auto fields = lab.fields();
        for (const char* setting : settings) set_field(fields, setting);
        lab.advance(lab.spec().steps);
        return std::pair{metric(lab, "gap_b_pct"), lab.history().arms()[1]};
    };
    CHECK(ends({}).first == doctest::Approx(3.5).epsilon(0.2));
    for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
        CAPTURE(seed);
        const double delayed = ends({seed}).first, no_scale = ends({seed, "arm_b=unscaled"}).first;
        CHECK((delayed > 3.5 * 0.8 && delayed < 4.0 * 1.2));
        CHECK((no_scale > 2.4 * 0.8 && no_scale < 4.2 * 1.2));
        CHECK(std::fabs(ends({seed, "arm_b=fp32"}).first) < 0.4);  // the noise floor
        const double no_master = ends({seed, "master=none"}).first / 100 + 1;
        CHECK((no_master > 9 && no_master < 13));
    }
    const auto [gap, unscaled] = ends({"arm_b=unscaled"});
    CHECK(gap == doctest::Approx(3.9).epsilon(0.2));
    CHECK(unscaled.worst_gradient()->id == MlpTensor{TensorClass::dy, 1});
    CHECK(unscaled.worst_gradient()->underflow_mean_pct() == doctest::Approx(35).epsilon(0.03));
    CHECK(ends({"overflow=nonsaturate"}).second.stopped->step == 1);
    CHECK_FALSE(ends({"overflow=nonsaturate", "margin=1"}).second.stopped.has_value());
    CHECK(ends({"master=none"}).first / 100 + 1 == doctest::Approx(12).epsilon(0.1));
    CHECK(ends({"master=none", "round_update=stochastic"}).first < 25);
}
