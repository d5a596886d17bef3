// Every code of a format as a map that is read like a hex table: high digits down, the low digit across.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/figure.h"
#include "core/formats/format.h"

namespace fp8lab::bits {

struct MapCell {
    std::uint32_t code = 0;  // the first of codes_per_cell
    CodeClass code_class = CodeClass::zero;
    double shade = 0;   // 0..1; NaN: not shaded (zero, NaN, Inf)
    std::string label;  // what fits into the cell, else empty
};
struct CellRun {
    int row, first, last;  // columns, inclusive
};
struct RowNote {
    int row;
    std::string text;
    bool strong;
};

// 16 columns (8 up to 64 codes) of one cell per code; above 8 bits of one cell per high byte.
struct CodeMap {
    int rows = 0, cols = 0;
    std::uint32_t codes_per_cell = 1;
    std::vector<MapCell> cells;  // row-major, row 0 on top
    std::vector<std::string> row_labels, column_labels;
    std::vector<CellRun> subnormals;  // they stand side by side at the start of each sign's half
    std::vector<RowNote> notes;       // what a row spans, right of the map
    std::string title, subtitle;      // the finding; how to read it
    int cell_of(std::uint32_t code) const { return static_cast<int>(code / codes_per_cell); }
};

// shade: "magnitude" (log2 |value|), "gap" (log2 ulp) or "class".
CodeMap code_map(const FormatInfo& format, std::string_view shade);

// The same map as a figure, for export and the home card; the code's cell is outlined.
Figure map_figure(const FormatInfo& format, const CodeMap& map, std::uint32_t code);

// Value over code for the positive half: straight on a log axis, because M mantissa bits count through each
// binade.
Figure value_figure(const FormatInfo& format, std::uint32_t code);

}  // namespace fp8lab::bits
