#include "labs/train/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/units.h"
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

// "Margin 2", "Format of dy E4M3", "Arm B current": a recipe by its name, whose label is long.
std::string label_of(const Field& field) {
    std::string value = field_text(field);
    if (const auto* number = std::get_if<double*>(&field.value)) value = format_number(**number, 3, true);
    const auto choice = std::ranges::find(field.choices, value, &Choice::id);
    if (choice != field.choices.end() && !field.info.name.starts_with("arm_")) value = choice->label;
    return field.info.label + " " + value;
}

}  // namespace

TrainLab::TrainLab(Backends backends)
    : SessionOf({kInfo, kOnReset, "lr", "nothing", check_cpu}, std::move(backends)) {}

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

void TrainLab::perform(std::string_view action) {
    if (action == "poison") return poison();
    Session::perform(action);
}

void TrainLab::restart() {
    Session::restart();
    poisoned_.clear();
    moved_.clear();
    held_ = 0;
}

void TrainLab::poison() {
    if (!run_) return;
    run_->send(PoisonBatch{});
    poisoned_.push_back({changes_.size()});
    note("batch times 1000");
}

void TrainLab::advance(int steps) {
    advances_ = true;
    Session::advance(steps);
    advances_ = false;
    if (run_) hold_speed();
}

void TrainLab::hold_speed() {
    const double wanted = advances_ ? 0 : limit();
    if (wanted != held_) run_->limit_speed(held_ = wanted);
}

double TrainLab::least_seconds() const { return limit() > 0 ? 1 / limit() : 0; }

// Only of a finished run that its settings explain.
std::string TrainLab::record() const {
    if (!replayed_.empty()) return replayed_;
    return run_ && finished() && whole() && explained() ? live::record_text(history_, spec()) : "";
}

Snapshot TrainLab::read_record(std::string_view record, const TrainSpec& spec) {
    return live::parse_record(record, spec);
}

std::pair<std::string, int> TrainLab::first_change() const {
    if (!poisoned_.empty() && poisoned_.front().change == 0)
        return {"a batch was multiplied by 1000", changes_.front().step};
    if (moved_.empty()) return Session::first_change();
    return {moved_.front().mark.label + " was set", moved_.front().mark.step};
}

void TrainLab::sent(bool changed) {
    if (changed) mark_controls();
    hold_speed();
}

bool TrainLab::waits(std::string_view field, std::string_view told) const {
    return field != "arm_c" || (params_.arm_c == "none") != (told == "none");
}

// Marks the controls that act at the next step and differ from the last settings sent to the training. A drag is one
// mark, which moves while the same control does.
void TrainLab::mark_controls() {
    const int near = std::max(1, spec().steps / 50);
    for (const Field& field : fields()) {
        const std::string& name = field.info.name;
        std::string& before = told(name);
        const bool later = std::ranges::find(kOnReset, name) != kOnReset.end() && waits(name, before);
        if (field.info.looks || later || field_text(field) == before) continue;
        before = field_text(field);
        if (finished()) continue;  // it acts on nothing any more
        if (moved_.empty() || moved_.back().field != name || step() - moved_.back().mark.step > near)
            moved_.push_back({.mark = {}, .field = name});
        moved_.back().mark = {step(), label_of(field)};
    }
}

// Sent to a running training, a poisoned batch comes some steps after the last one seen: where the amax of x1
// leaves behind all that the clean batches had.
void TrainLab::locate_poison() {
    constexpr double kJump =
        30;  // far above what one clean batch adds to the largest, far below the factor 1000
    const auto next = std::ranges::find(poisoned_, false, &Poisoned::located);
    if (next == poisoned_.end()) return;
    const auto known = [&](int step) {
        return std::ranges::any_of(
            poisoned_, [&](const Poisoned& p) { return p.located && changes_[p.change].step == step; });
    };
    for (const ArmTrack& arm : history_.arms()) {
        const TensorTrack* x1 = arm.find(MlpTensor{TensorClass::x, 1});
        if (!x1 || !x1->applies()) continue;
        double clean = 0;
        for (std::size_t i = 0; i < x1->amax.size(); ++i) {
            const int step = static_cast<int>(x1->step.values()[i]);
            const double amax = x1->amax.values()[i];
            if (step >= changes_[next->change].step && clean > 0 && amax > kJump * clean && !known(step)) {
                changes_[next->change].step = step;
                next->located = true;
                return;
            }
            if (!known(step)) clean = std::fmax(clean, amax);
        }
    }
}

LabEntry entry() { return entry_of<TrainLab>(kInfo); }

}  // namespace fp8lab::train
