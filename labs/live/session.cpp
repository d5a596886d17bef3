#include "labs/live/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/threads/ask.h"
#include "core/threads/worker.h"

namespace fp8lab::live {
namespace {

// For the worker: the GPU may take its half second. Only "auto" may end on the CPU instead, and only where there is no
// GPU to be had: then Backends::gpu_reason() says so from here on.
std::unique_ptr<Trainer> make_trainer(Backends& backends, std::string_view setting, std::string_view name,
                                      const Traits& traits, const TrainSpec& spec,
                                      const Preparation& preparation) {
    Backend* backend = nullptr;
    try {
        backend = &backends.get(name);
    } catch (const Error&) {
        if (setting != "auto") throw;
        backend = &backends.get(name = "cpu");
    }
    if (name == "cpu" && traits.check_cpu) traits.check_cpu(spec);
    return backend->make_trainer(spec, preparation);
}

std::vector<std::string> texts_of(const std::vector<Recipe>& recipes) {
    std::vector<std::string> out;
    for (const Recipe& recipe : recipes) out.push_back(recipe_text(recipe));
    return out;
}

}  // namespace

Session::Session(const Traits& traits, Backends backends) : traits_(traits), backends_(std::move(backends)) {}
Session::~Session() = default;

Session& session_of(Lab& lab) {
    if (!lab.live()) throw Error{ErrorKind::failed, std::string(lab.info().id), "does not train"};
    return static_cast<Session&>(lab);
}

std::vector<Field> Session::fields_in(std::vector<table::Row> rows) {
    std::vector<Field> out;
    for (table::Row& row : rows) out.push_back(std::move(row.field));
    return out;
}

Provenance Session::provenance() const {
    const auto& arms = history_.arms();
    return arms.empty() ? Provenance::cpu_emulated : arms[arms.size() > 1 ? 1 : 0].provenance;
}

std::string Session::device() const {
    const auto gpu = provenance() == Provenance::cpu_emulated ? std::nullopt : backends_.gpu_device();
    return gpu ? gpu->name : "";
}

std::string_view Session::backend() const {
    const std::string_view setting = chosen().backend;
    if (setting != "auto") return setting == "cuda" ? "cuda" : "cpu";
    return gpu_reason().empty() ? "cuda" : "cpu";
}

bool Session::running() const {
    return status_.state == RunState::running || status_.state == RunState::preparing;
}

bool Session::finished() const {
    return status_.state == RunState::done || (step() > 0 && step() >= steps());
}

// ---- the run

void Session::begin() {
    if (run_) return;
    if (!replayed_.empty()) restart();
    told_.clear();
    for (const Field& field : fields()) told_.emplace_back(field.info.name, field_text(field));
    live_backend_ = backend();
    first_spec_ = spec_ = fresh_spec();
    run_ = std::make_unique<TrainingRun>(
        [before = std::exchange(ended_, nullptr), backends = backends_, setting = told("backend"),
         name = live_backend_, traits = traits_, spec = spec_](const Preparation& preparation) mutable {
            before.reset();  // waits for its last step and frees its memory
            return make_trainer(backends, setting, name, traits, spec, preparation);
        },
        wake_);
    run_->send(Watch{watched()});
    sent(false);
}

void Session::expect(int goal) {
    if (!running()) pace_.see(step(), true);  // a step may be over before the next update()
    goal_ = goal;
    expected_ = true;
    stopped_before_ = stopped_arms();
}

// Goes to the goal, or first to where the lab rests on the way.
void Session::go(int goal) {
    begin();
    goal = std::clamp(goal, step(), steps());
    if (goal <= step()) return;
    expect(goal);
    rest_ = rest_before(goal);
    run_->run_to(rest_);
    status_ = run_->status();
}

void Session::run() {
    if (finished() || failed()) restart();
    stepping_ = false;
    go(steps());
}

void Session::pause() {
    if (!run_) return;
    run_->pause();
    expected_ = stepping_ = false;
    status_ = run_->status();
}

void Session::single_step() {
    begin();
    const int goal = std::min((stepping_ && expected_ ? goal_ : step()) + 1, steps());
    stepping_ = true;
    if (goal <= step() || rest_before(goal) < goal) return go(goal);
    expect(goal);
    run_->single_step();
    status_ = run_->status();
}

void Session::run_to(int step) {
    stepping_ = false;
    go(step);
}

// A step on a GPU, or its preparation, may take longer than a frame, so this does not wait for it.
void Session::restart() {
    if (run_) {
        run_->pause();
        ended_ = std::move(run_);
    }
    history_ = {};
    changes_.clear();
    replayed_.clear();
    status_ = {};
    expected_ = stepping_ = false;
}

void Session::perform(std::string_view action) {
    if (action == "run") return run();
    if (action == "pause") return pause();
    if (action == "step") return single_step();
    if (action == "restart") return restart();
    if (const auto step = run_to_step(action)) return run_to(*step);
    Lab::perform(action);
}

std::ptrdiff_t Session::stopped_arms() const {
    return std::ranges::count_if(history_.arms(),
                                 [](const ArmTrack& arm) { return arm.stopped.has_value(); });
}

void Session::advance(int steps) {
    const auto stopped = stopped_arms();
    run_to(step() + steps);
    for (;;) {
        update();
        if (failed() && step() == 0) throw Error(status_.kind, std::string(traits_.info.id), status_.message);
        if (failed() || stopped_arms() > stopped || !busy()) return;
        if (interrupted()) return pause();
        ask_between();
        wait_for_workers();
    }
}

// The worker comes to rest before its last snapshot is out: what counts as the end is what has arrived here.
void Session::update() {
    if (!run_) {
        if (replayed_.empty()) fresh_spec();  // says what is wrong with the settings
        return;
    }
    send_changes();
    status_ = run_->status();
    if (const auto snapshot = run_->take()) {
        history_.append(*snapshot, model_plan(spec_));
        taken(*snapshot);
    }
    pace_.see(step(), status_.state == RunState::running);
    if (!expected_ || running()) return;
    const auto stopped = stopped_arms();
    const bool all_stopped = stopped > 0 && stopped == std::ssize(history_.arms());
    if (step() >= goal_ || stopped > stopped_before_ || all_stopped)
        expected_ = false;
    else if (step() == rest_)
        go(goal_);
}

// ---- what changes on its way

std::string& Session::told(std::string_view field) {
    return std::ranges::find(told_, field, [](const auto& value) -> std::string_view { return value.first; })
        ->second;
}

void Session::send_changes() {
    const TrainSpec& wanted = fresh_spec();
    bool changed = false;
    for (std::size_t i = 0; i < std::min(wanted.arms.size(), spec_.arms.size()); ++i)
        changed |= send_recipe(static_cast<int>(i), wanted.arms[i]);
    if (wanted.lr != spec_.lr) {
        run_->send(SetLearningRate{wanted.lr});
        spec_.lr = wanted.lr;
        note(fmt::format("{} {}", traits_.lr, shortest(wanted.lr)));
        changed = true;
    }
    if (std::string& tensor = told("tensor"); tensor != chosen().tensor) {
        run_->send(Watch{watched()});
        tensor = chosen().tensor;
    }
    sent(changed);
}

bool Session::send_recipe(int arm, const Recipe& wanted) {
    Recipe& now = spec_.arms[static_cast<std::size_t>(arm)];
    const std::string text = recipe_text(wanted);
    if (recipe_text(now) == text) return false;
    Recipe tuned = now;
    tuned.history = wanted.history;
    tuned.margin = wanted.margin;
    tuned.algo = wanted.algo;
    if (recipe_text(tuned) == text) {  // the scaling state goes on
        if (now.history != wanted.history) run_->send(SetHistory{arm, wanted.history});
        if (now.margin != wanted.margin) run_->send(SetMargin{arm, wanted.margin});
        if (now.algo != wanted.algo) run_->send(SetAlgo{arm, wanted.algo});
    } else {
        run_->send(SetRecipe{arm, wanted});
    }
    note(fmt::format("arm {} {}", "ABC"[arm], text));
    now = wanted;
    return true;
}

std::vector<std::string> Session::waiting() const {
    if (!run_) return {};
    std::vector<std::string> labels;
    const auto rows = const_cast<Session*>(this)->rows();  // only read
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto& [name, told] = told_[i];
        if (name == "backend") {  // "auto" that found the GPU to be of no use has taken the CPU
            const bool fell_back = told == "auto" && !gpu_reason().empty();
            if (backend() != (fell_back ? "cpu" : live_backend_)) labels.insert(labels.begin(), name);
            continue;
        }
        const bool later = std::ranges::find(traits_.on_reset, name) != traits_.on_reset.end();
        if (!later || !rows[i].shown || field_text(rows[i].field) == told || !waits(name, told)) continue;
        std::string label = rows[i].field.info.label;
        label.front() = static_cast<char>(label.front() | 0x20);  // lower case
        labels.push_back(std::move(label));
    }
    return labels;
}

