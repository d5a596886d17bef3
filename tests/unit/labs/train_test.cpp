// L8's model over the real CPU trainer, and its history over snapshots made by hand.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.h"
#include "labs/train/model.h"

using namespace fp8lab;
using namespace fp8lab::train;

namespace {

std::unique_ptr<TrainLab> small_lab(std::initializer_list<const char*> settings = {}) {
    auto lab = std::make_unique<TrainLab>(cpu_backend());
    const auto fields = lab->fields();
    set_field(fields, "batch=32");
    for (const char* setting : settings) set_field(fields, setting);
    lab->update();
    return lab;
}

const Figure& figure_of(const std::vector<Figure>& figures, std::string_view id) {
    for (const Figure& figure : figures) {
        if (figure.id == id) return figure;
    }
    throw std::runtime_error("no figure " + std::string(id));
}

double metric(const TrainLab& lab, std::string_view name) {
    for (const Metric& metric : lab.metrics()) {
        if (metric.name == name) return metric.value;
    }
    throw std::runtime_error("no metric " + std::string(name));
}

// Steps [from, to) of one arm with the given losses and one layer whose dy loses `underflow` percent.
Snapshot snapshot_of(int from, const std::vector<std::vector<double>>& losses, float underflow = 0) {
    Snapshot snapshot;
    for (const auto& arm_losses : losses) {
        ArmSnapshot& arm = snapshot.arms.emplace_back();
        for (std::size_t i = 0; i < arm_losses.size(); ++i) {
            StepRecord& record = arm.records.emplace_back();
            record.step = from + static_cast<int>(i);
            record.loss = arm_losses[i];
            record.tensors.resize(3);
            record.tensors[2].underflow_pct = underflow;
        }
        snapshot.step = std::max(snapshot.step, from + static_cast<int>(arm_losses.size()));
    }
    return snapshot;
}

// Takes snapshots until `done` or ten seconds.
template <class Done>
void watch(TrainLab& lab, Done done) {
    for (int i = 0; i < 10000 && !done(); ++i) {
        lab.update();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(done());
}

}  // namespace

TEST_CASE("the tail mean is the mean of the last values, or of all while there are fewer") {
    const std::vector<double> values = {1, 2, 3, 10};
    CHECK(tail_mean(values, 2) == 6.5);
    CHECK(tail_mean(values, 4) == 4);
    CHECK(tail_mean(values, 100) == 4);
    CHECK(std::isnan(tail_mean({}, 3)));
}

TEST_CASE("an array handed out keeps what it showed while the series grows") {
    Growing series;
    series.push(1);
    const Data before = series.data();
    series.push(2);
    CHECK(*before == std::vector<double>{1});
    CHECK(*series.data() == std::vector<double>{1, 2});
    const auto* memory = series.data().get();
    series.push(3);  // nobody holds the array now: no copy
    CHECK(series.data().get() == memory);
}

TEST_CASE("an envelope keeps every extreme in at most 128 stretches") {
    Envelope envelope;
    for (int i = 0; i < 100000; ++i) {
        envelope.push(i == 54321 ? 1e9 : i == 777 ? 1e-9 : i % 1000 == 0 ? std::nan("") : 2.0);
        REQUIRE(envelope.stretches().size() <= Envelope::kMost);
    }
    CHECK(envelope.stretches().size() > Envelope::kMost / 2);
    int spikes = 0, dips = 0;
    for (const auto& stretch : envelope.stretches()) {
        spikes += stretch.hi == 1e9 ? 1 : 0;
        dips += stretch.lo == 1e-9 ? 1 : 0;
        CHECK(stretch.lo <= stretch.hi);  // no stretch of NaN alone
    }
    CHECK(spikes == 1);
    CHECK(dips == 1);
    Envelope single;
    single.push(std::nan(""));
    CHECK(std::isnan(single.stretches()[0].lo));
    CHECK(envelope.stretches()[2].lo == 2);
}

TEST_CASE("percentages carry three digits and their sign") {
    CHECK(signed_percent(3.9) == "+3.90 %");
    CHECK(signed_percent(-12.34) == "\u221212.3 %");
    CHECK(signed_percent(1097.2) == "+1097 %");
    CHECK(signed_percent(9.999) == "+10.0 %");
    CHECK(signed_percent(std::nan("")) == "NaN");
}

TEST_CASE("deltas join without gap or repeat, and a gap is refused") {
    History history;
    history.append(snapshot_of(0, {{1, 2}, {3, 4}}), 1);
    history.append(snapshot_of(2, {{5}, {6}}), 1);
    CHECK(*history.arms()[0].loss.data() == std::vector<double>{1, 2, 5});
    CHECK(*history.arms()[1].step.data() == std::vector<double>{0, 1, 2});
    CHECK(history.steps() == 3);
    CHECK_THROWS_AS(history.append(snapshot_of(2, {{5}, {6}}), 1), Error);
    CHECK_THROWS_AS(history.append(snapshot_of(7, {{5}, {6}}), 1), Error);
}

TEST_CASE("the gap compares the means of the last 100 steps, the curve is the mean of the 50 around") {
    std::vector<double> a, b;
    for (int i = 0; i < 150; ++i) {
        a.push_back(i < 50 ? 7 : 2);                  // the first 50 steps have left both tails
        b.push_back(i < 50 ? 9 : i < 100 ? 2 : 2.2);  // tail: half 2, half 2.2
    }
    History history;
    history.append(snapshot_of(0, {a, b}), 1);
    CHECK(history.arms()[0].tail_loss() == doctest::Approx(2));
    CHECK(history.arms()[1].tail_loss() == doctest::Approx(2.1));
    CHECK(gap_pct(history, 1) == doctest::Approx(5));  // 100 (2.1 / 2 - 1)
    CHECK(history.arms()[0].mean.size() == 150);
    CHECK(history.arms()[0].mean.values()[0] == 7);
    CHECK(history.arms()[0].mean.values()[50] == doctest::Approx(4.5));  // 25 of 7, 25 of 2
    CHECK(history.arms()[0].mean.values()[74] == doctest::Approx((7 + 49 * 2) / 50.0));
    CHECK(history.arms()[1].mean.last() == doctest::Approx(2.2));
    CHECK(history.arms()[1].gap_pct.values()[0] == doctest::Approx(100 * (9.0 / 7 - 1)));
    CHECK(std::isnan(gap_pct(history, 2)));
}

TEST_CASE("the smoothed curve does not depend on how the steps were cut into snapshots") {
    std::vector<double> losses;
    for (int i = 0; i < 120; ++i) losses.push_back(1.0 / (i + 1));
    History whole, pieces;
    whole.append(snapshot_of(0, {losses}), 1);
    for (int from = 0; from < 120; from += 8) {
        pieces.append(snapshot_of(from, {{losses.begin() + from, losses.begin() + from + 8}}), 1);
    }
    CHECK(*pieces.arms()[0].mean.data() == *whole.arms()[0].mean.data());
}

TEST_CASE("a curve is labelled with its own last value, also before 100 steps") {
    History history;
    history.append(snapshot_of(0, {{8, 4}, {8, 2}}), 1);
    TrainSpec spec;
    spec.arms = {parse_recipe("bf16"), parse_recipe("delayed")};
    const auto figures = train::figures({history, spec, {}, {}});
    std::vector<std::string> labels;
    for (const Series& series : figures[0].series) {
        if (!series.style.end_label.empty()) labels.push_back(series.style.end_label);
    }
    CHECK(labels == std::vector<std::string>{"FP8 5.00", "BF16 6.00"});
}

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
    const auto title = [](const std::vector<double>& b, float underflow) {
        History history;
        history.append(snapshot_of(0, {{1, 1}, b}, underflow), 1);
        TrainSpec spec;
        spec.arms = {parse_recipe("bf16"), parse_recipe("delayed")};
        return finding({history, spec, {}, {}});
    };
    CHECK(title({1, 1}, 0) == "The two curves stay together");
    CHECK(title({1.02, 1.02}, 29.9F) == "The two curves stay together");
    CHECK(title({1.02, 1.02}, 30.1F) == "The curves agree, and 30.1 % of dy1’s elements became 0");
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
    auto healthy = small_lab();
    healthy->advance(300);
    REQUIRE(metric(*healthy, "worst_underflow_pct") < 30);
    CHECK(healthy->verdict().empty());
}

