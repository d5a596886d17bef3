#include "labs/gpus/model_training.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/threads/ask.h"
#include "core/threads/worker.h"
#include "core/trainer/cpu_trainer.h"

namespace fp8lab::gpus {
namespace {

class Together final : public Trainer {
  public:
    explicit Together(const std::vector<TrainSpec>& specs) {
        for (const TrainSpec& spec : specs) {
            trainers_.push_back(make_cpu_trainer(spec));
            trainers_.back()->set(Watch{model_plan(spec).find("x1")});
        }
        spec_ = specs.front();
        spec_.arms.clear();
        for (const TrainSpec& spec : specs) spec_.arms.push_back(spec.arms.front());
    }
    // A step that was given up is done by those that have not done it yet.
    void step(int n) override {
        for (const int goal = steps_done() + n; steps_done() < goal;)
            for (const int next = steps_done() + 1; const auto& trainer : trainers_)
                if (trainer->steps_done() < next) trainer->step(1);
    }
    void set(const Command& command) override {
        for (const auto& trainer : trainers_) trainer->set(command);
    }
    Snapshot snapshot() override {
        Snapshot out{.step = steps_done(), .arms = {}};
        for (const auto& trainer : trainers_) {
            Snapshot one = trainer->snapshot();
            std::ranges::move(one.arms, std::back_inserter(out.arms));
        }
        return out;
    }
    int steps_done() const override {
        int out = std::numeric_limits<int>::max();
        for (const auto& trainer : trainers_) out = std::min(out, trainer->steps_done());
        return out;
    }
    const std::optional<NonFinite>& stopped(int arm) const override {
        return trainers_.at(static_cast<std::size_t>(arm))->stopped(0);
    }
    const TrainSpec& spec() const override { return spec_; }
    void save(const std::filesystem::path& dir) const override { trainers_.back()->save(dir); }
    void load(const std::filesystem::path& path) override {
        for (const auto& trainer : trainers_) trainer->load(path);
    }

  private:
    std::vector<std::unique_ptr<Trainer>> trainers_;
    TrainSpec spec_;
};

std::vector<std::string> keys_of(const std::vector<TrainSpec>& specs) {
    std::vector<std::string> out;
    for (const TrainSpec& spec : specs) out.push_back(command_line(spec));
    return out;
}

}  // namespace

std::unique_ptr<Trainer> make_together(const std::vector<TrainSpec>& specs) {
    return std::make_unique<Together>(specs);
}

Training::Training(std::function<Plan()> plan) : Part("", table::When::shown), plan_(std::move(plan)) {}
Training::~Training() = default;

int Training::step() const {
    int out = arms_.empty() ? 0 : std::numeric_limits<int>::max();
    for (const ArmSeries& arm : arms_)
        if (!arm.stopped) out = std::min(out, arm.steps());
    if (out == std::numeric_limits<int>::max()) out = arms_.back().steps();
    return out;
}

bool Training::stopped() const { return !arms_.empty() && arms_.back().stopped.has_value(); }

bool Training::arrived(int step) const { return this->step() >= step || stopped(); }

void Training::begin(const Plan& plan, std::vector<std::string> keys) {
    run_.reset();
    arms_.clear();
    collected_.clear();
    running_ = false;
    goal_ = 0;
    keys_ = std::move(keys);
    if (plan.step > 0)
        run_ = std::make_unique<TrainingRun>(
            [specs = plan.arms](const Preparation&) { return make_together(specs); }, wake_);
}

void Training::collect() const {
    if (!run_) return;
    if (std::optional<Snapshot> snapshot = run_->take()) collected_.push_back(std::move(*snapshot));
}

bool Training::busy() const {
    if (!running_) return false;
    collect();
    if (run_->status().state == RunState::failed) return false;
    if (collected_.empty()) return true;
    const Snapshot& newest = collected_.back();
    return newest.step < goal_ && !newest.arms.back().stopped;
}

void Training::take() {
    collect();
    for (const Snapshot& snapshot : std::exchange(collected_, {})) take(snapshot);
}

void Training::take(const Snapshot& snapshot) {
    arms_.resize(snapshot.arms.size());
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        const ArmSnapshot& from = snapshot.arms[i];
        ArmSeries& arm = arms_[i];
        for (const StepRecord& record : from.records) {
            arm.loss.push_back(record.loss);
            arm.spread_pct.push_back(record.rank_spread);
            arm.sum_error_pct.push_back(record.sum_error);
            arm.ranks.push_back(record.ranks);
        }
        arm.states = from.ranks;
        arm.stopped = from.stopped;
    }
}

void Training::refresh(bool, bool in_window) {
    Plan plan = plan_();
    std::vector<std::string> keys = keys_of(plan.arms);
    if (keys != keys_ || plan.step < step() || (plan.step > 0 && !run_)) begin(plan, std::move(keys));
    if (!run_) return;
    if (goal_ != plan.step && !arrived(plan.step)) {
        run_->run_to(plan.step);
        running_ = true;
    }
    goal_ = plan.step;
    for (;;) {
        const TrainingRun::Status status = run_->status();
        take();
        if (status.state == RunState::failed) {
            running_ = false;
            throw Error(status.kind, "gpus", status.message);
        }
        running_ = !arrived(goal_);
        if (in_window || !running_) return;
        ask_between();
        wait_for_workers();
    }
}

}  // namespace fp8lab::gpus
