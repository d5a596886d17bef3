#include "core/trainer/micro_batches.h"

#include <algorithm>

namespace fp8lab {
namespace {

void copy_rows(const Matrix<float>& from, std::size_t first, std::size_t rows, Matrix<float>& to) {
    to.resize(rows, from.cols);
    const auto begin = from.values.begin() + static_cast<std::ptrdiff_t>(first * from.cols);
    std::copy_n(begin, rows * from.cols, to.values.begin());
}

DenseBatch& dense(Batch& batch) {
    if (!std::holds_alternative<DenseBatch>(batch)) batch.emplace<DenseBatch>();
    return std::get<DenseBatch>(batch);
}

void cut(const DenseBatch& batch, std::vector<MicroBatch>& parts) {
    const std::size_t rows = batch.x.rows / parts.size();
    for (std::size_t k = 0; k < parts.size(); ++k) {
        copy_rows(batch.x, k * rows, rows, dense(parts[k].batch).x);
        copy_rows(batch.y, k * rows, rows, dense(parts[k].batch).y);
    }
}

std::size_t scored_in(const TokenBatch& batch) {
    if (batch.scored.empty()) return batch.size();
    return static_cast<std::size_t>(std::ranges::count_if(batch.scored, [](auto s) { return s != 0; }));
}

void cut(const TokenBatch& batch, std::vector<MicroBatch>& parts) {
    const std::size_t sequences = batch.sequences / parts.size(), n = sequences * batch.context;
    const auto part_of = [&](const auto& all, std::size_t k) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(k * n);
        return std::decay_t<decltype(all)>(begin, begin + static_cast<std::ptrdiff_t>(n));
    };
    const auto scored = static_cast<double>(scored_in(batch));
    for (std::size_t k = 0; k < parts.size(); ++k) {
        TokenBatch part{.sequences = sequences,
                        .context = batch.context,
                        .tokens = part_of(batch.tokens, k),
                        .targets = part_of(batch.targets, k),
                        .factor = batch.factor};
        if (!batch.scored.empty()) part.scored = part_of(batch.scored, k);
        const double share = static_cast<double>(scored_in(part)) * static_cast<double>(parts.size());
        parts[k].weight = scored > 0 ? static_cast<float>(share / scored) : 1;
        parts[k].batch = std::move(part);
    }
}

}  // namespace

void cut_batch(const Batch& batch, int count, std::vector<MicroBatch>& parts) {
    parts.resize(static_cast<std::size_t>(count));
    std::visit([&](const auto& whole) { cut(whole, parts); }, batch);
}

}  // namespace fp8lab
