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

namespace {

double log2_ratio(float after, float before) {
    if (before == 0 || after == 0) return std::numeric_limits<double>::quiet_NaN();
    return std::log2(static_cast<double>(after) / static_cast<double>(before));
}

}  // namespace

double KindChange::amax_log2() const { return log2_ratio(after.amax, before.amax); }
double KindChange::least_log2() const { return log2_ratio(after.least, before.least); }

int Comparison::grown() const {
    return static_cast<int>(
        std::ranges::count_if(kinds, [](const KindChange& k) { return k.amax_log2() > 1; }));
}

Before before_of(const Scanned& scanned, const ScanRow& row) {
    const StoredTensor& tensor = scanned.store->tensors()[row.tensor];
    const StoredTensor* const old = scanned.before->find(tensor.name);
    if (!old) return {"new"};
    if (old->shape != tensor.shape) return {"reshaped"};
    return {"same", &scanned.rows_before[static_cast<std::size_t>(old - scanned.before->tensors().data())]};
}

Comparison compare(const Scanned& scanned) {
    Comparison out;
    std::map<std::string, KindChange> kinds;
    for (const ScanRow& row : scanned.rows) {
        const std::string& name = scanned.store->tensors()[row.tensor].name;
        const Before before = before_of(scanned, row);
        if (!before.row) {
            (before.change == "new" ? out.added : out.reshaped).push_back(name);
        } else if (row.summarised && before.row->summarised) {
            KindChange& kind = kinds[row.kind];
            kind.kind = row.kind, kind.use = row.use;
            kind.before.add(before.row->summary);
            kind.after.add(row.summary);
        }
    }
    for (const StoredTensor& tensor : scanned.before->tensors())
        if (!scanned.store->find(tensor.name)) out.missing.push_back(tensor.name);
    for (auto& [name, kind] : kinds) out.kinds.push_back(std::move(kind));
    return out;
}

}  // namespace fp8lab
