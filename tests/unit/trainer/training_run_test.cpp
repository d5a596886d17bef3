// The thread around a trainer. A scripted trainer makes the states observable; one test runs the real one.
#include "core/trainer/training_run.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "core/base/error.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace std::chrono_literals;

namespace {

bool eventually(auto&& condition) {
    for (int i = 0; i < 20'000; ++i) {  // 20 s: never reached but by a failure
        if (condition()) return true;
        std::this_thread::sleep_for(1ms);
    }
    return false;
}

// Counts steps; throws or becomes non-finite where told to.
class ScriptedTrainer final : public Trainer {
  public:
    ~ScriptedTrainer() override {
        if (gone) gone();
    }
    explicit ScriptedTrainer(int throws_at = -1, int nonfinite_at = -1)
        : throws_at_(throws_at), nonfinite_at_(nonfinite_at) {
        spec_.arms = parse_recipes("bf16,delayed");
        spec_.steps = 1000;
        pending_.resize(2);
    }
    void step(int) override {
        if (steps_ == throws_at_) throw usage_error("here", "the script says so");
        for (auto& records : pending_) {
            StepRecord record;
            record.step = steps_;
            record.loss = last_margin;
            records.push_back(record);
        }
        if (steps_ == nonfinite_at_) stopped_ = NonFinite{steps_, "dy2"};
        ++steps_;
    }
    void set(const Command& command) override {
        if (const auto* margin = std::get_if<SetMargin>(&command)) last_margin = margin->margin;
    }
    Snapshot snapshot() override {
        Snapshot snapshot{.step = steps_, .arms = std::vector<ArmSnapshot>(2)};
        for (std::size_t i = 0; i < 2; ++i) snapshot.arms[i].records = std::exchange(pending_[i], {});
        return snapshot;
    }
    int steps_done() const override { return steps_; }
    const std::optional<NonFinite>& stopped(int arm) const override { return arm == 1 ? stopped_ : never_; }
    const TrainSpec& spec() const override { return spec_; }
    void save(const std::filesystem::path&) const override { throw usage_error("disk", "full"); }
    void load(const std::filesystem::path&) override {}

    int last_margin = 0;
    std::function<void()> gone = {};

  private:
    int throws_at_, nonfinite_at_, steps_ = 0;
    TrainSpec spec_;
    std::vector<std::vector<StepRecord>> pending_;
    std::optional<NonFinite> stopped_, never_;
};

auto scripted(int throws_at = -1, int nonfinite_at = -1) {
    return [=](const Preparation&) { return std::make_unique<ScriptedTrainer>(throws_at, nonfinite_at); };
}

// Everything a run has told so far, checked for gaps as it comes.
struct Reader {
    TrainingRun& run;
    int step = 0;
    std::vector<StepRecord> records = {};
    bool in_order = true;
    int poll() {
        if (auto snapshot = run.take()) {
            step = snapshot->step;
            for (const StepRecord& record : snapshot->arms[0].records) {
                in_order = in_order && record.step == static_cast<int>(records.size());
                records.push_back(record);
            }
        }
        return step;
    }
};

RunState state(const TrainingRun& run) { return run.status().state; }

}  // namespace

TEST_CASE("a run waits for start, pauses, steps once and runs to a step") {
    TrainingRun run(scripted());
    Reader reader{run};
    CHECK(eventually([&] { return state(run) == RunState::idle; }));
    CHECK(reader.poll() == 0);
    run.single_step();
    CHECK(eventually([&] { return reader.poll() == 1 && state(run) == RunState::paused; }));
    run.run_to(40);
    CHECK(eventually([&] { return reader.poll() == 40 && state(run) == RunState::paused; }));
    run.limit_speed(200);
    run.start();
    CHECK(eventually([&] { return reader.poll() > 45; }));
    CHECK(state(run) == RunState::running);
    run.pause();
    CHECK(eventually([&] { return state(run) == RunState::paused; }));
    std::this_thread::sleep_for(30ms);
    const int paused_at = reader.poll();
    std::this_thread::sleep_for(30ms);
    CHECK(reader.poll() == paused_at);
    run.limit_speed(0);
    run.start();
    CHECK(eventually([&] { return reader.poll() == 1000 && state(run) == RunState::done; }));
    CHECK(reader.in_order);
    CHECK(reader.records.size() == 1000);
    run.start();  // done stays done
    std::this_thread::sleep_for(5ms);
    CHECK(state(run) == RunState::done);
}

