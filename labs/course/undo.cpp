#include "labs/course/undo.h"

#include <utility>

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
    if (steps_.empty()) steps_.push_back({state});
    if (went_) steps_[at_].state = state;
    went_ = false;
    const bool whole = swap_ != nullptr;
    if (steps_[at_].state == state && !whole) return;
    const std::string field = changed_field(steps_[at_].state, state);
    const bool same_burst = by_keys && !whole && !field.empty() && field == burst_ && at_ > 0 &&
                            redoable() == 0 && now_s - last_change_s_ < kBurst_s;
    burst_ = by_keys && !whole ? field : "";
    last_change_s_ = now_s;
    if (same_burst) {
        steps_[at_].state = state;
        return;
    }
    steps_.resize(at_ + 1);
    steps_.push_back({state, std::exchange(swap_, {})});
    if (steps_.size() > kSteps + 1) steps_.erase(steps_.begin());
    at_ = steps_.size() - 1;
}

const nlohmann::json* UndoHistory::undo() {
    if (at_ == 0) return nullptr;
    went_ = true;
    burst_.clear();
    if (steps_[at_].swap) steps_[at_].swap();
    return &steps_[--at_].state;
}

const nlohmann::json* UndoHistory::redo() {
    if (redoable() == 0) return nullptr;
    went_ = true;
    burst_.clear();
    if (steps_[++at_].swap) steps_[at_].swap();
    return &steps_[at_].state;
}

}  // namespace fp8lab
