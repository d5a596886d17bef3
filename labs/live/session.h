// What every lab that trains does besides its own numbers: it starts, pauses and repeats a training, tells it what
// changes on its way, and says what that training was. A lab derives from SessionOf<Params>.
//
// When a setting takes effect: recipes of the arms, learning rate and watched tensor are sent by update() and act at the
// next step of the running training; the fields in Traits::on_reset act at the next restart().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/backends.h"
#include "core/backend/recording.h"
#include "core/trainer/training_run.h"
#include "labs/lab.h"
#include "labs/live/history.h"
#include "labs/live/looks.h"
#include "labs/live/pace.h"
#include "labs/table/row.h"

namespace fp8lab::live {

struct Traits {
    const LabInfo& info;
    std::span<const std::string_view> on_reset;  // fields that act at the next restart()
    std::string_view lr;                         // the learning rate among the changes of a run: "lr"
    std::string_view allowed;  // what may be changed in a run that leaves a record: "nothing"
    // Throws Error{backend} for a training that the CPU is not to do; called on the worker. Null: there is none.
    void (*check_cpu)(const TrainSpec&) = nullptr;
};

class Session : public Lab {
  public:
    Session(const Traits& traits, Backends backends);
    ~Session() override;

    const LabInfo& info() const override { return traits_.info; }
    virtual std::vector<table::Row> rows() = 0;  // the table of fields, bound to the present settings
    std::vector<Field> fields() override { return fields_in(rows()); }
    Provenance provenance() const override;  // of the arm that is the experiment
    std::string device() const override;
    void update() override;
    // Returns early when the run pauses at a non-finite value or fails on its way; throws Error{backend} when it could
    // not even start.
    void advance(int steps) override;
    void set_wake(std::function<void()> wake) override { wake_ = std::move(wake); }
    bool live() const override { return true; }
    int trained_steps() const override { return step(); }
    bool busy() const override { return running() || (expected_ && !failed()); }
    std::string no_record() const override;
    void replay(std::string_view record) override;

    // Behind the actions "run" (from the start where it has ended), "pause", "step" (pressed while a step is under way: one
    // more), "run to <step>" and "restart" (step 0, with every setting as it stands).
    void run();
    void pause();
    void single_step();
    void run_to(int step);
    virtual void restart();

    const TrainingRun::Status& status() const { return status_; }
    bool running() const;
    bool stepping() const { return running() && stepping_; }  // for single steps
    // At its last step, or every arm has become non-finite.
    bool finished() const;
    bool failed() const { return status_.state == RunState::failed; }
    int step() const { return history_.steps(); }
    int steps() const { return spec().steps; }
    const History& history() const { return history_; }
    // Of the training at hand, live changes included. The reference holds until a setting changes.
    const TrainSpec& spec() const { return run_ || !replayed_.empty() ? spec_ : fresh_spec(); }
    std::vector<ArmLook> looks() const { return arm_looks(spec().arms); }
    // "cpu" or "cuda": where a training would run that starts now, as far as is known before the GPU is first used; and
    // why not on the GPU (empty: it can).
    std::string_view backend() const;
    std::string gpu_reason() const { return backends_.gpu_reason(); }
    std::vector<std::string> waiting() const;  // labels of the settings that a restart would apply
    std::string preparing() const;             // what a start or a new recipe waits for; empty otherwise
    virtual std::string finding() const = 0;   // the sentence over the loss
    std::string message() const;               // why it paused or failed; empty otherwise
    // "fp8lab train ..." that repeats this training; a comment line for each change made while it ran.
    virtual std::string command() const;
    virtual std::string transformer_engine() const;     // arm B's recipe
    std::vector<std::string> recipes() const override;  // the arms, in their order
    TimeLeft time_left() const;

    // What is shown of another machine where there is no GPU; null: there is one, or nothing was recorded.
    virtual std::shared_ptr<const Shipped> recorded() const = 0;
    // Before the first step, of the task that was recorded: "loss" and "gap" of a run with the default settings, and whose
    // they are; else empty.
    virtual std::vector<Figure> recorded_curves() const = 0;
    std::string recorded_words() const { return recorded_run().words(); }

