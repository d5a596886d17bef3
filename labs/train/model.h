// L8 Train it: two or three arms of one training, live. The reference (arm A) and the optional arm C run
// their recipe as it is; the settings (history, margin, formats, rounding ...) belong to arm B, the
// experiment.
//
// When a setting takes effect: recipes, their settings, learning rate, shown tensor and speed limit act at
// the next step of the running training; task, seed, batch, steps, schedule and a change between two and
// three arms at the next restart(). The speed limit is for somebody who watches: it holds where set_wake() was
// called, and not in advance().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/backends.h"
#include "core/backend/recording.h"
#include "core/trainer/training_run.h"
#include "labs/lab.h"
#include "labs/live/transport.h"
#include "labs/train/model_figures.h"
#include "labs/train/model_params.h"

namespace fp8lab::train {

class TrainLab : public Lab {
  public:
    explicit TrainLab(Backends backends = {});
    ~TrainLab() override;

    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    void update() override;
    std::vector<Figure> figures() const override;
    Figure thumbnail()
        const override;  // this run's curves, or those of a small training that takes milliseconds
    std::vector<Metric> metrics() const override;
    std::vector<std::string> figure_ids() const override;
    std::vector<std::string> metric_names() const override;
    Provenance provenance() const override;  // of the arm that is the experiment
    std::string device() const override;
    // Returns early when the run pauses at a non-finite value or fails on its way; throws Error{backend} when
    // it could not even start.
    void advance(int steps) override;
    void set_wake(std::function<void()> wake) override;
    void reset() override;
    std::span<const NamedJudge> judges() const override;
    bool live() const override { return true; }
    bool can_poison() const override { return true; }
    bool busy() const override { return running() || (finished() && !complete()); }
    std::string record() const override;
    std::string no_record() const override;
    void replay(std::string_view record) override;

    // Behind the actions "run" (from the start where it has ended), "pause", "step", "run to <step>",
    // "restart" and "poison".
    void run();
    void start();  // or go on, to the last step
    void pause();
    void single_step();
    void run_to(int step);
    void restart();  // step 0, with every setting as it stands
    void poison();   // x of the next batch times 1000, in every arm

    const TrainingRun::Status& status() const { return status_; }
    bool running() const {
        return status_.state == RunState::running || status_.state == RunState::preparing;
    }
    bool stepping() const { return running() && status_.stepping; }  // for single steps
    // At its last step, or every arm has become non-finite.
    bool finished() const { return status_.state == RunState::done; }
    bool failed() const { return status_.state == RunState::failed; }
    int step() const { return history_.steps(); }
    const History& history() const { return history_; }
    const Params& params() const { return params_; }
    // "cpu" or "cuda": where a training would run that starts now, and why not on the GPU (empty: it can).
    std::string_view backend() const;
    std::string gpu_reason() const { return backends_.gpu_reason(); }
    // Where there is no GPU; null where there is one, or no recording.
    std::shared_ptr<const Shipped> recorded() const;
    // Before the first step, of the task that was recorded: "loss" and "gap" of a run with the default settings, and whose
    // they are; else empty.
    std::vector<Figure> recorded_curves() const;
    std::string recorded_words() const;
    live::TimeLeft time_left() const;
    TrainSpec spec() const;                    // of the training at hand, live changes included
    std::vector<std::string> waiting() const;  // labels of the settings that a restart would apply
    void show_tensor(const std::string& name) { params_.tensor = name; }  // "dy1"
    MlpTensor shown_tensor() const;  // of the last layer where the task has fewer than `tensor` says
    std::string preparing() const;   // what a start or a new recipe waits for; empty otherwise
    std::string message() const;     // why it paused or failed; empty otherwise
    std::string verdict() const;     // where a passing loss hides a lost gradient; empty otherwise
    double ms_per_step(std::size_t arm) const;  // median of the last kTailSteps, or of the arm's cost
    // "fp8lab train ..." that repeats this training; a comment line for each change made while it ran.
    std::string command() const;
    std::string transformer_engine() const;  // arm B's recipe

  private:
    void perform(std::string_view action) override;
    struct Change {
        int step;  // the last one seen before it; of a poisoned batch, once it has come, its own
        std::string what;
        bool poison = false, located = false;
    };
    // What the curves mark: a control that was moved on the way, with its new value.
    struct Moved {
        ControlMark mark;
        std::string field;
    };
    void begin();
    double pace() const { return wake_ ? params_.speed_limit : 0; }  // no limit without a window
    void advance_to(int step);
    live::ShippedRun recorded_run() const;  // empty after the first step, and of another task
    bool complete() const;                  // the last snapshot has arrived
    std::ptrdiff_t stopped_arms() const;
    void send_changes();
    bool send_recipe(int arm, const Recipe& wanted);  // true: it was another one
    void mark_controls();
    void drain();
    void note(std::string what);
    void locate_poison();
    Picture picture(const TrainSpec& spec) const;

    Params params_;
    Params defaults_;              // never changed
    Params live_;                  // what the training at hand has been told
    TrainSpec first_spec_, spec_;  // as it started; as it is now
    std::vector<Change> changes_;
    std::vector<Moved> moved_;
    History history_;
    std::string replayed_;  // the record that history_ shows instead of a training
    TrainingRun::Status status_;
    live::Pace pace_;
    std::function<void()> wake_;
    mutable std::optional<History> small_;  // behind the thumbnail, made once
    Backends backends_;
    std::string_view live_backend_;  // of the training at hand
    std::unique_ptr<TrainingRun> run_;
    std::shared_ptr<TrainingRun> ended_;  // the one before, until the next one's worker ends it
};

}  // namespace fp8lab::train
