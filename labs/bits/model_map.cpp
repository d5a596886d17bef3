#include "labs/bits/model_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "labs/bits/model_reading.h"

namespace fp8lab::bits {

namespace {

constexpr double kUnshaded = std::numeric_limits<double>::quiet_NaN();

struct Shader {
    const FormatInfo& format;
    std::string_view shade;
    double lowest = std::log2(min_subnormal(format)), highest = std::log2(max_finite(format));

    double operator()(std::uint32_t code, CodeClass code_class) const {
        if (code_class == CodeClass::nan || code_class == CodeClass::infinity) return kUnshaded;
        if (shade == "class") {
            if (code_class == CodeClass::zero) return kUnshaded;
            return code_class == CodeClass::subnormal ? 0.15 : 0.6;
        }
        if (shade == "gap") return fraction(ulp(format, code), std::log2(ulp(format, max_code(format))));
        return code_class == CodeClass::zero ? kUnshaded
                                             : fraction(std::fabs(exact_value(format, code)), highest);
    }
    double fraction(double value, double top) const {
        return top > lowest ? std::clamp((std::log2(value) - lowest) / (top - lowest), 0.0, 1.0) : 1.0;
    }
};

std::size_t characters(std::string_view utf8) {
    return static_cast<std::size_t>(
        std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// What fits: three characters of 13 px in a cell of the 16 columns, six where there are 8.
std::string label_of(const FormatInfo& format, const CodeMap& map, std::uint32_t code, CodeClass code_class) {
    if (code_class == CodeClass::infinity) return "Inf";  // of either sign: the row says which
    if (code_class == CodeClass::nan) return "NaN";
    if (map.codes_per_cell > 1) return "";
    const double value = exact_value(format, code);
    if (map.cols <= 8) {
        for (const int digits : {3, 2})
            if (const std::string text = value_text(value, digits); characters(text) <= 6) return text;
        return "";
    }
    if (code_class != CodeClass::zero && code != max_code(format)) return "";
    const std::string text = value_text(value);
    return characters(text) <= 3 ? text : "";
}

// A row's finite span and what follows it. Codes of one sign ascend in magnitude up to the largest finite
// one.
std::string note_text(const FormatInfo& format, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t sign = format.is_signed ? first & (1U << (width_bits(format) - 1)) : 0U;
    const std::uint32_t end = std::min(last, sign | max_code(format));
    if (end < first) return "NaN";
    std::string span = "to " + value_text(exact_value(format, end), 4);
    const std::string from = value_text(exact_value(format, first));
    std::string tail;
    if (end < last) tail = classify(format, end + 1) == CodeClass::infinity ? ", then Inf" : ", then NaN";
    constexpr std::size_t kFits = 25;  // characters of 13 px beside the map
    if (characters(from) + 1 + characters(span) + tail.size() <= kFits) span = from + " " + span;
    return span + tail;
}

std::vector<RowNote> notes_of(const FormatInfo& format, const CodeMap& map) {
    const auto row_codes = static_cast<std::uint32_t>(map.cols) * map.codes_per_cell;
    const int positive_rows = format.is_signed ? std::max(1, map.rows / 2) : map.rows;
    const auto text = [&](int row) {
        const std::uint32_t first = static_cast<std::uint32_t>(row) * row_codes;
        return note_text(format, first, first + row_codes - 1);
    };
    std::vector<RowNote> out;
    const CodeCounts counts = count_codes(format);
    const bool low_row_is_mixed = counts.subnormals > 0 && positive_rows > 1;
    if (low_row_is_mixed) {
        const double last_subnormal = exact_value(format, (1U << format.mantissa_bits) - 1U);
        out.push_back({0, "subnormals to " + value_text(last_subnormal, 3), false});
    }
    for (int row = low_row_is_mixed ? 1 : 0; row < positive_rows; ++row)
        if (row % 2 == 1 || row + 1 == positive_rows || map.rows < 16)
            out.push_back({row, text(row), row + 1 == positive_rows});
    if (!format.is_signed || map.rows < 2) return out;
    const bool has_minus_zero = classify(format, 1U << (width_bits(format) - 1)) == CodeClass::zero;
    out.push_back({positive_rows, has_minus_zero ? "\u22120, then negatives" : "NaN, then negatives", false});
    if (map.rows - 1 > positive_rows) out.push_back({map.rows - 1, text(map.rows - 1), false});
    return out;
}

std::vector<CellRun> subnormal_runs(const CodeMap& map) {
    std::vector<CellRun> out;
    for (int row = 0; row < map.rows; ++row) {
        CellRun run{row, -1, -1};
        for (int col = 0; col < map.cols; ++col) {
            if (map.cells[static_cast<std::size_t>(row * map.cols + col)].code_class != CodeClass::subnormal)
                continue;
            run.last = col;
            if (run.first < 0) run.first = col;
        }
        if (run.first >= 0) out.push_back(run);
    }
    return out;
}

Data points(std::initializer_list<double> values) { return data(std::vector<double>(values)); }

void outline(Figure& figure, std::string name, double x0, double y0, double x1, double y1, Style style) {
    style.in_legend = false;
    figure.line(std::move(name), points({x0, x1, x1, x0, x0}), points({y0, y0, y1, y1, y0}), style);
}

}  // namespace

CodeMap code_map(const FormatInfo& format, std::string_view shade) {
    const std::uint32_t total = 1U << width_bits(format);
    CodeMap map;
    map.codes_per_cell = std::max(1U, total / 256U);
    const std::uint32_t cells = total / map.codes_per_cell;
    map.cols = static_cast<int>(cells <= 64 ? std::min(8U, cells) : 16U);
    map.rows = static_cast<int>(cells) / map.cols;

    const Shader shader{format, shade};
    for (std::uint32_t i = 0; i < cells; ++i) {
        const std::uint32_t first = i * map.codes_per_cell, last = first + map.codes_per_cell - 1;
        // A cell of many codes shows its last finite one; it is NaN only when all of it is.
        const CodeClass first_class = classify(format, first);
        const std::uint32_t shown = classify(format, last) == CodeClass::nan ? first : last;
        const CodeClass shown_class = classify(format, shown);
        const CodeClass cell_class = map.codes_per_cell == 1 ? first_class : shown_class;
        map.cells.push_back(
            {first, cell_class, shader(shown, shown_class), label_of(format, map, first, cell_class)});
    }
    for (int row = 0; row < map.rows; ++row)
        map.row_labels.push_back(map.cols == 16 ? fmt::format("{:X}·", row)
                                                : fmt::format("{:02X}", row * map.cols));
    for (int col = 0; col < map.cols; ++col)
        map.column_labels.push_back(map.cols == 16 ? fmt::format("{:X}", col) : fmt::format("+{}", col));
    map.subnormals = subnormal_runs(map);
    map.notes = notes_of(format, map);

    const CodeCounts counts = count_codes(format);
    map.title = counts.finite == counts.total
                    ? fmt::format("All {} codes are numbers", counts.total)
                    : fmt::format("{} of {} codes are numbers", counts.finite, counts.total);
    map.subtitle = shade == "gap"     ? "stronger: wider gap to the next value"
                   : shade == "class" ? "weaker: subnormal"
                                      : "stronger: larger value";
    if (counts.subnormals > 0 && shade != "class") map.subtitle += "; outlined: subnormal";
    if (map.codes_per_cell > 1) map.subtitle += fmt::format("; a cell: {} codes", map.codes_per_cell);
    return map;
}

Figure map_figure(const FormatInfo& format, const CodeMap& map, std::uint32_t code) {
    Figure figure;
    figure.id = "codes";
    figure.title = map.title;
    figure.subtitle = map.subtitle;
    figure.x.range = Range{-1, static_cast<double>(map.cols)};  // a column and a row more: the digits
    figure.y.range = Range{0, static_cast<double>(map.rows) + 1};
    figure.x.visible = figure.y.visible = false;
    HeatmapSeries heat;
    heat.rows = map.rows;
    heat.cols = map.cols;
    std::vector<double> shades;
    for (const MapCell& cell : map.cells) {
        shades.push_back(cell.shade);
        heat.labels.push_back(cell.label);
    }
    heat.values = data(std::move(shades));
    const Role role = format.role;
    figure.heatmap(std::string(format.label), std::move(heat), {.color = {role, Tone::fill}});

    const auto top = [&](int row) { return static_cast<double>(map.rows - row); };
    for (const CellRun& run : map.subnormals)
        outline(figure, fmt::format("subnormal##{}", run.row), run.first, top(run.row) - 1, run.last + 1,
                top(run.row), {.color = {role}, .width = 1});
    const Style digits = {.color = {Role::muted}, .in_legend = false};
    for (int col = 0; col < map.cols; ++col)
        figure.text(col + 0.5, map.rows + 0.5, map.column_labels[static_cast<std::size_t>(col)], digits,
                    Anchor::center);
    for (int row = 0; row < map.rows; ++row)
        figure.text(-0.5, top(row) - 0.5, map.row_labels[static_cast<std::size_t>(row)], digits,
                    Anchor::center);
    const CodeCounts counts = count_codes(format);
    figure.words = {
        fmt::format("A map of {} rows of {} cells, {} per cell, from {} up", map.rows, map.cols,
                    map.codes_per_cell == 1 ? "one code" : std::to_string(map.codes_per_cell) + " codes",
                    code_text(format, 0)),
        fmt::format("{} codes are finite, {} of them subnormal; {} are infinite and {} are NaN",
                    counts.finite, counts.subnormals, counts.infinities, counts.nans),
        fmt::format("The code that is shown is {} = {}", code_text(format, code),
                    value_text(exact_value(format, code)))};
    const int cell = map.cell_of(code), row = cell / map.cols, col = cell % map.cols;
    outline(figure, code_text(format, code), col, top(row) - 1, col + 1, top(row),
            {.color = {Role::truth}, .width = 3});
    return figure;
}

Figure value_figure(const FormatInfo& format, std::uint32_t code) {
    const std::uint32_t largest = max_code(format);
    const std::uint32_t stride = largest / 4096U + 1U;  // one point per px is enough for the 16-bit formats
    std::vector<double> codes, values;
    for (std::uint32_t i = 0; i <= largest; i += stride) {
        const double value = exact_value(format, i);
        if (value <= 0) continue;
        codes.push_back(i);
        values.push_back(value);
    }
    Figure figure;
    figure.id = "values";
    figure.title = format.mantissa_bits == 0
                       ? "Every code doubles the value"
                       : fmt::format("Every {} codes the value doubles", 1U << format.mantissa_bits);
    figure.x.label = "code";
    figure.y.label = "value";
    figure.y.scale = Scale::log2;
    figure.line(std::string(format.label), data(std::move(codes)), data(std::move(values)),
                {.color = {format.role}, .width = 3});
    const double value = exact_value(format, code);
    if (std::isfinite(value) && value > 0)
        figure.scatter(code_text(format, code), data({static_cast<double>(code)}), data({value}),
                       {.color = {Role::truth}, .marker = Marker::disc, .end_label = value_text(value)});
    return figure;
}

}  // namespace fp8lab::bits
