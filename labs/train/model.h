// L8 Train it: two or three arms of one training, live. The reference (arm A) and the optional arm C run
// their recipe as it is; the settings (history, margin, formats, rounding ...) belong to arm B, the
// experiment.
//
// A change between two and three arms acts at the next restart(), the speed limit at once. The speed limit is for somebody
// who watches: it holds where set_wake() was called, and not in advance().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "labs/live/session.h"
#include "labs/train/model_figures.h"
#include "labs/train/model_params.h"

namespace fp8lab::train {

class TrainLab : public live::SessionOf<Params> {
  public:
    explicit TrainLab(Backends backends = {});

    std::vector<Figure> figures() const override;
    Figure thumbnail()
        const override;  // this run's curves, or those of a small training that takes milliseconds
    std::vector<Metric> metrics() const override;
    std::vector<std::string> figure_ids() const override;
    std::vector<std::string> metric_names() const override;
    void advance(int steps) override;
    std::span<const NamedJudge> judges() const override;
    bool can_poison() const override { return true; }
    std::string record() const override;
    void restart() override;
    void poison();  // behind the action "poison": x of the next batch times 1000, in every arm

    std::shared_ptr<const Shipped> recorded() const override;
    std::vector<Figure> recorded_curves() const override;
    void show_tensor(const std::string& name) { params_.tensor = name; }  // "dy1"
    MlpTensor shown_tensor() const;  // of the last layer where the task has fewer than `tensor` says
    std::string finding() const override { return train::finding(picture(spec())); }
    std::string verdict() const;                // where a passing loss hides a lost gradient; empty otherwise
    double ms_per_step(std::size_t arm) const;  // median of the last kTailSteps, or of the arm's cost

  private:
    struct Poisoned {
        std::size_t change;  // of changes_, whose step becomes that of the batch once it has come
        bool located = false;
    };
    // What the curves mark: a control that was moved on the way, with its new value.
    struct Moved {
        ControlMark mark;
        std::string field;
    };
    void perform(std::string_view action) override;
    TensorId watched() const override { return shown_tensor(); }
    Snapshot read_record(std::string_view record, const TrainSpec& spec) override;
    void sent(bool changed) override;
    void taken(const Snapshot&) override { locate_poison(); }
    bool waits(std::string_view field, std::string_view told) const override;
    std::pair<std::string, int> first_change() const override;
    double least_seconds() const override;
    double limit() const { return wake_ ? params_.speed_limit : 0; }  // no limit without a window
    void hold_speed();
    void mark_controls();
    void locate_poison();
    Picture picture(const TrainSpec& spec) const;

    std::vector<Poisoned> poisoned_;
    std::vector<Moved> moved_;
    bool advances_ = false;
    double held_ = 0;                       // the limit that the training at hand was told
    mutable std::optional<History> small_;  // behind the thumbnail, made once
};

}  // namespace fp8lab::train
