#include "core/run/log_builder.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace fp8lab {

void LogBuilder::add(const LogPiece& piece, std::uint16_t source) {
    for (const LogRow& row : piece.rows) {
        if (row.name.empty()) {
            add_loss(row);
            continue;
        }
        TensorSeries& series = find(row.name);
        if (piece.rounded) series.set_resolution(0.00005F);
        TensorPoint point = row.point;
        point.source = source;
        series.add(point,
                   std::span(piece.packed).subspan(row.packed_begin, row.packed_end - row.packed_begin));
    }
    if (piece.head) {
        if (!piece.head->recipe.empty()) log.recipe = piece.head->recipe;  // InspectLogger does not say it
        if (!piece.head->kinds.empty()) log.kinds = piece.head->kinds;
        log.every = piece.head->every;
    }
    for (const std::string& arm : piece.arms) note_arm(arm);
}

void LogBuilder::note_arm(const std::string& arm) {
    if (std::ranges::find(log.arms, arm) == log.arms.end()) log.arms.push_back(arm);
}

void LogBuilder::settle() {
    for (TensorSeries& series : log.tensors) series.settle();
    if (std::exchange(losses_settled_, true)) return;
    std::ranges::stable_sort(log.losses, {}, &LossPoint::step);
    std::vector<LossPoint> kept;
    for (const LossPoint& point : log.losses) {
        if (!kept.empty() && kept.back().step == point.step)
            kept.back() = point;
        else
            kept.push_back(point);
    }
    log.losses = std::move(kept);
}

void LogBuilder::add_loss(const LogRow& row) {
    if (!log.losses.empty() && log.losses.back().step == row.point.step) {
        log.losses.back().loss = row.loss;
        return;
    }
    losses_settled_ = losses_settled_ && (log.losses.empty() || log.losses.back().step < row.point.step);
    log.losses.push_back({row.point.step, row.loss});
}

// Rows come in the same order in every step: the next tensor is usually the one behind the last.
TensorSeries& LogBuilder::find(std::string_view name) {
    if (++last_ >= log.tensors.size()) last_ = 0;
    if (!log.tensors.empty() && log.tensors[last_].name() == name) return log.tensors[last_];
    const auto [at, is_new] = places_.try_emplace(std::string(name), log.tensors.size());
    if (is_new) log.tensors.emplace_back(at->first);
    last_ = at->second;
    return log.tensors[last_];
}

}  // namespace fp8lab
