#include "labs/train/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/threads/ask.h"
#include "labs/live/backend.h"
#include "labs/live/record.h"

namespace fp8lab::train {
namespace {

constexpr LabInfo kInfo{
    .id = "train",
    .number = 8,
    .short_title = "Train it live",
    .title = "Train it: BF16 against FP8",
    .question = "Same seed, batches and FP32 start. What do eight bits cost, and where is it seen?",
    .minutes = 30,
    .after = "L5",
    .gpu = "GPU too"};

// On the worker.
std::unique_ptr<Trainer> make_trainer(const Backends& backends, const Params& params,
                                      std::string_view backend, const TrainSpec& spec,
                                      const Preparation& preparation) {
    const auto chosen = live::get_backend(backends, params.backend, backend);
    if (chosen.name == "cpu" && params.task == "noise" && params.size != kCpuSize)
        throw Error(ErrorKind::backend, fmt::format("Size {}", fmt::join(spec.layers, "-")),
                    "is offered on the GPU only. Choose another size, or the GPU as backend.");
    return chosen.backend.make_trainer(spec, preparation);
}

bool acts_on_reset(std::string_view field) {
    constexpr std::array<std::string_view, 7> kLater = {"backend", "task",  "size", "schedule",
                                                        "steps",   "batch", "seed"};
    return std::ranges::find(kLater, field) != kLater.end();
}

// "Margin 2", "Format of dy E4M3", "Arm B current": a recipe by its name, whose label is long.
std::string label_of(const Field& field) {
    std::string value = field_text(field);
    if (const auto* number = std::get_if<double*>(&field.value)) value = format_number(**number, 3, true);
    const auto choice = std::ranges::find(field.choices, value, &Choice::id);
    if (choice != field.choices.end() && !field.info.name.starts_with("arm_")) value = choice->label;
    return field.info.label + " " + value;
}

std::vector<std::string> recipe_texts(const std::vector<Recipe>& recipes) {
    std::vector<std::string> out;
    for (const Recipe& recipe : recipes) out.push_back(recipe_text(recipe));
    return out;
}

}  // namespace

TrainLab::TrainLab(Backends backends) : backends_(std::move(backends)) {}
TrainLab::~TrainLab() = default;

const LabInfo& TrainLab::info() const { return kInfo; }

void TrainLab::set_wake(std::function<void()> wake) { wake_ = std::move(wake); }

Provenance TrainLab::provenance() const {
    const auto& arms = history_.arms();
    return arms.empty() ? Provenance::cpu_emulated : arms[arms.size() > 1 ? 1 : 0].provenance;
}

std::string TrainLab::device() const {
    const auto gpu = provenance() == Provenance::cpu_emulated ? std::nullopt : backends_.gpu_device();
    return gpu ? gpu->name : "";
}

std::string_view TrainLab::backend() const { return live::backend_of(backends_, params_.backend); }

std::shared_ptr<const Shipped> TrainLab::recorded() const {
    if (gpu_reason().empty()) return nullptr;
    auto all = shipped();
    return all->recordings.empty() && all->problem.empty() ? nullptr : all;
}

MlpTensor TrainLab::shown_tensor() const {
    MlpTensor id = train::shown_tensor(params_);
    id.layer = std::min(id.layer, static_cast<int>(spec().layers.size()) - 1);
    return id;
}

TrainSpec TrainLab::spec() const { return run_ ? spec_ : spec_of(params_); }

// ---- the run ----

void TrainLab::begin() {
    if (run_) return;
    live_ = params_;
    live_backend_ = backend();
    first_spec_ = spec_ = spec_of(params_);
    run_ = std::make_unique<TrainingRun>(
        [before = std::exchange(ended_, nullptr), backends = backends_, params = params_,
         backend = live_backend_, spec = spec_](const Preparation& preparation) mutable {
            before.reset();  // waits for its last step and frees its memory
            return make_trainer(backends, params, backend, spec, preparation);
        },
        wake_);
    run_->send(Watch{shown_tensor()});
    run_->limit_speed(pace());
}

void TrainLab::start() {
    begin();
    run_->start();
    status_ = run_->status();
}

void TrainLab::pause() {
    if (!run_) return;
    run_->pause();
    status_ = run_->status();
}

void TrainLab::single_step() {
    begin();
    run_->single_step();
    status_ = run_->status();
}

void TrainLab::run_to(int step) {
    if (step <= history_.steps()) return;
    begin();
    run_->run_to(std::min(step, spec_.steps));
    status_ = run_->status();
}

// A step on a GPU, or its preparation, may take longer than a frame, so this does not wait for it.
void TrainLab::restart() {
    if (run_) {
        run_->pause();
        ended_ = std::move(run_);
    }
    history_ = {};
    replayed_.clear();
    status_ = {};
    changes_.clear();
    moved_.clear();
}

void TrainLab::run() {
    if (finished() || failed()) restart();
    start();
}

void TrainLab::perform(std::string_view action) {
    if (action == "run") return run();
    if (action == "pause") return pause();
    if (action == "step") return single_step();
    if (action == "restart") return restart();
    if (action == "poison") return poison();
    if (const auto step = live::run_to_step(action)) return run_to(*step);
    Lab::perform(action);
}

// The worker comes to rest before its last snapshot is out.
bool TrainLab::complete() const {
    return !history_.arms().empty() && std::ranges::all_of(history_.arms(), [&](const ArmTrack& arm) {
        return arm.stopped || static_cast<int>(arm.loss.size()) == spec_.steps;
    });
}

// Only of a run that its settings explain: nothing was changed on its way or since.
std::string TrainLab::record() const {
    if (!replayed_.empty()) return replayed_;
    const bool explained = run_ && finished() && complete() && changes_.empty() && waiting().empty() &&
                           recipe_texts(arms_of(params_)) == recipe_texts(first_spec_.arms) &&
                           params_.lr == first_spec_.lr;
    return explained ? record_text(history_, first_spec_) : "";
}

std::string TrainLab::no_record() const {
    if (!replayed_.empty() || !run_) return {};
    const std::string again = " Press Reset, then Run, and change nothing until the end.";
    if (!changes_.empty() && changes_.front().step < spec_.steps) {
        const Change& first = changes_.front();
        const bool of_control = !moved_.empty() && !first.poison;
        return fmt::format("This run does not count for an exercise: {} after step {}.{}",
                           first.poison ? "a batch was multiplied by 1000"
                           : of_control ? moved_.front().mark.label + " was set"
                                        : first.what + " was set",
                           group_thousands(of_control ? moved_.front().mark.step : first.step), again);
    }
    if (!finished() || !complete() || !record().empty()) return {};
    return "This run was trained with other settings than the present ones, so it does not count for an "
           "exercise." +
           again;
}

void TrainLab::replay(std::string_view record) {
    restart();
    if (record.empty()) return;
    const TrainSpec spec = spec_of(params_);
    history_.append(parse_record(record, spec), model_plan(spec));
    replayed_ = record;
}

void TrainLab::reset() {
    restart();
    params_ = {};
}

void TrainLab::poison() {
    if (!run_) return;
    run_->send(PoisonBatch{});
    note("batch times 1000");
    changes_.back().poison = true;
}

// The worker pauses before its last snapshot is out: what counts as the end is what has arrived here.
void TrainLab::advance(int steps) {
    const int target = std::min(history_.steps() + steps, spec().steps);
    if (target <= history_.steps()) return;
    begin();
    run_->limit_speed(0);
    advance_to(target);
    run_->limit_speed(pace());
}

void TrainLab::advance_to(int target) {
    const auto stopped_before = stopped_arms();
    run_to(target);
    for (;;) {
        update();
        const auto stopped = stopped_arms();
        const bool all_stopped = stopped > 0 && stopped == std::ssize(history_.arms());
        if (history_.steps() >= target || stopped > stopped_before || all_stopped) return;
        if (failed() && history_.steps() == 0) throw Error(status_.kind, "train", status_.message);
        if (failed()) return;
        if (interrupted()) return pause();
        ask_between();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

std::ptrdiff_t TrainLab::stopped_arms() const {
    return std::ranges::count_if(history_.arms(),
                                 [](const ArmTrack& arm) { return arm.stopped.has_value(); });
}

void TrainLab::update() {
    if (!run_) return;
    send_changes();
    status_ = run_->status();
    drain();
    pace_.see(history_.steps(), status_.state == RunState::running);
}

void TrainLab::drain() {
    if (const auto snapshot = run_->take()) {
        history_.append(*snapshot, model_plan(spec_));
        locate_poison();
    }
}

// Sent to a running training, a poisoned batch comes some steps after the last one seen: where the amax of x1
// leaves behind all that the clean batches had.
void TrainLab::locate_poison() {
    constexpr double kJump =
        30;  // far above what one clean batch adds to the largest, far below the factor 1000
    const auto next =
        std::ranges::find_if(changes_, [](const Change& change) { return change.poison && !change.located; });
    if (next == changes_.end()) return;
    const auto known = [&](int step) {
        return std::ranges::any_of(changes_, [&](const Change& c) { return c.located && c.step == step; });
    };
    for (const ArmTrack& arm : history_.arms()) {
        const TensorTrack* x1 = arm.find(MlpTensor{TensorClass::x, 1});
        if (!x1 || !x1->applies()) continue;
        double clean = 0;
        for (std::size_t i = 0; i < x1->amax.size(); ++i) {
            const int step = static_cast<int>(x1->step.values()[i]);
            const double amax = x1->amax.values()[i];
            if (step >= next->step && clean > 0 && amax > kJump * clean && !known(step)) {
                next->step = step;
                next->located = true;
                return;
            }
            if (!known(step)) clean = std::fmax(clean, amax);
        }
    }
}

void TrainLab::send_changes() {
    const std::vector<Recipe> wanted = arms_of(params_);
    bool sent = false;
    for (std::size_t i = 0; i < std::min(wanted.size(), spec_.arms.size()); ++i)
        sent |= send_recipe(static_cast<int>(i), wanted[i]);
    if (params_.lr != spec_.lr) {
        run_->send(SetLearningRate{params_.lr});
        spec_.lr = params_.lr;
        note("lr " + shortest(params_.lr));
        sent = true;
    }
    if (sent) mark_controls();
    if (params_.tensor != live_.tensor) {
        run_->send(Watch{shown_tensor()});
        live_.tensor = params_.tensor;
    }
    if (params_.speed_limit != live_.speed_limit) {
        run_->limit_speed(pace());
        live_.speed_limit = params_.speed_limit;
    }
}

bool TrainLab::send_recipe(int arm, const Recipe& wanted) {
    Recipe& now = spec_.arms[static_cast<std::size_t>(arm)];
    if (recipe_text(now) == recipe_text(wanted)) return false;
    Recipe tuned = now;
    tuned.history = wanted.history;
    tuned.margin = wanted.margin;
    tuned.algo = wanted.algo;
    if (recipe_text(tuned) == recipe_text(wanted)) {  // the scaling state goes on
        if (now.history != wanted.history) run_->send(SetHistory{arm, wanted.history});
        if (now.margin != wanted.margin) run_->send(SetMargin{arm, wanted.margin});
        if (now.algo != wanted.algo) run_->send(SetAlgo{arm, wanted.algo});
    } else {
        run_->send(SetRecipe{arm, wanted});
    }
    note(fmt::format("arm {} {}", "ABC"[arm], wanted.name));
    now = wanted;
    return true;
}

// Marks the controls that act at the next step and differ from the last settings sent to the training. A drag is one
// mark, which moves while the same control does.
void TrainLab::mark_controls() {
    const std::vector<Field> now = fields_of(params_), told = fields_of(live_);
    const int step = history_.steps(), near = std::max(1, spec_.steps / 50);
    for (std::size_t i = 0; i < now.size(); ++i) {
        const FieldInfo& info = now[i].info;
        const std::string value = field_text(now[i]);
        const bool third_arm = info.name == "arm_c" && (params_.arm_c == "none" || live_.arm_c == "none");
        if (info.looks || third_arm || acts_on_reset(info.name) || value == field_text(told[i])) continue;
        set_field(told[i], value);
        if (finished()) continue;  // it acts on nothing any more
        if (moved_.empty() || moved_.back().field != info.name || step - moved_.back().mark.step > near)
            moved_.push_back({.mark = {}, .field = info.name});
        moved_.back().mark = {step, label_of(now[i])};
    }
}

void TrainLab::note(std::string what) { changes_.push_back({history_.steps(), std::move(what)}); }

std::vector<std::string> TrainLab::waiting() const {
    if (!run_) return {};
    std::vector<std::string> labels;
    // "auto" that found the GPU to be of no use has taken the CPU.
    const bool fell_back = live_.backend == "auto" && !gpu_reason().empty();
    if (backend() != (fell_back ? "cpu" : live_backend_)) labels.emplace_back("backend");
    if (params_.task != live_.task) labels.emplace_back("task");
    if (params_.size != live_.size && params_.task == "noise") labels.emplace_back("size");
    if ((params_.arm_c == "none") != (live_.arm_c == "none")) labels.emplace_back("arm C");
    if (params_.schedule != live_.schedule) labels.emplace_back("schedule");
    if (params_.steps != live_.steps) labels.emplace_back("steps");
    if (params_.batch != live_.batch) labels.emplace_back("batch");
    if (params_.seed != live_.seed) labels.emplace_back("seed");
    return labels;
}

LabEntry entry() { return entry_of<TrainLab>(kInfo); }

}  // namespace fp8lab::train
