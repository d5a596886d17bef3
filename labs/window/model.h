// L4, "Fit the tensor into the window": the histogram of a tensor under what a format can hold, and the one
// number, the scale, that positions that window.
#pragma once

#include <string>
#include <vector>

#include "core/threads/job.h"
#include "labs/lab.h"
#include "labs/window/model_cast.h"

namespace fp8lab::window {

class WindowLab final : public Lab {
  public:
    WindowLab();
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    void update() override;
    // "window", "margin" and "loss".
    std::vector<Figure> figures() const override;
    Figure thumbnail() const override;
    std::vector<Metric> metrics() const override;
    void reset() override;
    std::span<const NamedJudge> judges() const override;  // exercises.cpp
    bool busy() const override { return job_.busy(); }
    void set_wake(std::function<void()> wake) override { job_.start_worker(std::move(wake)); }

    // The window was dragged from one place on the axis to another: the scale follows, or, where the scale is
    // made from the tensor, the margin by whole powers of two.
    void slide(double from, double to);

    const CastSpec& params() const { return params_; }
    const Outcome& outcome() const { return outcome_; }

  private:
    static std::vector<Field> fields_of(CastSpec& params);

    CastSpec params_, asked_;
    CastSpec defaults_;  // never changed
    Outcome outcome_;
    Job<CastSpec, Outcome> job_;
};

// The figures of an outcome; model_figures.cpp.
Figure window_figure(const Outcome& outcome);
Figure margin_figure(const Outcome& outcome);
Figure loss_figure(const Outcome& outcome);
std::string finding(const Outcome& outcome);  // the sentence over the window
Range axis_of(const Outcome& outcome);        // of |x|
// The scale in words, to be read after "scale = ": "448 / amax / 2^3", "1, because amax is 0"; model.cpp.
std::string scale_rule(const Outcome& outcome);

}  // namespace fp8lab::window