  protected:
    // The present settings, as far as every training has them.
    struct Chosen {
        std::string_view backend, tensor;
        bool default_task;
    };
    struct Change {
        int step;  // the last one seen before it
        std::string what;
    };
    virtual Chosen chosen() const = 0;
    virtual const TrainSpec& fresh_spec() const = 0;  // of the present settings; throws usage_error
    virtual TensorId watched() const = 0;             // the tensor whose histogram is shown
    virtual Snapshot read_record(std::string_view record, const TrainSpec& spec) = 0;  // throws input_error
    // What a lab adds. sent: after the settings of a training were sent, `changed` where it trains otherwise from here
    // on. rest_before: before steps are asked for; where to rest first, for what is sent between two steps. waits: of a
    // field in on_reset that differs from what the training was told. first_change: of a run that leaves no record, what
    // was done and after which step.
    virtual void sent(bool changed) { (void)changed; }
    virtual void taken(const Snapshot& snapshot) { (void)snapshot; }
    virtual int rest_before(int goal) { return goal; }
    virtual bool waits(std::string_view field, std::string_view told) const {
        (void)field, (void)told;
        return true;
    }
    virtual std::pair<std::string, int> first_change() const;
    virtual double least_seconds() const { return 0; }  // of a step, because of a limit of the speed
    void perform(std::string_view action) override;

    static std::vector<Field> fields_in(std::vector<table::Row> rows);
    void note(std::string what) { changes_.push_back({step(), std::move(what)}); }
    std::string& told(std::string_view field);  // the value that the training at hand was told
    bool whole() const;                         // every step is here, or every arm has stopped
    virtual bool explained() const;   // by the settings alone: nothing was changed on its way or since
    ShippedRun recorded_run() const;  // empty after the first step, and of another task
    // Of every figure: the command, `provenance`, the steps done, the changes.
    std::vector<std::pair<std::string, std::string>> parameters(std::string provenance) const;

    History history_;
    std::vector<Change> changes_;
    std::string replayed_;  // the record that history_ shows instead of a training
    std::unique_ptr<TrainingRun> run_;
    std::function<void()> wake_;

  private:
    void begin();
    void go(int goal);
    void expect(int goal);
    void send_changes();
    bool send_recipe(int arm, const Recipe& wanted);  // true: it was another one
    std::ptrdiff_t stopped_arms() const;

    const Traits traits_;
    Backends backends_;
    std::string_view live_backend_;                          // of the training at hand
    TrainSpec first_spec_, spec_;                            // as it started; as it is now
    std::vector<std::pair<std::string, std::string>> told_;  // name and value of each field
    TrainingRun::Status status_;
    int goal_ = 0, rest_ = 0;  // steps that the run goes to before it rests; where it rests on the way
    std::ptrdiff_t stopped_before_ = 0;
    bool expected_ = false;  // the snapshot of goal_ is to come
    bool stepping_ = false;  // the last that was asked for is a single step
    Pace pace_;
    std::shared_ptr<TrainingRun> ended_;  // the one before, until the next one's worker ends it
};

// Throws Error{failed} for a lab that does not train.
Session& session_of(Lab& lab);

// rows_of(Params&) and spec_of(const Params&) are functions of their namespace; among the Params are `backend`, `task` and
// `tensor`.
template <class Params>
class SessionOf : public Session {
  public:
    using Session::Session;
    std::vector<table::Row> rows() override { return rows_of(params_); }
    std::vector<Field> defaults() override { return fields_in(rows_of(defaults_)); }
    void reset() override {
        restart();
        params_ = {};
    }
    const Params& params() const { return params_; }

  protected:
    Chosen chosen() const override {
        return {params_.backend, params_.tensor, params_.task == defaults_.task};
    }
    // Made once for each setting: names and sizes may come from a file.
    const TrainSpec& fresh_spec() const override {
        if (!fresh_ || fresh_->first != params_) fresh_.emplace(params_, spec_of(params_));
        return fresh_->second;
    }

    Params params_, defaults_;  // defaults_: never changed

  private:
    mutable std::optional<std::pair<Params, TrainSpec>> fresh_;
};

}  // namespace fp8lab::live