// ---- what it was

bool Session::whole() const {
    return !history_.arms().empty() && std::ranges::all_of(history_.arms(), [&](const ArmTrack& arm) {
        return arm.stopped || static_cast<int>(arm.loss.size()) == spec_.steps;
    });
}

bool Session::explained() const {
    const TrainSpec& wanted = fresh_spec();
    return changes_.empty() && waiting().empty() && texts_of(wanted.arms) == texts_of(first_spec_.arms) &&
           wanted.lr == first_spec_.lr;
}

std::pair<std::string, int> Session::first_change() const {
    return {changes_.front().what + " was set", changes_.front().step};
}

std::string Session::no_record() const {
    if (!replayed_.empty() || !run_) return {};
    const std::string again =
        fmt::format(" Press Reset, then Run, and change {} until the end.", traits_.allowed);
    if (!changes_.empty() && changes_.front().step < spec_.steps) {
        const auto [what, at] = first_change();
        return fmt::format("This run does not count for an exercise: {} after step {}.{}", what,
                           group_thousands(at), again);
    }
    if (!finished() || !whole() || explained()) return {};
    return "This run was trained with other settings than the present ones, so it does not count for an "
           "exercise." +
           again;
}

void Session::replay(std::string_view record) {
    restart();
    if (record.empty()) return;
    const TrainSpec spec = fresh_spec();
    history_.append(read_record(record, spec), model_plan(spec));
    first_spec_ = spec_ = spec;
    replayed_ = record;
}

