#include "labs/transformer/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/threads/ask.h"
#include "labs/live/backend.h"

namespace fp8lab::transformer {
namespace {

constexpr LabInfo kInfo{.id = "transformer",
                        .number = 13,
                        .short_title = "Transformer",
                        .title = "A transformer, block by block",
                        .question = "Which of its operations may run in FP8, and which tensor breaks first?",
                        .minutes = 40,
                        .after = "L8",
                        .gpu = "GPU too"};

}  // namespace

TransformerLab::TransformerLab(Backends backends) : backends_(std::move(backends)) {}
TransformerLab::~TransformerLab() = default;

const LabInfo& TransformerLab::info() const { return kInfo; }

Provenance TransformerLab::provenance() const {
    const auto& arms = history_.arms();
    return arms.empty() ? Provenance::cpu_emulated : arms.back().provenance;
}

std::string TransformerLab::device() const {
    const auto gpu = provenance() == Provenance::cpu_emulated ? std::nullopt : backends_.gpu_device();
    return gpu ? gpu->name : "";
}

std::string_view TransformerLab::backend() const { return live::backend_of(backends_, params_.backend); }

// Names and sizes come from the corpus, a file: read once per setting, not once per frame.
const TrainSpec& TransformerLab::fresh_spec() const {
    Params key = params_;
    key.tensor.clear();
    key.align_step = 0;
    if (!fresh_ || fresh_->first != key) fresh_.emplace(key, spec_of(params_));
    return fresh_->second;
}

const TrainSpec& TransformerLab::spec() const { return run_ || !replayed_.empty() ? spec_ : fresh_spec(); }

const ModelPlan& TransformerLab::plan() const {
    const TrainSpec& now = spec();
    const std::string key(to_string(now.task));
    if (!plan_ || plan_->first != key) plan_.emplace(key, model_plan(now));
    return plan_->second;
}

int TransformerLab::block() const {
    const char first = params_.tensor.front();
    return first >= '1' && first <= '9' ? first - '0' : kBlocks;
}

TensorId TransformerLab::selected() const { return *plan().find(params_.tensor); }

std::vector<Operation> TransformerLab::operations() const {
    return transformer::operations(block(), plan(), spec().arms.at(1), health_[1]);
}

bool TransformerLab::running() const {
    return status_.state == RunState::running || status_.state == RunState::preparing;
}

bool TransformerLab::busy() const { return running() || (expected_ && !failed()); }

// ---- the run

void TransformerLab::begin() {
    if (run_) return;
    if (!replayed_.empty()) restart();
    live_ = params_;
    live_backend_ = backend();
    first_spec_ = spec_ = fresh_spec();
    run_ = std::make_unique<TrainingRun>(
        [before = std::exchange(ended_, nullptr), backends = backends_, setting = params_.backend,
         name = live_backend_, spec = spec_](const Preparation& preparation) mutable {
            before.reset();  // waits for its last step and frees its memory
            return live::get_backend(backends, setting, name).backend.make_trainer(spec, preparation);
        },
        wake_);
    run_->send(Watch{selected()});
}

// Goes to the goal, or first to the step after which the channel is aligned.
void TransformerLab::go(int goal) {
    begin();
    goal_ = std::clamp(goal, step(), kSteps);
    if (goal_ <= step()) return;
    expected_ = true;
    send_alignment();
    const int align = alignment_ == Alignment::none ? params_.align_step : 0;
    run_->run_to(align > step() ? std::min(align, goal_) : goal_);
    status_ = run_->status();
}

// Sends the alignment between two steps, while the training rests after align_step of them.
void TransformerLab::send_alignment() {
    if (alignment_ != Alignment::none || params_.align_step == 0 || step() != params_.align_step) return;
    run_->send(AlignChannel{});
    alignment_ = Alignment::done;
}

void TransformerLab::run() {
    if (finished() || failed()) restart();
    stepping_ = false;
    go(kSteps);
}

void TransformerLab::pause() {
    if (!run_) return;
    run_->pause();
    expected_ = stepping_ = false;
    status_ = run_->status();
}

// Pressed while a step is under way: one more.
void TransformerLab::single_step() {
    begin();
    const int goal = std::min((stepping_ && expected_ ? goal_ : step()) + 1, kSteps);
    stepping_ = true;
    const bool aligns =
        alignment_ == Alignment::none && params_.align_step > step() && params_.align_step <= goal;
    if (aligns || goal <= step()) return go(goal);
    goal_ = goal;
    expected_ = true;
    send_alignment();
    run_->single_step();
    status_ = run_->status();
}

void TransformerLab::run_to(int step) {
    stepping_ = false;
    go(step);
}

void TransformerLab::restart() {
    if (run_) {
        run_->pause();
        ended_ = std::move(run_);
    }
    history_ = {};
    health_ = {};
    evaluations_ = {};
    replayed_.clear();
    status_ = {};
    changes_.clear();
    goal_ = 0;
    expected_ = stepping_ = false;
    if (by_hand_) params_.align_step = 0;  // of the run before
    alignment_ = Alignment::none;
    by_hand_ = false;
}

void TransformerLab::reset() {
    restart();
    params_ = {};
}

std::string TransformerLab::why_not_align() const {
    if (params_.task == "copying") return "Only in the task text: a character is needed that is rare.";
    if (step() == 0) return "Start the training first.";
    if (params_.align_step > 0) return "Done: a channel is aligned once.";
    if (finished() || !run_) return "The training is at its end.";
    return {};
}

void TransformerLab::align() {
    if (!why_not_align().empty()) return;
    params_.align_step = live_.align_step = step();
    by_hand_ = true;
    run_->send(AlignChannel{});
    alignment_ = running() ? Alignment::sent : Alignment::done;
}

// Sent to a running training, the alignment comes some steps after the last one seen: where the weights of gate and up
// are suddenly far larger.
void TransformerLab::locate_alignment() {
    constexpr double kAligned = 20;  // an element of a row of length 300; trained weights stay below 3
    if (alignment_ != Alignment::sent) return;
    for (const live::ArmTrack& arm : history_.arms()) {
        const live::TensorTrack* w = arm.find(*plan().find("1.gate_up.w"));
        if (!w) continue;
        for (std::size_t i = 0; i < w->amax.size(); ++i) {
            if (!(w->amax.values()[i] > kAligned)) continue;
            params_.align_step = live_.align_step = static_cast<int>(w->step.values()[i]);
            alignment_ = Alignment::done;
            return;
        }
    }
}

std::optional<int> TransformerLab::aligned_at() const {
    if (params_.align_step == 0 || alignment_ != Alignment::done || step() <= params_.align_step) return {};
    return params_.align_step;
}

void TransformerLab::perform(std::string_view action) {
    if (action == "run") return run();
    if (action == "pause") return pause();
    if (action == "step") return single_step();
    if (action == "restart") return restart();
    if (action == "align") return align();
    if (const auto step = live::run_to_step(action)) return run_to(*step);
    Lab::perform(action);
}

void TransformerLab::advance(int steps) {
    const auto stopped = [&] {
        return std::ranges::any_of(history_.arms(),
                                   [](const live::ArmTrack& arm) { return arm.stopped.has_value(); });
    };
    const bool stopped_before = stopped();
    stepping_ = false;
    go(step() + steps);
    while (busy()) {
        update();
        if (failed() && step() == 0) throw Error(status_.kind, "transformer", status_.message);
        if (failed() || (stopped() && !stopped_before)) return;
        if (interrupted()) return pause();
        ask_between();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void TransformerLab::update() {
    if (!run_) {
        if (replayed_.empty()) fresh_spec();  // says what is wrong with the settings
        return;
    }
    send_changes();
    status_ = run_->status();
    drain();
    pace_.see(step(), status_.state == RunState::running);
    if (!expected_ || running()) return;
    const auto ended = [](const live::ArmTrack& arm) { return arm.stopped.has_value(); };
    const auto& arms = history_.arms();
    if (step() >= goal_ || std::ranges::any_of(arms, ended)) {
        expected_ = false;
    } else if (alignment_ == Alignment::none && step() == params_.align_step && step() > 0) {
        go(goal_);
    }
}

void TransformerLab::drain() {
    const auto snapshot = run_->take();
    if (!snapshot) return;
    history_.append(*snapshot, plan());
    for (std::size_t i = 0; i < std::min<std::size_t>(2, snapshot->arms.size()); ++i) {
        health_[i].append(plan(), snapshot->arms[i].records);
        if (snapshot->arms[i].evaluation) evaluations_[i] = snapshot->arms[i].evaluation;
    }
    locate_alignment();
}

void TransformerLab::send_changes() {
    const TrainSpec& wanted = fresh_spec();
    for (std::size_t i = 0; i < spec_.arms.size(); ++i) {
        const std::string text = recipe_text(wanted.arms[i]);
        if (recipe_text(spec_.arms[i]) == text) continue;
        Recipe& now = spec_.arms[i];
        Recipe tuned = now;
        tuned.history = wanted.arms[i].history;
        if (recipe_text(tuned) == text)  // the scaling state goes on
            run_->send(SetHistory{static_cast<int>(i), tuned.history});
        else
            run_->send(SetRecipe{static_cast<int>(i), wanted.arms[i]});
        now = wanted.arms[i];
        changes_.push_back({step(), fmt::format("arm {} {}", "AB"[i], text)});
    }
    if (params_.lr != spec_.lr) {
        run_->send(SetLearningRate{params_.lr});
        spec_.lr = params_.lr;
        changes_.push_back({step(), "learning rate " + shortest(params_.lr)});
    }
    if (params_.tensor == live_.tensor) return;
    run_->send(Watch{selected()});
    live_.tensor = params_.tensor;
}

std::vector<std::string> TransformerLab::waiting() const {
    if (!run_) return {};
    std::vector<std::string> labels;
    // "auto" may have ended on the CPU.
    if (backend() != live_backend_ && params_.backend != live_.backend) labels.emplace_back("backend");
    if (params_.task != live_.task) labels.emplace_back("task");
    if (params_.batch != live_.batch) labels.emplace_back("batch");
    if (params_.seed != live_.seed) labels.emplace_back("seed");
    if (params_.align_step != live_.align_step && alignment_ == Alignment::none &&
        params_.align_step < step())
        labels.emplace_back("aligned after");
    return labels;
}

// ---- evidence

bool TransformerLab::explained() const {
    return changes_.empty() && waiting().empty() && (params_.align_step == 0 || aligned_at());
}

std::string TransformerLab::record() const {
    if (!replayed_.empty()) return replayed_;
    const bool at_rest = run_ && !busy() && !failed() && step() > 0;
    // Aligned between two steps, and none since: the record of before stands until there is one.
    const bool before = params_.align_step > 0 && params_.align_step == step() && changes_.empty();
    return at_rest && (explained() || (before && waiting().empty())) ? record_text(*this) : "";
}

std::string TransformerLab::no_record() const {
    if (!replayed_.empty() || !run_ || step() == 0) return {};
    const std::string again = " Press Reset, then Run, and change nothing but the alignment until the end.";
    if (!changes_.empty() && changes_.front().step < kSteps)
        return fmt::format("This run does not count for an exercise: {} was set after step {}.{}",
                           changes_.front().what, changes_.front().step, again);
    if (!finished() || explained()) return {};
    return "This run was trained with other settings than the present ones, so it does not count for an "
           "exercise." +
           again;
}

void TransformerLab::replay(std::string_view record) {
    restart();
    if (record.empty()) return;
    const TrainSpec spec = fresh_spec();
    const Recorded read = parse_record(record, spec, model_plan(spec));
    spec_ = first_spec_ = spec;
    replayed_ = record;
    history_.append(read.snapshot, plan());
    health_ = read.health;
    for (std::size_t i = 0; i < 2; ++i) evaluations_[i] = read.snapshot.arms[i].evaluation;
    by_hand_ = params_.align_step == 0 && read.aligned_at > 0;
    params_.align_step = read.aligned_at;
    alignment_ = read.aligned_at > 0 ? Alignment::done : Alignment::none;
}

LabEntry entry() { return entry_of<TransformerLab>(kInfo); }

}  // namespace fp8lab::transformer
