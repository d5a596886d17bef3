#include "core/inspect/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/inspect/compare.h"
namespace fp8lab {
namespace {

TableRow empty_row(const ScanRow& row, std::string name) {
    TableRow out;
    out.name = std::move(name);
    out.use = row.use;
    out.summarised = out.done = true;
    return out;
}

double underflow_of(const ScanRow& row, std::size_t recipe) {
    return row.outcomes.empty() ? -1 : row.outcomes[recipe].underflow_pct;
}

void add_member(TableRow& out, std::size_t index, std::span<const ScanRow> rows, std::size_t recipe) {
    const ScanRow& row = rows[index];
    const auto badness = [&](std::size_t i) {
        return std::pair{underflow_of(rows[i], recipe), rows[i].summary.binades()};
    };
    if (out.members.empty() || badness(index) > badness(out.worst)) out.worst = index;
    out.members.push_back(index);
    out.summarised = out.summarised && (row.summarised || !row.not_scanned.empty());
    out.done = out.done && row.done();
    out.amax = std::max(out.amax, row.summary.amax);
    if (row.summary.least > 0)
        out.least = out.least > 0 ? std::min(out.least, row.summary.least) : row.summary.least;
    out.binades = std::max(out.binades, row.summary.binades());
    out.not_finite += row.summary.excluded.not_finite();
    out.scales += row.summary.scales;
    out.underflow_pct.resize(std::max(out.underflow_pct.size(), row.outcomes.size()));
    for (std::size_t r = 0; r < row.outcomes.size(); ++r)
        out.underflow_pct[r] = std::max(out.underflow_pct[r], row.outcomes[r].underflow_pct);
}

}  // namespace

std::string shape_text(std::span<const std::size_t> shape) {
    return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

std::vector<TableRow> table_rows(const TensorStore& store, std::span<const ScanRow> rows,
                                 const TableQuery& query) {
    std::vector<TableRow> out;
    // A kind has one use and either numbers or none, so that neither hides the other.
    std::map<std::tuple<std::string, TensorUse, std::string>, std::size_t> kinds;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const ScanRow& row = rows[i];
        const std::string& name = store.tensors()[row.tensor].name;
        if (query.use && row.use != *query.use) continue;
        if (!matches(name, query.filter)) continue;
        std::size_t at = out.size();
        if (query.fold) at = kinds.try_emplace({row.kind, row.use, row.not_scanned}, at).first->second;
        if (at == out.size()) out.push_back(empty_row(row, query.fold ? row.kind : name));
        add_member(out[at], i, rows, query.recipe);
        out[at].unscaled |= store.tensors()[row.tensor].role == TensorRole::unscaled;
    }
    for (TableRow& row : out) {
        const ScanRow& worst = rows[row.worst];
        row.dtype = store.tensors()[worst.tensor].dtype;
        row.shape = shape_text(store.tensors()[worst.tensor].shape);
        row.note = worst.not_scanned;
        if (worst.every > 1) row.note = fmt::format("1 of {} bands of 128 rows", worst.every);
        if (!row.done) row.underflow_pct.clear();
    }
    std::ranges::stable_sort(out, [&](const TableRow& a, const TableRow& b) {
        const auto key = [&](const TableRow& row) {
            return std::tuple{!row.underflow_pct.empty() ? 0
                              : row.summarised           ? 1
                                                         : 2,
                              row.underflow_pct.empty() ? 0 : -row.underflow_pct[query.recipe], -row.binades};
        };
        return key(a) < key(b);
    });
    return out;
}

void add_before(std::span<TableRow> table, const Scanned& scanned) {
    for (TableRow& row : table) {
        TableBefore& out = row.before;
        out.change = before_of(scanned, scanned.rows[row.worst]).change;
        for (const std::size_t member : row.members) {
            const ScanRow* const old = before_of(scanned, scanned.rows[member]).row;
            if (!old) continue;
            ScanRange range{out.amax, out.least};
            range.add(old->summary);
            out.amax = range.amax, out.least = range.least;
            out.binades = std::max(out.binades, old->summary.binades());
            out.underflow_pct.resize(std::max(out.underflow_pct.size(), old->outcomes.size()));
            for (std::size_t r = 0; r < old->outcomes.size(); ++r)
                out.underflow_pct[r] = std::max(out.underflow_pct[r], old->outcomes[r].underflow_pct);
        }
    }
}

Tally tally(std::span<const ScanRow> rows, std::size_t recipes, const Demands& demands) {
    Tally out;
    out.losing.resize(recipes);
    out.meeting.resize(recipes);
    for (const ScanRow& row : rows) {
        if (!row.not_scanned.empty()) continue;
        ++out.tensors;
        if (row.outcomes.empty()) continue;
        ++out.done;
        for (std::size_t r = 0; r < recipes; ++r) {
            out.losing[r] += loses(row, r, demands);
            out.meeting[r] += meets(row, r, demands);
        }
    }
    return out;
}

}  // namespace fp8lab