TEST_CASE(
    "single steps that are asked for while one is under way all count, a pause drops those that have not "
    "begun") {
    TrainingRun run(scripted());
    Reader reader{run};
    run.limit_speed(50);  // 20 ms a step: all 17 are asked for during the first one
    for (int i = 0; i < 17; ++i) run.single_step();
    CHECK(run.status().stepping);
    CHECK(eventually([&] { return reader.poll() == 17 && state(run) == RunState::paused; }));
    CHECK_FALSE(run.status().stepping);
    std::this_thread::sleep_for(60ms);
    CHECK(reader.poll() == 17);
    for (int i = 0; i < 1000; ++i) run.single_step();
    run.pause();
    CHECK(eventually([&] { return state(run) == RunState::paused; }));
    const int rests_at = [&] {
        std::this_thread::sleep_for(60ms);
        return reader.poll();
    }();
    CHECK(rests_at <= 18);
    run.start();
    CHECK(eventually([&] { return reader.poll() > rests_at + 2; }));
    run.pause();
    run.single_step();  // after the step that is under way
    CHECK(eventually([&] { return state(run) == RunState::paused; }));
    run.limit_speed(0);
    run.run_to(2);  // so many are done
    std::this_thread::sleep_for(60ms);
    const int after = reader.poll();
    CHECK(state(run) == RunState::paused);
    run.run_to(2);
    std::this_thread::sleep_for(60ms);
    CHECK(reader.poll() == after);
}

TEST_CASE("a command that is sent while paused holds from the next step on") {
    TrainingRun run(scripted());
    Reader reader{run};
    run.run_to(10);
    CHECK(eventually([&] { return reader.poll() == 10; }));
    run.send(SetMargin{0, 4});
    run.run_to(12);
    CHECK(eventually([&] { return reader.poll() == 12; }));
    CHECK(reader.records[9].loss == 0);
    CHECK(reader.records[10].loss == 4);
}

TEST_CASE("an exception becomes failed with its sentence, in preparing and in a step") {
    TrainingRun unprepared([](const Preparation& preparation) -> std::unique_ptr<Trainer> {
        preparation.begin("data");
        throw input_error("x.npy", "not there");
    });
    CHECK(eventually([&] { return state(unprepared) == RunState::failed; }));
    CHECK(unprepared.status().message == "x.npy: not there");
    CHECK(unprepared.status().preparing.empty());
    TrainingRun run(scripted(5));
    run.start();
    CHECK(eventually([&] { return state(run) == RunState::failed; }));
    CHECK(run.status().message == "here: the script says so");
    run.start();
    CHECK(state(run) == RunState::failed);
}

TEST_CASE("a non-finite value pauses once and names arm, step and tensor") {
    TrainingRun run(scripted(-1, 6));
    Reader reader{run};
    run.start();
    CHECK(eventually([&] { return state(run) == RunState::paused && reader.poll() == 7; }));
    CHECK(run.status().message == "delayed: dy2 became non-finite at step 6");
    run.start();
    CHECK(eventually([&] { return reader.poll() == 1000; }));
    CHECK(reader.in_order);
}

TEST_CASE("a checkpoint that cannot be written is a message, not the end of the run") {
    TrainingRun run(scripted());
    run.save("/nowhere");
    CHECK(eventually([&] { return run.status().message == "disk: full"; }));
    run.single_step();
    CHECK(eventually([&] { return state(run) == RunState::paused; }));
}

TEST_CASE("a snapshot comes only when the one before was taken, and wakes the reader") {
    std::atomic<int> wakes = 0;
    TrainingRun run(scripted(), [&] { ++wakes; });
    run.run_to(500);
    CHECK(eventually([&] { return state(run) == RunState::paused; }));
    CHECK(wakes <= 1);
    Reader reader{run};
    CHECK(eventually([&] { return reader.poll() == 500; }));
    CHECK(reader.in_order);
    CHECK(wakes >= 2);
}

TEST_CASE("the real trainer gives the same numbers in a thread, and saves at a step boundary") {
    TrainOptions options;
    options.layers = std::vector{8, 16, 1};
    options.batch = 32;
    options.steps = 50;
    const TrainSpec spec = make_train_spec(options);
    auto direct = make_cpu_trainer(spec);
    direct->step(50);
    const auto expected = direct->snapshot().arms[0].records;

    const Scratch scratch;
    TrainingRun run([&](const Preparation&) { return make_cpu_trainer(spec); });
    Reader reader{run};
    run.start();
    CHECK(eventually([&] { return reader.poll() == 50 && state(run) == RunState::done; }));
    REQUIRE(reader.records.size() == 50);
    for (std::size_t i = 0; i < 50; ++i) CHECK(reader.records[i].loss == expected[i].loss);
    run.save(scratch.path);
    CHECK(eventually([&] { return std::filesystem::exists((scratch.path / "2-delayed.safetensors")); }));
}

TEST_CASE("a run can be dropped in any state without waiting for its end") {
    // Of the 20 runs ten are limited to a step in 1,000 s: waiting for one is longer than the watchdog. Every trainer
    // that was made is gone with its run.
    std::atomic<int> alive = 0, made = 0;
    const auto begun = std::chrono::steady_clock::now();
    for (int round = 0; round < 20; ++round) {
        {
            TrainingRun run([&](const Preparation&) -> std::unique_ptr<Trainer> {
                ++alive, ++made;
                auto trainer = std::make_unique<ScriptedTrainer>();
                trainer->gone = [&alive] { --alive; };
                return trainer;
            });
            if (round % 4 > 0) run.start();
            if (round % 4 > 1) run.limit_speed(0.001);
            if (round % 4 > 2) run.take();
            if (round >= 10) CHECK(eventually([&] { return alive == 1; }));  // dropped while it runs
        }
        CHECK(alive == 0);
    }
    CHECK(made >= 10);
    CHECK(std::chrono::steady_clock::now() - begun < 30s);
}

