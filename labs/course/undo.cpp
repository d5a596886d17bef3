#include "labs/course/undo.h"

namespace fp8lab {
namespace {

// The one field in which they differ; empty: several.
std::string changed_field(const nlohmann::json& before, const nlohmann::json& after) {
    std::string name;
    for (const auto& [field, value] : after.items()) {
        if (const auto was = before.find(field); was != before.end() && *was == value) continue;
        if (!name.empty()) return {};
        name = field;
    }
    return name;
}

}  // namespace

void UndoHistory::note(const nlohmann::json& state, double now_s, bool by_keys) {
    if (states_.empty()) states_.push_back(state);
    if (went_) states_[at_] = state;
    went_ = false;
    if (states_[at_] == state) return;
    const std::string field = changed_field(states_[at_], state);
    const bool same_burst = by_keys && !field.empty() && field == burst_ && at_ > 0 && redoable() == 0 &&
                            now_s - last_change_s_ < kBurst_s;
    burst_ = by_keys ? field : "";
    last_change_s_ = now_s;
    if (same_burst) {
        states_[at_] = state;
        return;
    }
    states_.resize(at_ + 1);
    states_.push_back(state);
    if (states_.size() > kSteps + 1) states_.erase(states_.begin());
    at_ = states_.size() - 1;
}

const nlohmann::json* UndoHistory::undo() {
    if (at_ == 0) return nullptr;
    went_ = true;
    burst_.clear();
    return &states_[--at_];
}

const nlohmann::json* UndoHistory::redo() {
    if (redoable() == 0) return nullptr;
    went_ = true;
    burst_.clear();
    return &states_[++at_];
}

}  // namespace fp8lab
