// L9 Is it faster here? The three products of one linear layer in BF16 and FP8, on a roofline, over M, and inside
// a training step. Times come from a recording or are measured on this machine's GPU when asked; nothing is
// estimated.
//
// Actions: "measure" the present layer (the source becomes this GPU), "measure_grid" at every recorded M of this
// N and K, "measure_step" one training step of K-N-K, "stop".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/backends.h"
#include "labs/lab.h"
#include "labs/speed/model_live.h"
#include "labs/speed/model_outcome.h"

namespace fp8lab::speed {

class SpeedLab : public Lab {
  public:
    SpeedLab();  // of the shipped recordings and this machine's GPU
    SpeedLab(std::shared_ptr<const Shipped> shipped, Backends backends);
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_, recordings_); }
    std::vector<Field> defaults() override { return fields_of(defaults_, recordings_); }
    void update() override;
    std::vector<Figure> figures() const override;  // "roofline", the one that `view` names, "step"
    std::vector<std::string> figure_ids() const override;
    Figure thumbnail() const override;
    std::vector<Metric> metrics() const override;
    Provenance provenance() const override;
    std::string device() const override;
    void set_wake(std::function<void()> wake) override;
    std::vector<std::string> recipes() const override { return {"bf16", params_.recipe}; }
    void reset() override;
    std::span<const NamedJudge> judges() const override;  // none without a recording
    bool busy() const override { return live_.busy(); }

    // What a slider or the disc asks for: of a recording the nearest recorded value. At another N the K of the
    // nearest recorded layer, and the other way round.
    void choose_m(double m);
    void choose_n(double n);
    void choose_k(double k);
    // M of the recorded product whose FLOP per byte is nearest to `ai`.
    void choose_by_intensity(double ai);
    // One recorded value further up or down (direction 1 or -1).
    void step_m(int direction);

    const Params& params() const { return params_; }
    const Outcome& outcome() const { return outcome_; }
    std::string gpu_reason() const {
        return backends_.gpu_reason();
    }  // empty: there is a GPU, as far as is known
    const Live& measuring() const { return live_; }
    // Further sentences of the screen: a failure, a notice of the measurement, drift, an older library.
    std::vector<std::string> notices() const;

  private:
    void perform(std::string_view action) override;
    Source source_of(const std::string& id) const;
    void measure(bool every_m);

    std::shared_ptr<const Shipped> shipped_;
    Backends backends_;
    std::vector<Choice> recordings_;
    Params params_, asked_;
    Params defaults_;  // never changed
    LiveTimes times_;
    Live live_;
    Outcome outcome_;
};

}  // namespace fp8lab::speed
