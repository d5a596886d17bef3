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

void cut(const DenseBatch& batch, std::size_t count, std::size_t k, MicroBatch& part) {
    const std::size_t rows = batch.x.rows / count;
    copy_rows(batch.x, k * rows, rows, dense(part.batch).x);
    copy_rows(batch.y, k * rows, rows, dense(part.batch).y);
}

void cut(const TokenBatch& batch, std::size_t count, std::size_t k, MicroBatch& part) {
    const std::size_t sequences = batch.sequences / count, n = sequences * batch.context;
    const auto part_of = [&](const auto& all) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(k * n);
        return std::decay_t<decltype(all)>(begin, begin + static_cast<std::ptrdiff_t>(n));
    };
    const auto scored = static_cast<double>(scored_in(batch));
    TokenBatch own{.sequences = sequences,
                   .context = batch.context,
                   .tokens = part_of(batch.tokens),
                   .targets = part_of(batch.targets),
                   .factor = batch.factor};
    if (!batch.scored.empty()) own.scored = part_of(batch.scored);
    const double share = static_cast<double>(scored_in(own)) * static_cast<double>(count);
    part.weight = scored > 0 ? static_cast<float>(share / scored) : 1;
    part.batch = std::move(own);
}

}  // namespace

std::size_t scored_in(const TokenBatch& batch) {
    if (batch.scored.empty()) return batch.size();
    return static_cast<std::size_t>(std::ranges::count_if(batch.scored, [](auto s) { return s != 0; }));
}

void cut_part(const Batch& batch, int count, int index, MicroBatch& part) {
    std::visit(
        [&](const auto& whole) {
            cut(whole, static_cast<std::size_t>(count), static_cast<std::size_t>(index), part);
        },
        batch);
}

void cut_batch(const Batch& batch, int count, std::vector<MicroBatch>& parts) {
    parts.resize(static_cast<std::size_t>(count));
    for (int k = 0; k < count; ++k) cut_part(batch, count, k, parts[static_cast<std::size_t>(k)]);
}

}  // namespace fp8lab