TEST_CASE("a tensor of a layer that the task lacks gives way to its last layer's") {
    auto lab = small_lab({"tensor=dy3"});
    CHECK(lab->shown_tensor() == TensorId{TensorClass::dy, 3});
    set_field(lab->fields(), "task=noise");  // two layers
    CHECK(lab->shown_tensor() == TensorId{TensorClass::dy, 2});
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
            CHECK(track.find({TensorClass::dy, 1})->scale.values()[i] == double{dy1.scale});
            underflow += double{dy1.underflow_pct};
        }
        if (arm == 1)
            CHECK(track.find({TensorClass::dy, 1})->underflow_mean_pct() == doctest::Approx(underflow / 30));
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
    const auto scale = lab->history().arms()[1].find({TensorClass::w, 2})->scale.values();
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
    const auto scale = arm.find({TensorClass::w, 1})->scale.values();
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
    lab->set_wake([] {});  // somebody watches: the speed limit holds
    lab->start();
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
    const auto amax = lab->history().arms()[1].find({TensorClass::x, 1})->amax.values();
    const auto largest = std::ranges::max_element(amax) - amax.begin();
    REQUIRE(marks().size() == 1);
    CHECK(marks()[0] == double(largest));
}

TEST_CASE("run, pause and run-to act on the live training, which ends as done") {
    auto lab = small_lab({"steps=5000", "batch=1"});
    int wakes = 0;
    lab->set_wake([&wakes] { ++wakes; });
    lab->start();
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
    lab->start();
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
    CHECK(view.id == TensorId{TensorClass::dy, 2});
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
        CHECK(figures.size() == (steps > 0 ? 8 : 6));  // and a boundary for each arm
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
    CHECK(unscaled.worst_gradient()->id == TensorId{TensorClass::dy, 1});
    CHECK(unscaled.worst_gradient()->underflow_mean_pct() == doctest::Approx(35).epsilon(0.03));
    CHECK(ends({"overflow=nonsaturate"}).second.stopped->step == 1);
    CHECK_FALSE(ends({"overflow=nonsaturate", "margin=1"}).second.stopped.has_value());
    CHECK(ends({"master=none"}).first / 100 + 1 == doctest::Approx(12).epsilon(0.1));
    CHECK(ends({"master=none", "round_update=stochastic"}).first < 25);
}
