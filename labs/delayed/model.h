// L5, "Scaling from the past": delayed scaling over a scenario, step by step, and a second machine on the
// same tensors for comparison: the same one in the notebook's order, or a pinned one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "labs/delayed/model_machine.h"
#include "labs/delayed/model_scenario.h"
#include "labs/table/table_lab.h"

namespace fp8lab::delayed {

struct Params {
    ScenarioSpec scenario;
    MachineSpec a, b;
    std::string other = "notebook";  // what B is: "notebook" (A in the notebook's order) or "pinned" (b)
    std::string compare = "ab";      // what the stage shows: "a", "ab", "b"
    int step = 3;                    // the step under the cursor
};

// One machine over the scenario.
struct Run {
    MachineSpec machine;
    std::vector<MachineStep> steps;
    std::vector<CastStats> casts;       // one a step
    std::vector<double> tops, bottoms;  // the window in the tensor's own units: largest and smallest value

    int saturated_steps() const;   // steps in which the largest element is changed by saturation
    double worst_sqnr_db() const;  // NaN casts (empty tensors, poison) left out
    double mean_underflow_pct() const;
    double mean_overflow_pct() const;
};

// The effect of a spike after it has gone: the steps whose scale it still decides.
struct StaleScale {
    int spike = -1;  // its step; -1: none
    int first = 0, count = 0;
    bool whole = false;         // it ends before the series does
    double unused_binades = 0;  // of the window above the amax, the most of these steps
};
StaleScale stale_scale_of(const Run& run);

// What a spike costs: elements clipped in its step, and elements lost on average over the next 16.
struct Aftermath {
    double overflow_pct = 0, underflow_pct = 0;
};
Aftermath aftermath(const Run& run, int spike);

// The step under the cursor, for the three boxes below the figure.
struct Detail {
    std::vector<float> recorded, rolled;  // slot 0 first: with this step's amax in it, and after the roll
};

// The result that is computed on a worker thread: two machines over one scenario.
struct Request {
    ScenarioSpec scenario;
    MachineSpec a, b;
    bool operator==(const Request&) const = default;
};
struct Result {
    std::shared_ptr<const Tensors> tensors;
    Run a, b;
};

// The tensors of the call before are kept: the machines' settings leave them as they are.
class Compute {
  public:
    Result operator()(const Request& asked);

  private:
    ScenarioSpec made_;
    std::shared_ptr<const Tensors> tensors_;
};

struct Delayed {
    static const LabInfo kInfo;
    using Params = delayed::Params;
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<Delayed>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&result}; }
    Figure thumbnail() const;
    std::vector<std::string> recipes() const;  // of A, where a training can have its order and its algorithm
    // "pin": B becomes what A is now. "unpin": B is A in the notebook's order again.
    bool perform(std::string_view action);

    void go_to(int step);  // clamped to the series

    const Run& a() const { return result->a; }
    const Run& b() const { return result->b; }
    const Run& shown() const { return params.compare == "b" ? b() : a(); }
    int steps() const { return static_cast<int>(a().steps.size()); }
    int cursor() const;  // params.step, or the last one where the series is shorter
    const Tensors& tensors() const { return *result->tensors; }
    Detail detail() const;  // of the machine shown

    Params params;
    table::Computed<Request, Result> result{"", [this] { return request(); }, Compute(),
                                            table::When::at_once};

  private:
    Request request() const;
    std::vector<Figure> figures() const;  // "timeline", "casts" and "sqnr"
    std::vector<table::MetricRow> metrics() const;
};
using DelayedLab = table::TableLab<Delayed>;

// The figures of a lab's state; model_figures.cpp.
Figure timeline_figure(const Delayed& lab);
void drop_words(Figure& timeline);  // where there is no room for them
Figure casts_figure(const Delayed& lab);
Figure sqnr_figure(const Delayed& lab);
std::string finding(const Run& run);                  // the sentence over the timeline
std::string order_words(const MachineSpec& machine);  // "use, update"
std::string rule_words(const MachineSpec& machine);   // "max, H 16, margin 2^1"
// The result of casting amax x scale: "fits: at most 448", "rounds to 448", "above 448: saturated".
std::string cast_words(const MachineStep& step, const MachineSpec& machine);

}  // namespace fp8lab::delayed
