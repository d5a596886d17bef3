#include "core/inspect/detail.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fp8lab {
namespace {

constexpr std::size_t kBandRows = 128, kPieceValues = 128 * 1024, kManyUnits = 64;

struct UnitCount {
    std::int64_t nonzero = 0, lost = 0, cut = 0;
};

std::string_view plural(PlaceUnit unit) {
    switch (unit) {
        case PlaceUnit::row:
            return "rows";
        case PlaceUnit::column:
            return "columns";
        case PlaceUnit::element:
            return "elements";
    }
    return "";
}

CastDetail::Place place_of(const UnitCount& count) {
    using enum CastDetail::Place;
    if (count.nonzero == 0) return zero;
    if (2 * count.cut > count.nonzero) return cut;
    return 2 * count.lost > count.nonzero ? lost : kept;
}

}  // namespace

CastDetail cast_detail(const TensorStore& store, const ScanRow& row, const Recipe& recipe) {
    const StoredTensor& tensor = store.tensors()[row.tensor];
    const MatrixShape shape = tensor.matrix();
    const CastPlan plan = scan_plan(recipe, row.use);
    // Only without a scale does a finite value saturate.
    const float limit = plan.scaled ? INFINITY : overflow_threshold(*plan.format).largest_below();
    CastDetail out;
    const bool by_rows = shape.rows >= kManyUnits || shape.cols < kManyUnits;
    out.unit = by_rows ? PlaceUnit::row : shape.rows == 1 ? PlaceUnit::element : PlaceUnit::column;
    out.units = by_rows ? shape.rows : shape.cols;
    std::vector<UnitCount> counts(out.units);
    double all = 0, gone = 0;
    std::size_t band = tensor.fortran_order ? shape.rows : kBandRows;
    while (row.every == 1 && band < shape.rows && band * shape.cols < kPieceValues) band += kBandRows;
    for (std::size_t first = 0; first < shape.rows; first += band * row.every) {
        const std::size_t rows = std::min(band, shape.rows - first);
        std::vector<float> x(rows * shape.cols), q(x.size());
        store.read_rows(tensor, first, x);
        for (float& value : x)
            if (!std::isfinite(value)) value = 0;
        quantize(plan, x, q,
                 {.rows = rows, .cols = shape.cols, .tensor_amax = row.summary.amax, .with_stats = false});
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (x[i] == 0) continue;
            UnitCount& count = counts[by_rows ? first + i / shape.cols : i % shape.cols];
            const double size = std::fabs(static_cast<double>(x[i]));
            ++count.nonzero;
            count.cut += std::fabs(x[i]) > limit;
            all += size;
            if (q[i] != 0) continue;
            ++count.lost;
            ++out.underflow;
            gone += size;
            out.lost.add(x[i]);
        }
    }
    out.lost_l1_pct = all > 0 ? 100 * gone / all : 0;
    for (std::size_t u = 0; u < counts.size(); ++u) {
        out.places.push_back(place_of(counts[u]));
        if (out.places.back() != CastDetail::Place::lost) continue;
        if (out.runs.empty() || out.runs.back().second + 1 != u) out.runs.emplace_back(u, u);
        out.runs.back().second = u;
    }
    return out;
}

std::pair<std::size_t, std::size_t> CastDetail::longest() const {
    return *std::ranges::max_element(runs, {}, [](const auto& run) { return run.second - run.first; });
}

std::vector<CastDetail::Place> CastDetail::cells(std::size_t count) const {
    std::vector<Place> out;
    const std::size_t n = std::min(count, units);
    for (std::size_t cell = 0; cell < n; ++cell) {
        std::array<std::size_t, 4> votes{};
        for (std::size_t u = cell * units / n; u < (cell + 1) * units / n; ++u)
            ++votes[static_cast<std::size_t>(places[u])];
        // What is all 0 decides nothing where anything else is there.
        if (votes[0] + votes[1] + votes[2] > 0) votes[3] = 0;
        out.push_back(static_cast<Place>(std::ranges::max_element(votes) - votes.begin()));
    }
    return out;
}

std::string CastDetail::title() const {
    const std::string_view name = plural(unit);
    if (underflow == 0) return "Where: nothing becomes 0";
    if (runs.empty()) return fmt::format("Where: scattered over the {}", name);
    const auto gone = static_cast<std::size_t>(std::ranges::count(places, Place::lost));
    if (gone == units) return "Where: everywhere";
    const auto [first, last] = longest();
    if (runs.size() == 1 && first == last)
        return fmt::format("Where: {} {}", name.substr(0, name.size() - 1), first);
    if (runs.size() == 1) return fmt::format("Where: {} {} to {}, one run", name, first, last);
    if (gone > 3)
        return fmt::format("Where: {} of {} {}, the longest run {} to {}", gone, units, name, first, last);
    std::string list;
    for (std::size_t u = 0; u < places.size(); ++u)
        if (places[u] == Place::lost) list += (list.empty() ? "" : ", ") + std::to_string(u);
    return fmt::format("Where: {} {}", name, list);
}

}  // namespace fp8lab
