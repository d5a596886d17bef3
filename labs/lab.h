// A lab has a model and a view. The model (labs/<id>/model.h) derives from Lab, includes no ImGui and
// computes every number that the view shows; labs/list.h lists the labs.
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
    int number;                    // 1: "L1"; 0: no number
    std::string_view short_title;  // rail, at most 16 letters: "Bits and codes"
    std::string_view title;        // "What does a byte mean?"
    std::string_view question;     // the line under the title
    int minutes;
    std::string_view after = {};  // the lab that this one builds on: "L1"; empty: none
    std::string_view gpu = {};    // what a GPU changes, for the card on home; empty: nothing
    // Where recipes() is always empty: why there is no code of this lab, as the end of a sentence.
    std::string_view no_code = {};
    // Its values are of trainings and searches that run within it. The sums of another processor's matrix products have
    // another order, and that changes such values visibly: fp8lab check does again what was done and judges that.
    bool trained = false;

    // "L1", and "L1 " before a name; empty: a lab without a number, which is below the others.
    std::string mark() const { return number > 0 ? "L" + std::to_string(number) : ""; }
    std::string name() const { return number > 0 ? mark() : std::string(short_title); }
    std::string mark_before() const { return number > 0 ? mark() + " " : ""; }
};

class Lab {
  public:
    virtual ~Lab() = default;
    virtual const LabInfo& info() const = 0;
    virtual std::vector<Field> fields() = 0;  // bound to the live parameters
    // The same fields with what reset() gives them; only to be read.
    virtual std::vector<Field> defaults() = 0;
    virtual void update() = 0;  // computes the result; a live lab takes the newest snapshot
    virtual std::vector<Figure> figures() const = 0;  // of the last update()
    virtual Figure thumbnail() const = 0;             // the home card's picture
    virtual std::vector<Metric> metrics() const = 0;
    // All names that figures() and metrics() can have with these fields, also those that appear only during a
    // training. The names in a scene are checked against them.
    virtual std::vector<std::string> figure_ids() const;
    virtual std::vector<std::string> metric_names() const;
    virtual Provenance provenance() const { return Provenance::cpu_emulated; }
    virtual std::string device() const { return {}; }  // where that is not the CPU: "NVIDIA H200, 141 GB"
    // Live labs: runs that many steps before it returns (`run`, `screenshot --steps`); fewer where the
    // process is asked to end (core/base/stop.h).
    virtual void advance(int steps) { (void)steps; }
    // Live labs: `wake` is called on a worker thread when update() has something new.
    virtual void set_wake(std::function<void()> wake) { (void)wake; }

    // What a learner can do besides changing fields, by name: "step", "inject". Views call act() and not the
    // function behind it, so that exercises can record it and `check` can repeat it; every change of a lab is
    // a field or an action.
    void act(std::string_view action);  // throws usage_error for an unknown one
    // The listener is called before each action.
    void set_listener(std::function<void(std::string_view)> listener) { listener_ = std::move(listener); }
    // assets/exercises/<id>.json, read once and kept as long as the program runs; none where there are no judges. Throws
    // input_error (parse_exercises()).
    std::span<const Exercise> exercises() const;
    // What judges them, by the names that the file has for them: labs/<id>/exercises.cpp.
    virtual std::span<const NamedJudge> judges() const { return {}; }
    // The result for the present parameters is not ready yet; exercises wait for it.
    virtual bool busy() const { return false; }
    // A table of everything that the lab has measured, as CSV, where that is more than its figures show; else empty.
    virtual std::string table_csv() const { return {}; }
    // The recipes that the present parameters cast with, as texts that parse_recipe() reads; empty: they name none.
    virtual std::vector<std::string> recipes() const { return {}; }
    // The figures belong to older parameters, and are drawn faded. Those of a training are of its newest step.
    virtual bool stale() const { return busy() && !live(); }
    // Labs that train: their numbers follow from a run, not from the fields alone. record(): the series of a
    // finished run without changes, as JSON; else empty. replay(): shows such a run instead of training, none
    // where the text is empty; throws input_error.
    virtual bool live() const { return false; }
    virtual std::string record() const { return {}; }
    virtual int trained_steps() const { return 0; }  // of the run at hand
    virtual void replay(std::string_view record) { (void)record; }
    // Labs that train: whether they know the action "poison", for which a lecture has a key.
    virtual bool can_poison() const { return false; }
    // Labs that train: why the run at hand will leave no record(), in sentences; empty where it will.
    virtual std::string no_record() const { return {}; }

    // What a scene stores. The default is the field table.
    virtual nlohmann::json state();
    virtual void restore(const nlohmann::json& state);  // throws input_error; then nothing is changed
    virtual void reset() = 0;                           // default parameters; update() computes their result

  protected:
    virtual void perform(std::string_view action);  // for act(); the default knows none

  private:
    std::function<void(std::string_view)> listener_;
};

// What is known of a lab without making one, and how to make it.
struct LabEntry : LabInfo {
    std::unique_ptr<Lab> (*make)();
};
template <class Model>
LabEntry entry_of(const LabInfo& info) {
    return {info, []() -> std::unique_ptr<Lab> { return std::make_unique<Model>(); }};
}
std::span<const LabEntry> lab_registry();

// "L1", "l01", "1", "bits", any case. Throws usage_error listing the labs.
const LabEntry& find_lab(std::string_view name, std::string_view where = "--lab");

}  // namespace fp8lab