std::string Session::preparing() const {
    return status_.preparing.empty() ? "" : "Preparing " + status_.preparing;
}

std::string Session::message() const {
    if (failed()) return status_.message;
    return stopped_arms() > 0 ? finding() : "";
}

std::string Session::command() const {
    std::string text = "fp8lab train " + command_line(run_ ? first_spec_ : spec());
    for (const Change& change : changes_)
        text += fmt::format("\n# changed after step {}: {}", change.step, change.what);
    return text;
}

std::string Session::transformer_engine() const { return transformer_engine_code(spec().arms.at(1)); }

std::vector<std::string> Session::recipes() const {
    std::vector<std::string> out;
    for (const Recipe& arm : spec().arms) out.push_back(recipe_text(arm));
    return out;
}

std::vector<std::pair<std::string, std::string>> Session::parameters(std::string provenance) const {
    std::vector<std::pair<std::string, std::string>> out = {
        {"command", "fp8lab train " + command_line(run_ ? first_spec_ : spec())},
        {"provenance", std::move(provenance)},
        {"steps done", std::to_string(step())}};
    for (const Change& change : changes_)
        out.emplace_back("changed after step " + std::to_string(change.step), change.what);
    return out;
}

ShippedRun Session::recorded_run() const {
    return step() == 0 && chosen().default_task ? shipped_run(std::string(traits_.info.id)) : ShippedRun{};
}

TimeLeft Session::time_left() const {
    return live::time_left(step(), steps(), pace_, recorded_run().run.get(), least_seconds());
}

}  // namespace fp8lab::live
