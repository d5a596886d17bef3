// L13, a transformer block by block: two arms of one training. The switches are options of arm B's recipe.
//
// Recipes, their options, learning rate and the selected tensor act at the next step of the running training; task,
// batch and seed at the next restart(). A channel of SwiGLU is aligned by the action "align", once, or after
// `align_step` steps; so a run follows from its fields alone.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/backends.h"
#include "core/backend/recording.h"
#include "core/trainer/training_run.h"
#include "labs/lab.h"
#include "labs/live/history.h"
#include "labs/live/looks.h"
#include "labs/live/transport.h"
#include "labs/transformer/model_health.h"
#include "labs/transformer/model_operations.h"
#include "labs/transformer/model_params.h"

namespace fp8lab::transformer {

// What an arm writes behind the prompt: its newest text.
struct Words {
    std::string prompt, continuation;
    std::vector<bool> wrong = {};  // of copying, per character
    int step = 0;                  // steps done when it was written; 0: none is there yet
};

class TransformerLab final : public Lab {
  public:
    explicit TransformerLab(Backends backends = {});
    ~TransformerLab() override;

    const LabInfo& info() const override;
    Provenance provenance() const override;
    std::string device() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    void update() override;
    // "block", "loss", "gap" and "histogram"; "step" where a GPU's times are known.
    std::vector<Figure> figures() const override;
    Figure thumbnail() const override;  // this run's curves, or the operations of a block
    std::vector<Metric> metrics() const override;
    std::vector<std::string> metric_names() const override;
    // Returns early when the run pauses at a non-finite value or fails on its way.
    void advance(int steps) override;
    void set_wake(std::function<void()> wake) override { wake_ = std::move(wake); }
    void reset() override;
    std::span<const NamedJudge> judges() const override;
    bool live() const override { return true; }
    bool busy() const override;
    // The series of a run at rest that follows from its settings, also of one that is not at its end.
    std::string record() const override;
    std::string no_record() const override;
    void replay(std::string_view record) override;

    // Behind the actions "run" (from the start where it has ended), "pause", "step", "run to <step>", "restart" and
    // "align".
    void run();
    void pause();
    void single_step();
    void run_to(int step);
    void restart();
    void align();
    std::string why_not_align() const;  // empty: it can be done

    const TrainingRun::Status& status() const { return status_; }
    bool running() const;
    bool stepping() const { return running() && stepping_; }  // for single steps
    bool finished() const { return status_.state == RunState::done || step() >= kSteps; }
    bool failed() const { return status_.state == RunState::failed; }
    int step() const { return history_.steps(); }
    std::optional<int> aligned_at() const;
    const live::History& history() const { return history_; }
    const std::array<Health, 2>& health() const { return health_; }
    const std::optional<Evaluation>& evaluation(std::size_t arm) const { return evaluations_.at(arm); }
    Words words(std::size_t arm) const;
    const Params& params() const { return params_; }
    const TrainSpec& spec() const;  // of the training at hand, live changes included
    const ModelPlan& plan() const;
    std::vector<std::string> waiting() const;  // labels of the settings that a restart would apply
    std::vector<live::ArmLook> looks() const { return live::arm_looks(spec().arms); }

    // "cpu" or "cuda": where a training would run that starts now, and why not on the GPU (empty: it can).
    std::string_view backend() const;
    std::string gpu_reason() const { return backends_.gpu_reason(); }
    std::string cost_sentence() const;  // of both arms' steps on the GPU; empty: there are no times
    // What is shown where there is no GPU; null: there is one, or nothing was recorded.
    std::shared_ptr<const Shipped> recorded() const;

    // Before the first step, of the task that was recorded: "loss" and "gap" of a run with the default settings, and whose
    // they are; else empty.
    std::vector<Figure> recorded_curves() const;
    std::string recorded_words() const;
    live::TimeLeft time_left() const;

    int block() const;  // of the selected tensor; of the head the last
    TensorId selected() const;
    std::vector<Operation> operations() const;  // of arm B, in block()
    double gap_pct() const { return live::gap_pct(history_, 1); }
    double first_loss(std::size_t arm) const;
    double ln_vocabulary() const;
    int learnt_at(
        std::size_t arm) const;  // copying: steps until 20 steps have a mean accuracy of 99 %; -1: not yet

    std::string block_title() const;
    std::string loss_title() const;
    std::string preparing() const;
    std::string message() const;  // why it paused or failed; empty otherwise
    std::string command() const;
    std::string transformer_engine() const;

  private:
    void perform(std::string_view action) override;
    struct Change {
        int step;
        std::string what;
    };
    void begin();
    void go(int goal);
    void send_changes();
    void send_alignment();
    void locate_alignment();
    void drain();
    bool explained() const;
    const TrainSpec& fresh_spec() const;
    std::vector<std::pair<std::string, std::string>> parameters() const;
    Figure block_figure() const;
    // The figures of this run, or of a recorded one.
    Figure loss_figure(const live::History&, const std::vector<live::ArmLook>&) const;
    Figure gap_figure(const live::History&, const std::vector<live::ArmLook>&) const;
    live::ShippedRun recorded_run() const;  // empty after the first step, and of another task
    Figure histogram() const;

    Backends backends_;
    std::string_view live_backend_;  // of the training at hand
    Params params_;
    Params defaults_;  // never changed
    Params live_;      // what the training at hand has been told
    TrainSpec first_spec_, spec_;
    mutable std::optional<std::pair<Params, TrainSpec>> fresh_;  // of params_, made once
    mutable std::optional<std::pair<std::string, ModelPlan>> plan_;
    std::vector<Change> changes_;
    live::History history_;
    std::array<Health, 2> health_;
    std::array<std::optional<Evaluation>, 2> evaluations_;
    std::string replayed_;
    TrainingRun::Status status_;
    int goal_ = 0;           // steps that the run goes to before it rests
    bool expected_ = false;  // the snapshot of goal_ is to come
    bool stepping_ = false;  // the last that was asked for is a single step
    live::Pace pace_;
    enum class Alignment {
        none,
        sent,
        done
    } alignment_ = Alignment::none;  // sent: its step is not known yet
    bool by_hand_ = false;           // align_step was set by the button
    std::function<void()> wake_;
    std::unique_ptr<TrainingRun> run_;
    std::shared_ptr<TrainingRun> ended_;  // the one before, until the next one's worker ends it
};

// model_record.cpp. A run as evidence keeps it: the losses of every step and how the tensors are at its end.
struct Recorded {
    Snapshot snapshot;
    std::array<Health, 2> health;
    int aligned_at = 0;  // 0: not
};
std::string record_text(const TransformerLab& lab);
Recorded parse_record(std::string_view text, const TrainSpec& spec,
                      const ModelPlan& plan);  // throws input_error

}  // namespace fp8lab::transformer
