#include "labs/transformer/model.h"

#include <algorithm>
#include <utility>

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

TransformerLab::TransformerLab(Backends backends)
    : SessionOf({kInfo, kOnReset, "learning rate", "nothing but the alignment"}, std::move(backends)) {}

const ModelPlan& TransformerLab::plan() const {
    const TrainSpec& now = spec();
    if (!plan_ || plan_->first != now.task) plan_.emplace(now.task, model_plan(now));
    return plan_->second;
}

int TransformerLab::block() const {
    const char first = params_.tensor.front();
    return first >= '1' && first <= '9' ? first - '0' : kBlocks;
}

std::vector<Operation> TransformerLab::operations() const {
    return transformer::operations(block(), plan(), spec().arms.at(1), health_[1]);
}

void TransformerLab::perform(std::string_view action) {
    if (action == "align") return align();
    Session::perform(action);
}

void TransformerLab::restart() {
    Session::restart();
    health_ = {};
    evaluations_ = {};
    if (by_hand_) params_.align_step = 0;  // of the run before
    alignment_ = Alignment::none;
    by_hand_ = false;
}

void TransformerLab::taken(const Snapshot& snapshot) {
    for (std::size_t i = 0; i < std::min<std::size_t>(2, snapshot.arms.size()); ++i) {
        health_[i].append(plan(), snapshot.arms[i].records);
        if (snapshot.arms[i].evaluation) evaluations_[i] = snapshot.arms[i].evaluation;
    }
    locate_alignment();
}

// ---- the alignment

// It is sent between two steps, while the training rests after align_step of them.
int TransformerLab::rest_before(int goal) {
    if (alignment_ != Alignment::none || params_.align_step == 0) return goal;
    if (step() == params_.align_step) {
        run_->send(AlignChannel{});
        alignment_ = Alignment::done;
    }
    return params_.align_step > step() ? std::min(params_.align_step, goal) : goal;
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
    params_.align_step = step();
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
            params_.align_step = static_cast<int>(w->step.values()[i]);
            alignment_ = Alignment::done;
            return;
        }
    }
}

std::optional<int> TransformerLab::aligned_at() const {
    if (params_.align_step == 0 || alignment_ != Alignment::done || step() <= params_.align_step) return {};
    return params_.align_step;
}

bool TransformerLab::waits(std::string_view field, std::string_view) const {
    return field != "align_step" || (alignment_ == Alignment::none && params_.align_step < step());
}

// ---- evidence

bool TransformerLab::explained() const {
    return Session::explained() && (params_.align_step == 0 || aligned_at());
}

std::string TransformerLab::record() const {
    if (!replayed_.empty()) return replayed_;
    const bool at_rest = run_ && !busy() && !failed() && step() > 0;
    // Aligned between two steps, and none since: the record of before stands until there is one.
    const bool before = params_.align_step > 0 && params_.align_step == step();
    return at_rest && (before ? Session::explained() : explained()) ? record_text(*this) : "";
}

Snapshot TransformerLab::read_record(std::string_view record, const TrainSpec& spec) {
    Recorded read = parse_record(record, spec, model_plan(spec));
    health_ = read.health;
    for (std::size_t i = 0; i < 2; ++i) evaluations_[i] = read.snapshot.arms[i].evaluation;
    by_hand_ = params_.align_step == 0 && read.aligned_at > 0;
    params_.align_step = read.aligned_at;
    alignment_ = read.aligned_at > 0 ? Alignment::done : Alignment::none;
    return std::move(read.snapshot);
}

LabEntry entry() { return entry_of<TransformerLab>(kInfo); }

}  // namespace fp8lab::transformer
