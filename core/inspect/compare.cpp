#include "core/inspect/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace fp8lab {

void ScanRange::add(const TensorSummary& summary) {
    amax = std::max(amax, summary.amax);
    if (summary.least > 0) least = least > 0 ? std::min(least, summary.least) : summary.least;
}

double KindChange::amax_log2() const {
    if (before.amax == 0 || after.amax == 0) return std::numeric_limits<double>::quiet_NaN();
    return std::log2(static_cast<double>(after.amax) / static_cast<double>(before.amax));
}

int Comparison::grown() const {
    return static_cast<int>(
        std::ranges::count_if(kinds, [](const KindChange& k) { return k.amax_log2() > 1; }));
}

Comparison compare(const TensorStore& before, std::span<const ScanRow> rows_before, const TensorStore& after,
                   std::span<const ScanRow> rows_after) {
    Comparison out;
    std::map<std::string, KindChange> kinds;
    for (const ScanRow& row : rows_after) {
        const StoredTensor& tensor = after.tensors()[row.tensor];
        const StoredTensor* const old = before.find(tensor.name);
        if (!old) {
            out.added.push_back(tensor.name);
        } else if (old->shape != tensor.shape) {
            out.reshaped.push_back(tensor.name);
        } else {
            const ScanRow& old_row = rows_before[static_cast<std::size_t>(old - before.tensors().data())];
            if (!row.summarised || !old_row.summarised) continue;
            KindChange& kind = kinds[row.kind];
            kind.kind = row.kind, kind.use = row.use;
            kind.before.add(old_row.summary);
            kind.after.add(row.summary);
        }
    }
    for (const StoredTensor& tensor : before.tensors())
        if (!after.find(tensor.name)) out.missing.push_back(tensor.name);
    for (auto& [name, kind] : kinds) out.kinds.push_back(std::move(kind));
    return out;
}

}  // namespace fp8lab
