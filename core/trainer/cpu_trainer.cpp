#include "core/trainer/cpu_trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/overloaded.h"
#include "core/files/memory.h"
#include "core/nn/faults.h"
#include "core/nn/gemm.h"
#include "core/nn/memory/cpu_memory.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"
#include "core/threads/trace.h"
#include "core/trainer/arm.h"

namespace fp8lab {
namespace {

class CpuTrainer final : public Trainer {
  public:
    explicit CpuTrainer(const TrainSpec& spec) : spec_(spec), task_(make_task(spec)) {
        if (spec.arms.empty()) throw usage_error("--recipe", "at least one recipe");
        arms_.reserve(spec.arms.size());
        for (const Recipe& recipe : spec.arms) {
            model_plan(spec).check(recipe);
            arms_.emplace_back(spec_, recipe);
        }
    }
    CpuTrainer(const CpuTrainer&) = delete;  // arms refer to spec_
    CpuTrainer& operator=(const CpuTrainer&) = delete;

    void step(int n) override;
    void set(const Command& command) override {
        check_command(spec_, command);
        commands_.push_back(command);
    }
    Snapshot snapshot() override;
    int steps_done() const override { return steps_done_; }
    const std::optional<NonFinite>& stopped(int index) const override { return arm(index).stopped(); }
    const TrainSpec& spec() const override { return spec_; }
    void save(const std::filesystem::path& dir) const override;
    void load(const std::filesystem::path& path) override;
    void record_spans(Trace& trace) override { trace_ = &trace; }

  private:
    void step_once();
    void evaluate();
    void apply(const Command& command);
    void poison(float factor, int rows);
    std::span<const MicroBatch> cut();
    void spoil(const BadRank& bad);
    // work(index) of those that have not stopped. Arms share nothing that they write to; where they keep every thread
    // busy, each has a thread of its own, and the loops inside a step are not split.
    template <class Work>
    void for_each_arm(const Work& work) {
        const auto count = arms_.size(), workers = static_cast<std::size_t>(threads());
        const bool together = count % workers == 0 || count >= 2 * workers;
        parallel_for(count, together ? 1 : count, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                if (!arms_[i].stopped()) work(i);
        });
    }
    TraceTrack* track(std::size_t arm) { return trace_ ? &trace_->tracks()[arm] : nullptr; }
    const Arm& arm(int index) const;
    Arm& arm(int index) { return const_cast<Arm&>(std::as_const(*this).arm(index)); }

