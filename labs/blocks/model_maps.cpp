// The matrix as cells to draw, and the figures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "core/tensors/picture.h"
#include "core/threads/parallel.h"
#include "labs/blocks/model.h"

namespace fp8lab::blocks {

namespace {

constexpr double kEmpty = std::numeric_limits<double>::quiet_NaN();
constexpr double kDeepest = 16;                // binades of magnitude that have a shade
constexpr double kErrorLo = -8, kErrorHi = 0;  // log2 of the relative error: 0.4 % to all of it

double log2_or_empty(double value) { return value > 0 && std::isfinite(value) ? std::log2(value) : kEmpty; }

CellGrid cell_grid(const Tensor& tensor) {
    CellGrid out;
    const std::size_t most = tensor.picture ? kPictureSide : CellGrid::kMost;
    out.height = std::max<std::size_t>(1, (tensor.rows + most - 1) / most);
    out.width = std::max<std::size_t>(1, (tensor.cols + most - 1) / most);
    out.rows = (tensor.rows + out.height - 1) / out.height;
    out.cols = (tensor.cols + out.width - 1) / out.width;
    return out;
}

// What the scale of an element's block makes the largest value that fits.
class Tops {
  public:
    Tops(const Copy& copy, double format_max) : copy_(copy), format_max_(format_max) {}
    double at(std::size_t row, std::size_t col) const {
        const BlockGrid& grid = copy_.grid;
        const auto scale =
            static_cast<double>(copy_.scales[row / grid.height * grid.across + col / grid.width]);
        return scale > 0 ? format_max_ / scale : 0;
    }

  private:
    const Copy& copy_;
    double format_max_;
};

struct Cell {
    double largest = 0, top = 0, top_by_rows = 0, signal = 0, noise = 0, differ = 0, n = 0;
};

struct Words {
    std::string id, title, shades;
};

Figure map_figure(Words words, const CellGrid& grid, const std::vector<double>& values, Range range,
                  Role role) {
    Figure figure;
    figure.id = std::move(words.id);
    figure.title = std::move(words.title);
    figure.subtitle = std::move(words.shades);
    figure.x.label = "columns";
    figure.y.label = "rows";
    figure.x.visible = figure.y.visible = false;
    HeatmapSeries map;
    map.rows = static_cast<int>(grid.rows);
    map.cols = static_cast<int>(grid.cols);
    map.values = data(values);
    map.lo = range.lo;
    map.hi = range.hi;
    figure.heatmap(figure.id, std::move(map), {.color = {role, Tone::fill}, .in_legend = false});
    return figure;
}

// Grey values, as they are or as they come back from a cast.
Figure picture_figure(Words words, const CellGrid& grid, std::span<const float> values) {
    Figure figure = map_figure(std::move(words), grid, {values.begin(), values.end()}, {0, 1}, Role::truth);
    std::get<HeatmapSeries>(figure.series.front().shape).grey = true;
    return figure;
}

Range magnitudes(const std::vector<double>& values) {
    double lo = std::numeric_limits<double>::infinity(), hi = -lo;
    for (const double value : values)
        if (std::isfinite(value)) lo = std::min(lo, value), hi = std::max(hi, value);
    return lo <= hi ? Range{lo, hi} : Range{0, 0};
}

std::string scales_title(const Copy& copy, const char* suffix) {
    const auto count = static_cast<std::int64_t>(copy.grid.count());
    return count == 1 ? "One scale for all" : group_thousands(count) + suffix;
}

std::string error_title(const Score& score) {
    if (score.underflow_pct >= 0.1)
        return fmt::format("{} % became 0", format_number(score.underflow_pct, 2, true));
    return fmt::format("The worst row: {} dB", format_number(score.worst_row_db, 3, true));
}

std::string schemes_title(const std::vector<Contender>& contenders) {
    const auto find = [&](std::string_view id) -> const Score& {
        return std::ranges::find(contenders, id, [](const Contender& c) { return c.scheme.id; })->score;
    };
    const Score &one = find("tensor"), &mx = find("mx32-up"), &floor = find("mx32-floor");
    if (one.underflow_pct >= 0.1 && mx.underflow_pct < one.underflow_pct / 4)
        return fmt::format("One scale turns {} % of the elements into 0, MX {} %",
                           format_number(one.underflow_pct, 2), format_number(mx.underflow_pct, 2));
    if (mx.worst_row_db - one.worst_row_db >= 3)
        return fmt::format("The worst row has {} dB with one scale, {} with blocks of 32",
                           format_number(one.worst_row_db, 3, true), format_number(mx.worst_row_db, 3));
    double best = 0;
    for (const Contender& contender : contenders)
        if (std::isfinite(contender.score.sqnr_db)) best = std::max(best, contender.score.sqnr_db);
    if (best >= one.sqnr_db + 1)
        return fmt::format("Finer scales gain up to {} dB: {} dB with one, {} with the best",
                           format_number(best - one.sqnr_db, 2), format_number(one.sqnr_db, 3),
                           format_number(best, 3));
    return fmt::format("More scales buy nothing: one {} dB, MX {}, MX by floor {}",
                       format_number(one.sqnr_db, 3), format_number(mx.sqnr_db, 3),
                       format_number(floor.sqnr_db, 3));
}

}  // namespace

Maps make_maps(const Tensor& tensor, const Scheme& scheme, const Copy& by_cols, const Copy& by_rows) {
    Maps out;
    out.grid = cell_grid(tensor);
    const Tops tops(by_cols, max_finite(*scheme.plan.format)),
        other(by_rows, max_finite(*scheme.plan.format));
    std::vector<Cell> cells(out.grid.rows * out.grid.cols);
    const auto add_row = [&](std::size_t r) {
        for (std::size_t c = 0; c < tensor.cols; ++c) {
            Cell& cell = cells[r / out.grid.height * out.grid.cols + c / out.grid.width];
            const std::size_t i = r * tensor.cols + c;
            const double x = static_cast<double>(tensor.values[i]),
                         q = static_cast<double>(by_cols.values[i]);
            cell.largest = std::max(cell.largest, std::fabs(x));
            cell.top = std::max(cell.top, tops.at(r, c));
            cell.top_by_rows = std::max(cell.top_by_rows, other.at(r, c));
            cell.signal += x * x;
            cell.noise += (x - q) * (x - q);
            cell.differ += by_cols.values[i] != by_rows.values[i];
            cell.n += 1;
        }
    };
    parallel_for(out.grid.rows, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin * out.grid.height; r < std::min(tensor.rows, end * out.grid.height); ++r)
            add_row(r);
    });
    for (const Cell& cell : cells) {
        out.magnitude.push_back(log2_or_empty(cell.largest));
        out.top.push_back(log2_or_empty(cell.top));
        out.top_by_rows.push_back(log2_or_empty(cell.top_by_rows));
        out.error.push_back(log2_or_empty(std::sqrt(cell.noise / cell.signal)));
        out.difference.push_back(100 * cell.differ / cell.n);
    }
    const Range range = magnitudes(out.magnitude);
    out.binades = range.hi - range.lo;
    return out;
}