TEST_CASE("what is being prepared is told until the trainer is there") {
    std::promise<void> go;
    std::atomic<int> wakes = 0;
    TrainingRun run(
        [&](const Preparation& preparation) {
            preparation.begin("this");
            preparation.begin("that");
            go.get_future().wait();
            return std::make_unique<ScriptedTrainer>(-1, -1);
        },
        [&] { ++wakes; });
    CHECK(eventually([&] { return run.status().preparing == "that"; }));
    CHECK(state(run) == RunState::preparing);
    CHECK(wakes >= 2);  // a window that sleeps shows it
    go.set_value();
    CHECK(eventually([&] { return state(run) == RunState::idle; }));
    CHECK(run.status().preparing.empty());
}

TEST_CASE("a preparation that nobody waits for any more ends at its next part") {
    std::atomic<int> parts = 0;
    std::atomic<bool> whole = false;
    {
        TrainingRun run([&](const Preparation& preparation) {
            for (; parts < 1'000'000; ++parts) {
                preparation.begin("part");
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            whole = true;
            return std::make_unique<ScriptedTrainer>(-1, -1);
        });
        CHECK(eventually([&] { return parts > 3; }));
    }
    CHECK_FALSE(whole);
}

namespace {

// A step of a minute, in parts of a millisecond; the last one has an evaluation of 50 of them.
class SlowTrainer final : public Trainer {
  public:
    explicit SlowTrainer(std::atomic<int>& parts) : parts_(parts) {
        spec_.arms = parse_recipes("bf16");
        spec_.steps = 1;
    }
    void step(int) override {
        if (quick) steps_ = 1;
        for (int i = 0; i < (quick ? 50 : 60'000); ++i, ++parts_) {
            ask_between();
            std::this_thread::sleep_for(1ms);
        }
        steps_ = 1;
    }
    void set(const Command&) override { quick = true; }
    Snapshot snapshot() override { return {.step = steps_, .arms = std::vector<ArmSnapshot>(1)}; }
    int steps_done() const override { return steps_; }
    const std::optional<NonFinite>& stopped(int) const override { return never_; }
    const TrainSpec& spec() const override { return spec_; }
    void save(const std::filesystem::path&) const override {}
    void load(const std::filesystem::path&) override {}

  private:
    std::atomic<int>& parts_;
    bool quick = false;
    int steps_ = 0;
    TrainSpec spec_;
    std::optional<NonFinite> never_;
};

}  // namespace

TEST_CASE(
    "a pause and the end of a run give up the step at hand, and the evaluation behind the last is made") {
    std::atomic<int> parts = 0;
    {
        TrainingRun run([&](const Preparation&) { return std::make_unique<SlowTrainer>(parts); });
        run.start();
        CHECK(eventually([&] { return parts > 3; }));
        run.pause();
        CHECK(eventually([&] { return state(run) == RunState::paused; }));
        CHECK(run.take()->step == 0);
        const int begun = parts;
        run.single_step();  // which is done, and not dropped with the one that was given up
        CHECK(eventually([&] { return parts > begun + 3; }));
        run.pause();
        CHECK(eventually([&] { return state(run) == RunState::paused; }));
        run.send(PoisonBatch{});
        const int last = parts;
        run.start();
        CHECK(eventually([&] { return parts > last; }));
        run.pause();
        CHECK(eventually([&] { return state(run) == RunState::done; }));
        CHECK(parts == last + 50);
    }
    parts = 0;
    {
        TrainingRun run([&](const Preparation&) { return std::make_unique<SlowTrainer>(parts); });
        run.start();
        CHECK(eventually([&] { return parts > 3; }));
    }
    CHECK(parts < 30'000);
}

TEST_CASE("a preparation that nobody waits for any more ends inside its loops") {
    std::atomic<int> parts = 0;
    {
        TrainingRun run([&](const Preparation&) {
            parallel_for(60'000, 1, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i, ++parts) std::this_thread::sleep_for(1ms);
            });
            return std::make_unique<ScriptedTrainer>(-1, -1);
        });
        CHECK(eventually([&] { return parts > 3; }));
    }
    CHECK(parts < 30'000);
}

TEST_CASE("a run gives way to a window's frames, where there is no window it does not") {
    const int here = getpriority(PRIO_PROCESS, 0);
    const auto priority_of = [](std::function<void()> wake) {
        std::promise<int> priority;
        TrainingRun run(
            [&](const Preparation&) {
                priority.set_value(getpriority(PRIO_PROCESS, 0));  // of this thread, on Linux
                return std::make_unique<ScriptedTrainer>(-1, -1);
            },
            std::move(wake));
        return priority.get_future().get();
    };
    CHECK(priority_of([] {}) == std::min(here + 10, 19));
    CHECK(priority_of({}) == here);
}