    TrainSpec spec_;
    std::unique_ptr<Task> task_;
    std::vector<Arm> arms_;
    std::vector<Command> commands_;
    std::optional<TensorId> watched_;
    float poison_ = 1;  // multiplies x of the next batch
    int steps_done_ = 0;
    bool evaluation_due_ = false;  // that of the newest step was given up
    MicroBatch whole_;
    std::vector<MicroBatch> parts_;  // empty where the batch is not cut
    Trace* trace_ = nullptr;
};

const Arm& CpuTrainer::arm(int index) const {
    if (index < 0 || index >= static_cast<int>(arms_.size()))
        throw usage_error("arm", fmt::format("{} is not in 0..{}", index, arms_.size() - 1));
    return arms_[static_cast<std::size_t>(index)];
}

void CpuTrainer::apply(const Command& command) {
    std::visit(
        Overloaded{[&](const SetHistory& c) {
                       arm(c.arm).change_casts([&](RecipeCasts& casts) { casts.set_history(c.history); });
                   },
                   [&](const SetMargin& c) {
                       arm(c.arm).change_casts([&](RecipeCasts& casts) { casts.set_margin(c.margin); });
                   },
                   [&](const SetAlgo& c) {
                       arm(c.arm).change_casts([&](RecipeCasts& casts) { casts.set_algo(c.algo); });
                   },
                   [&](const SetRecipe& c) { arm(c.arm).set_recipe(c.recipe); },
                   [&](const SetLearningRate& c) { spec_.lr = c.lr; },
                   [&](const PoisonBatch& c) { poison_ = c.factor; },
                   [&](const AlignChannel&) {
                       for (Arm& each : arms_) each.align_channel(task_->rarest());
                   },
                   [&](const Watch& c) { watched_ = c.tensor; }},
        command);
}

// rows: the first ones; 0: all.
void CpuTrainer::poison(float factor, int rows) {
    if (auto* tokens = std::get_if<TokenBatch>(&whole_.batch)) {
        tokens->factor *= factor;
    } else if (factor != 1) {
        Matrix<float>& x = std::get<DenseBatch>(whole_.batch).x;
        const std::size_t count = rows > 0 ? static_cast<std::size_t>(rows) * x.cols : x.values.size();
        for (float& value : std::span(x.values).first(count)) value *= factor;
    }
}

// What one rank reads in a bad step (BadRank).
void CpuTrainer::spoil(const BadRank& bad) {
    const auto count = static_cast<std::size_t>(spec_.accumulate.micro_batches);
    const auto parts = std::span(parts_).subspan(static_cast<std::size_t>(bad.rank) * count, count);
    const auto factor = static_cast<float>(bad.factor);
    for (MicroBatch& part : parts)
        if (auto* tokens = std::get_if<TokenBatch>(&part.batch))
            tokens->factor *= factor;
        else if (!std::isnan(factor))
            for (float& x : std::get<DenseBatch>(part.batch).x.values) x *= factor;
        else if (&part == parts.data())
            std::get<DenseBatch>(part.batch).x.values.front() = factor;
}

std::span<const MicroBatch> CpuTrainer::cut() {
    const int parts = spec_.ranks.count * spec_.accumulate.micro_batches;
    if (parts == 1) return {&whole_, 1};
    cut_batch(whole_.batch, parts, parts_);
    if (spec_.ranks.bad && spec_.ranks.bad->step == steps_done_) spoil(*spec_.ranks.bad);
    return parts_;
}

void CpuTrainer::step(int n) {
    evaluate();
    for (; n > 0; --n) {
        step_once();
        evaluation_due_ = steps_done_ % kEvaluationSteps == 0 || steps_done_ == spec_.steps;
        evaluate();
    }
}

// The gradients of all arms come first: where they are given up, no arm is a step ahead of another.
void CpuTrainer::step_once() {
    {
        const AskBetween to_the_end;
        for (const Command& command : std::exchange(commands_, {})) apply(command);
    }
    task_->draw(steps_done_, whole_.batch);
    if (auto* tokens = std::get_if<TokenBatch>(&whole_.batch)) tokens->factor = 1;
    poison(poison_, 0);
    poison(poison_factor(spec_, steps_done_), spec_.poison ? spec_.poison->rows : 0);
    const std::span<const MicroBatch> parts = cut();
    for_each_arm([&](std::size_t i) {
        const Traced here(track(i));
        if (t_track) t_track->begin_step(steps_done_);
        arms_[i].compute_gradients(parts, steps_done_, watched_);
    });
    const AskBetween to_the_end;
    const double lr = learning_rate(spec_, steps_done_);
    for_each_arm([&](std::size_t i) {
        const Traced here(track(i));
        arms_[i].update(steps_done_, lr);
        if (t_track) t_track->end_step();
    });
    poison_ = 1;
    ++steps_done_;
}

void CpuTrainer::evaluate() {
    if (!evaluation_due_) return;
    std::vector<std::optional<Evaluation>> found(arms_.size());
    for_each_arm([&](std::size_t i) { found[i] = arms_[i].evaluate(*task_, steps_done_); });
    for (std::size_t i = 0; i < arms_.size(); ++i) arms_[i].keep(std::move(found[i]));
    evaluation_due_ = false;
}

Snapshot CpuTrainer::snapshot() {
    Snapshot snapshot{.step = steps_done_, .arms = {}};
    for (Arm& arm : arms_) snapshot.arms.push_back(arm.take());
    return snapshot;
}

void CpuTrainer::save(const std::filesystem::path& dir) const {
    save_checkpoints(
        dir, spec_, [this](std::size_t i) { return arms_[i].checkpoint(); }, steps_done_);
}

void CpuTrainer::load(const std::filesystem::path& path) {
    const LoadedCheckpoints loaded = load_checkpoints(path, spec_);
    for (std::size_t i = 0; i < arms_.size(); ++i) arms_[i].restore(loaded.arms[i]);
    steps_done_ = loaded.steps_done;
    evaluation_due_ = false;
}

}  // namespace

std::unique_ptr<Trainer> make_cpu_trainer(const TrainSpec& spec) {
    if (spec.state != StateType::fp32) throw usage_error("--state bf16", "is measured on a GPU");
    BlasUse{};  // its memory is no longer free then
    require_memory("train", cpu_training_bytes(spec) + instrument_bytes(spec));
    return std::make_unique<CpuTrainer>(spec);
}

}  // namespace fp8lab