std::vector<Figure> map_figures(const Outcome& outcome, const Params& params) {
    const Maps& maps = outcome.maps;
    const Score& score = outcome.contenders[outcome.chosen].score;
    // The range goes from the largest down, one binade further than the values, so that the smallest is not the
    // ground; no deeper than kDeepest.
    const double hi = magnitudes(maps.magnitude).hi;
    const Range range{hi - std::min(maps.binades + 1, kDeepest), hi};
    const auto map = [&](Words words, const std::vector<double>& values, Range shades, Role role) {
        return map_figure(std::move(words), maps.grid, values, shades, role);
    };
    const std::string shades = fmt::format("{} to {}", format_number(std::exp2(range.lo), 2, true),
                                           format_number(std::exp2(range.hi), 2, true));
    const std::string fits = "Window top: " + shades;
    if (params.maps == "transpose")
        return {
            map({"scales", scales_title(outcome.by_cols, " along rows"), fits}, maps.top, range, Role::block),
            map({"scales_by_rows", scales_title(outcome.by_rows, " along columns"), fits}, maps.top_by_rows,
                range, Role::block),
            map({"difference",
                 score.differ_pct == 0
                     ? "Both copies are the same"
                     : fmt::format("{} % of values differ", format_number(score.differ_pct, 2)),
                 "Share: 0 to 10 %"},
                maps.difference, {0, 10}, Role::sat)};
    if (outcome.tensor.picture) {
        const Scheme& scheme = outcome.contenders[outcome.chosen].scheme;
        return {picture_figure({"picture", "The picture",
                                fmt::format("{}×{} grey values", outcome.tensor.cols, outcome.tensor.rows)},
                               maps.grid, outcome.tensor.values),
                picture_figure(
                    {"cast", fmt::format("{}: {} dB", scheme.label, format_number(score.sqnr_db, 3, true)),
                     fmt::format("{} in {}", outcome.by_cols.grid.count() == 1 ? "One scale" : "Its blocks",
                                 scheme.plan.format->label)},
                    maps.grid, outcome.by_cols.values),
                map({"error", error_title(score), "Error / x: 0.4 to 100 %"}, maps.error,
                    {kErrorLo, kErrorHi}, Role::sat)};
    }
    return {map({"magnitude", fmt::format("The tensor: {} binades", format_number(maps.binades, 2)),
                 "|x|: " + shades},
                maps.magnitude, range, Role::bf16),
            map({"scales", scales_title(outcome.by_cols, " scales follow it"), fits}, maps.top, range,
                Role::block),
            map({"error", error_title(score), "Error / x: 0.4 to 100 %"}, maps.error, {kErrorLo, kErrorHi},
                Role::sat)};
}

Figure schemes_figure(const Outcome& outcome) {
    Figure figure{.id = "schemes", .title = schemes_title(outcome.contenders)};
    const auto n = static_cast<double>(outcome.contenders.size());
    double largest = 1;
    for (const Contender& contender : outcome.contenders)
        if (std::isfinite(contender.score.sqnr_db)) largest = std::max(largest, contender.score.sqnr_db);
    // Left of 0 the names, right of the longest bar its value.
    figure.x = {.label = "SQNR dB", .range = Range{-largest, 1.5 * largest}, .visible = false};
    figure.y = {.range = Range{0, n}, .visible = false};
    for (std::size_t i = 0; i < outcome.contenders.size(); ++i) {
        const Contender& contender = outcome.contenders[i];
        const double y = n - 0.5 - static_cast<double>(i);
        const double sqnr = contender.score.sqnr_db;
        const bool chosen = i == outcome.chosen;
        TextMark name{-largest, y, contender.scheme.label, Anchor::left};
        figure.add({}, std::move(name), {.color = {Role::text}, .in_legend = false});
        const double end = std::isfinite(sqnr) ? std::max(sqnr, 0.0) : largest;
        figure.line(contender.scheme.label, data({0, end}), data({y, y}),
                    {.color = {contender.scheme.plan.format->role, Tone::fill, chosen ? 1.0F : 0.6F},
                     .width = 9,
                     .in_legend = false});
        TextMark value{end, y, format_number(sqnr, 4, true), Anchor::left, false, 8};
        figure.add({}, std::move(value), {.color = {Role::text}, .in_legend = false});
    }
    return figure;
}

}  // namespace fp8lab::blocks
