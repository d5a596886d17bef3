#include "core/figure/csv.h"

#include <algorithm>
#include <array>

#include "core/base/units.h"

namespace fp8lab {

namespace {

enum Column : std::size_t { kX, kXHi, kY, kYHi, kValue, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"x", "x_hi", "y", "y_hi", "value"};

struct Filled {
    Column column;
    double value;
};

// Calls row({{column, value}, ...}) for every sample of the series.
template <class Row>
void for_rows(const Shape& shape, Row row) {
    const auto size = [](std::initializer_list<Data> all) {
        std::size_t n = static_cast<std::size_t>(-1);
        for (const Data& values : all) n = std::min(n, values ? values->size() : 0);
        return n;
    };
    if (const auto* bars = std::get_if<BarSeries>(&shape)) {
        for (std::size_t i = 0; i < size({bars->heights}) && i + 1 < size({bars->edges}); ++i)
            row({{kX, (*bars->edges)[i]}, {kXHi, (*bars->edges)[i + 1]}, {kY, (*bars->heights)[i]}});
    } else if (const auto* band = std::get_if<BandSeries>(&shape)) {
        for (std::size_t i = 0; i < size({band->x, band->lo, band->hi}); ++i)
            row({{kX, (*band->x)[i]}, {kY, (*band->lo)[i]}, {kYHi, (*band->hi)[i]}});
    } else if (const auto* heatmap = std::get_if<HeatmapSeries>(&shape)) {
        const auto columns = static_cast<std::size_t>(std::max(heatmap->cols, 1));
        for (std::size_t i = 0; i < size({heatmap->values}); ++i)
            row({{kX, heatmap->x0 + static_cast<double>(i % columns)},
                 {kY, static_cast<double>(i / columns)},
                 {kValue, (*heatmap->values)[i]}});
    } else {
        std::visit(
            [&](const auto& s) {
                if constexpr (requires { s.x->size(), s.y->size(); })
                    for (std::size_t i = 0; i < size({s.x, s.y}); ++i)
                        row({{kX, (*s.x)[i]}, {kY, (*s.y)[i]}});
            },
            shape);
    }
}

std::string one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text;
}

}  // namespace

std::string csv_cell(std::string text) {
    if (text.find_first_of(",\"") == std::string::npos && !text.starts_with('#')) return text;
    for (std::size_t i = 0; (i = text.find('"', i)) != std::string::npos; i += 2) text.insert(i, 1, '"');
    return '"' + text + '"';
}

std::string to_csv(const Figure& figure) {
    std::array<bool, kColumns> used = {true, false, true, false, false};
    for (const Series& series : figure.series) {
        used[kXHi] = used[kXHi] || std::holds_alternative<BarSeries>(series.shape);
        used[kYHi] = used[kYHi] || std::holds_alternative<BandSeries>(series.shape);
        used[kValue] = used[kValue] || std::holds_alternative<HeatmapSeries>(series.shape);
    }
    std::string out;
    const auto parameter = [&](const std::string& name, const std::string& value) {
        if (!value.empty()) out += "# " + one_line(name) + ": " + one_line(value) + "\n";
    };
    parameter("figure", figure.id), parameter("title", figure.title);
    parameter("x", figure.x.label), parameter("y", figure.y.label);
    for (const auto& [name, value] : figure.parameters) parameter(name, value);
    out += "series";
    for (std::size_t c = 0; c < kColumns; ++c)
        if (used[c]) out.append(",").append(kNames[c]);
    out += "\n";
    for (const Series& series : figure.series) {
        const std::string name = csv_cell(one_line(series.name.substr(0, series.name.find("##"))));
        for_rows(series.shape, [&](std::initializer_list<Filled> cells) {
            out += name;
            for (std::size_t c = 0; c < kColumns; ++c) {
                if (!used[c]) continue;
                out += ',';
                for (const Filled& cell : cells)
                    if (cell.column == c) out += shortest(cell.value);
            }
            out += '\n';
        });
    }
    return out;
}

}  // namespace fp8lab
