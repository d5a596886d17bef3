// A lab is a pure model with a thin view. The model (labs/<id>/model.h) derives from Lab, includes no ImGui
// and gives every number that its view shows; labs/registry.cpp lists the models, labs/views.cpp the views.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/fields.h"
#include "core/base/metric.h"
#include "core/base/provenance.h"
#include "core/figure/figure.h"
#include "core/lesson/exercise.h"

namespace fp8lab {

struct LabInfo {
    std::string_view id;           // "bits": the folder under labs/ and the word on the command line
    int number;                    // 1: "L1"
    std::string_view short_title;  // rail, at most 16 letters: "Bits and codes"
    std::string_view title;        // "What does a byte mean?"
    std::string_view question;     // the line under the title
    int minutes;
    std::string_view after = {};  // the lab that this one builds on: "L1"; empty: none
    std::string_view gpu = {};    // what one changes, for the home card; empty: nothing, none is needed
};

class Lab {
  public:
    virtual ~Lab() = default;
    virtual const LabInfo& info() const = 0;
    virtual std::vector<Field> fields() = 0;  // bound to the live parameters
    virtual void update() = 0;                // parameters -> result; a live lab takes the newest snapshot
    virtual std::vector<Figure> figures() const = 0;  // of the last update()
    virtual Figure thumbnail() const = 0;             // the home card's picture
    virtual std::vector<Metric> metrics() const = 0;
    // The names that figures() and metrics() can have with these fields; also those that come with a training
    // only. What a scene names is held against them.
    virtual std::vector<std::string> figure_ids() const;
    virtual std::vector<std::string> metric_names() const;
    virtual Provenance provenance() const { return Provenance::cpu_emulated; }
    virtual std::string device() const { return {}; }  // where that is not the CPU: "NVIDIA H200, 141 GB"
    virtual void advance(int steps) {
        (void)steps;
    }  // live labs: run that many steps now (`run`, `screenshot --steps`); fewer where the process was asked
       // to end meanwhile (core/base/stop.h)
    virtual void set_wake(std::function<void()> wake) {
        (void)wake;
    }  // live labs: called from a worker when there is news

    // What a learner can do besides moving fields, by name: "step", "inject". Views call act(), never the
    // function behind it, so that exercises can log it and `check` can do it again; whatever changes the lab
    // is a field or an action.
    void act(std::string_view action);  // throws usage_error for an unknown one
    // Told of each action before it is done.
    void set_listener(std::function<void(std::string_view)> listener) { listener_ = std::move(listener); }
    virtual std::span<const Exercise> exercises() const { return {}; }  // labs/<id>/exercises.cpp
    // A result for the parameters as they stand is still on its way: exercises wait for it.
    virtual bool busy() const { return false; }
    // Labs that train, whose numbers do not follow from their fields at once. record(): the series of a
    // finished run that no change interrupted, as JSON; empty otherwise. replay(): shows such a run instead
    // of training, or, empty, none; throws input_error.
    virtual bool live() const { return false; }
    virtual std::string record() const { return {}; }
    virtual void replay(std::string_view record) { (void)record; }

    // Everything a scene would hold. The default is the field table.
    virtual nlohmann::json state();
    virtual void restore(const nlohmann::json& state);  // throws input_error; nothing changes then
    virtual void reset() = 0;                           // default parameters

  protected:
    virtual void perform(std::string_view action);  // for act(); the default knows none

  private:
    std::function<void(std::string_view)> listener_;
};

struct LabEntry {
    std::string_view id;
    std::unique_ptr<Lab> (*make)();
};
std::span<const LabEntry> lab_registry();

// "L1", "l01", "1", "bits", any case. Throws usage_error listing the labs.
const LabEntry& find_lab(std::string_view name, std::string_view where = "--lab");

}  // namespace fp8lab
