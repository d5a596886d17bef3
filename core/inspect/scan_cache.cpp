#include "core/inspect/scan_cache.h"

#include <fmt/format.h>

namespace fp8lab {
namespace {

std::string key_of(const TensorStore& store, const StoredTensor& tensor, std::size_t every) {
    const RandomFile& file = store.files()[tensor.file];
    return fmt::format("{}\n{} {} {}\n{}", file.path().string(), file.size(), file.modified_ns(), every,
                       tensor.own_name());
}

// The plan without settings that have no effect: the rule of MX scales, and square blocks where there are none.
CastPlan effective(CastPlan plan) {
    if (plan.granularity != Granularity::block32) plan.mx_rule = MxRule::up;
    if (plan.granularity == Granularity::tensor || plan.granularity == Granularity::row)
        plan.square_blocks = false;
    return plan;
}

}  // namespace

std::optional<CastOutcome> ScanCache::Entry::find(const CastPlan& plan) const {
    for (const auto& [known, outcome] : outcomes)
        if (known == effective(plan)) return outcome;
    return std::nullopt;
}

void ScanCache::Entry::keep(const CastPlan& plan, const CastOutcome& outcome) {
    if (!find(plan)) outcomes.emplace_back(effective(plan), outcome);
}

ScanCache::Entry* ScanCache::find(const TensorStore& store, const StoredTensor& tensor, std::size_t every) {
    const auto found = entries_.find(key_of(store, tensor, every));
    return found == entries_.end() ? nullptr : &found->second;
}

void ScanCache::keep(const TensorStore& store, const StoredTensor& tensor, std::size_t every,
                     const TensorSummary& summary) {
    if (entries_.size() < kMostTensors) entries_.try_emplace(key_of(store, tensor, every), Entry{summary});
}

}  // namespace fp8lab
