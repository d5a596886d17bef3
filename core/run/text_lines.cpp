// Lines of nvidia-dlfw-inspect's log and of `train --csv`.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/read_number.h"
#include "core/run/log_lines.h"

namespace fp8lab {

namespace {

// Calls `each(line, begin)` for every line; false ends it.
template <class Each>
void for_lines(std::string_view text, LogPiece& piece, Each each) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!each(line, begin)) return;
        ++piece.lines;
        begin = end + 1;
    }
}

// A decimal, "nan" or "inf". False: no number, or one that no float32 holds.
bool read_float(std::string_view text, float& value) {
    if (read_number(text, value)) return true;
    double wide = 0;
    if (!read_number(text, wide) || std::fabs(wide) > 1) return false;
    value = static_cast<float>(wide);  // below float32's smallest
    return true;
}

std::string_view word_behind(std::string_view line, std::string_view key) {
    const auto at = line.find(key);
    if (at == line.npos) return {};
    line.remove_prefix(at + key.size());
    return line.substr(0, line.find_first_of(" \t"));
}

// "TIME - INFO - NAME \t iteration=%06d \t value=%.4f". None: another line.
bool read_inspect_line(std::string_view line, LogPiece& piece, std::string& why) {
    const auto key = line.find("iteration=");
    const auto level = key == line.npos ? line.npos : line.rfind(" - ", key);
    if (level == line.npos) return false;
    std::string_view name = line.substr(level + 3, key - level - 3);
    name = name.substr(0, name.find_first_of(" \t"));
    TensorPoint point;
    double value = 0;
    if (!read_number(word_behind(line, "iteration="), point.step) || point.step < 0) {
        why = "the iteration is no whole number in 0..2147483647";
        return false;
    }
    if (!read_number(word_behind(line, "value="), value)) {
        why = "the value is no number";
        return false;
    }
    std::string tensor;
    if (!read_statistic(name, value, tensor, point, why)) return false;
    point.scale = kNotLogged;  // its inverse has four decimals: too few
    piece.rows.push_back({.name = piece.names.emplace_back(std::move(tensor)), .point = point});
    return true;
}

// The cells of a line, one after the other.
class Cells {
  public:
    explicit Cells(std::string_view line) : rest_(line) {}
    bool next(std::string_view& cell) {
        if (ended_) return false;
        const auto comma = rest_.find(',');
        cell = rest_.substr(0, comma);
        ended_ = comma == rest_.npos;
        if (!ended_) rest_.remove_prefix(comma + 1);
        return true;
    }

  private:
    std::string_view rest_;
    bool ended_ = false;
};

struct CsvRow {
    std::int32_t step = 0;
    double loss = std::numeric_limits<double>::quiet_NaN();
    bool has_loss = false;
    std::string_view arm;
    std::vector<TensorPoint> points;
    std::vector<char> logged;
};

// Empty: read. Else the reason, and `cell` is the one at fault.
std::string read_csv_row(std::string_view line, const CsvColumns& columns, CsvRow& row,
                         std::string_view& cell) {
    using Kind = CsvColumns::Column::Kind;
    row.points.assign(columns.tensors.size(), {});
    row.logged.assign(columns.tensors.size(), 0);
    row.arm = {};
    row.has_loss = false;
    Cells cells(line);
    std::size_t n = 0;
    for (; cells.next(cell); ++n) {
        if (n == columns.columns.size()) return "more cells than the line of names has";
        const CsvColumns::Column& column = columns.columns[n];
        if (column.kind == Kind::arm) row.arm = cell;
        if (column.kind == Kind::step && (!read_number(cell, row.step) || row.step < 0))
            return "the step is no whole number in 0..2147483647";
        if (cell.empty()) continue;
        if (column.kind == Kind::loss) {
            if (!read_number(cell, row.loss)) return "the loss is no number";
            row.has_loss = true;
        }
        if (column.kind != Kind::value) continue;
        TensorPoint& point = row.points[column.tensor];
        if (!read_float(cell, point.*column.part)) return "no number that float32 holds";
        if (column.part == &TensorPoint::amax && point.amax < 0) return "a magnitude below 0";
        if (column.part == &TensorPoint::amax && !std::isfinite(point.amax)) point.nonfinite = true;
        row.logged[column.tensor] = 1;
    }
    return n == columns.columns.size() ? "" : "fewer cells than the line of names has";
}

}  // namespace

bool read_statistic(std::string_view statistic, double value, std::string& name, TensorPoint& point,
                    std::string& why) {
    struct Class {
        std::string_view word, suffix;
    };
    constexpr Class kClasses[] = {{"_activation_", ".x"}, {"_weight_", ".w"}, {"_gradient_", ".dy"}};
    std::size_t at = statistic.npos;
    const Class* kind = nullptr;
    for (const Class& one : kClasses)
        if (const auto found = statistic.rfind(one.word); found != statistic.npos && (!kind || found > at)) {
            at = found;
            kind = &one;
        }
    if (!kind || at == 0) return false;
    const std::string_view what = statistic.substr(at + kind->word.size());
    const auto as_float = [&] { return static_cast<float>(value); };
    if (what == "cur_amax") {
        if (value < 0) why = "a magnitude below 0";
        if (std::isfinite(value) && value > static_cast<double>(std::numeric_limits<float>::max()))
            why = "a magnitude beyond float32";
        if (!why.empty()) return false;
        point.amax = as_float();
        point.nonfinite = !std::isfinite(point.amax);
    } else if (what == "scale_inv_min" && value > 0 && std::isfinite(value)) {
        point.scale = static_cast<float>(1 / value);
    } else if (what == "underflows%" || what == "fp8_delayed_scaling_underflows%" ||
               what == "fp8_current_scaling_underflows%") {
        point.underflow_pct = as_float();
    } else {
        return false;
    }
    name = std::string(statistic.substr(0, at)) + std::string(kind->suffix);
    return true;
}

LogPiece parse_inspect_lines(std::string_view text) {
    LogPiece piece;
    piece.rounded = true;
    for_lines(text, piece, [&](std::string_view line, std::size_t begin) {
        std::string why;
        if (read_inspect_line(line, piece, why)) return true;
        if (why.empty()) {
            piece.skipped += line.empty() ? 0 : 1;
            return true;
        }
        piece.fault = {piece.lines, begin, why};
        return false;
    });
    return piece;
}

CsvColumns csv_columns(std::string_view line) {
    struct Part {
        std::string_view prefix;
        float TensorPoint::*part;
    };
    constexpr Part kParts[] = {{"amax_", &TensorPoint::amax},
                               {"scale_", &TensorPoint::scale},
                               {"underflow_pct_", &TensorPoint::underflow_pct},
                               {"overflow_pct_", &TensorPoint::overflow_pct}};
    CsvColumns out;
    std::string_view cell;
    for (Cells cells(line); cells.next(cell);) {
        CsvColumns::Column column;
        if (cell == "step") column.kind = CsvColumns::Column::Kind::step;
        if (cell == "recipe") column.kind = CsvColumns::Column::Kind::arm;
        if (cell == "loss") column.kind = CsvColumns::Column::Kind::loss;
        for (const Part& part : kParts) {
            if (!cell.starts_with(part.prefix)) continue;
            const std::string name(cell.substr(part.prefix.size()));
            const auto found = std::ranges::find(out.tensors, name);
            column = {CsvColumns::Column::Kind::value, part.part,
                      static_cast<std::size_t>(found - out.tensors.begin())};
            if (found == out.tensors.end()) out.tensors.push_back(name);
        }
        out.columns.push_back(column);
    }
    return out;
}

std::optional<std::string_view> csv_arm(std::string_view line, const CsvColumns& columns) {
    std::string_view cell;
    std::size_t n = 0;
    for (Cells cells(line); n < columns.columns.size() && cells.next(cell); ++n)
        if (columns.columns[n].kind == CsvColumns::Column::Kind::arm) return cell;
    return std::nullopt;
}

bool csv_has_values(std::string_view line, const CsvColumns& columns) {
    std::string_view cell;
    std::size_t n = 0;
    for (Cells cells(line); n < columns.columns.size() && cells.next(cell); ++n)
        if (columns.columns[n].kind == CsvColumns::Column::Kind::value && !cell.empty()) return true;
    return false;
}

LogPiece parse_csv_lines(std::string_view text, const CsvColumns& columns, std::string_view arm) {
    LogPiece piece;
    CsvRow row;
    for_lines(text, piece, [&](std::string_view line, std::size_t) {
        if (line.empty() || line.starts_with('#')) return true;
        std::string_view cell;
        if (const std::string why = read_csv_row(line, columns, row, cell); !why.empty()) {
            piece.fault = {piece.lines, static_cast<std::size_t>(cell.data() - text.data()), why};
            return false;
        }
        if (std::ranges::find(piece.arms, row.arm) == piece.arms.end()) piece.arms.emplace_back(row.arm);
        if (row.arm != arm) return true;
        for (std::size_t t = 0; t < row.points.size(); ++t) {
            if (row.logged[t] == 0) continue;
            row.points[t].step = row.step;
            piece.rows.push_back({.name = columns.tensors[t], .point = row.points[t]});
        }
        TensorPoint at;
        at.step = row.step;
        if (row.has_loss) piece.rows.push_back({.name = {}, .point = at, .loss = row.loss});
        return true;
    });
    return piece;
}

LogKind log_kind(std::string_view head) {
    while (!head.empty()) {
        const auto end = head.find('\n');
        const std::string_view line = head.substr(0, end);
        head.remove_prefix(end == head.npos ? head.size() : end + 1);
        const auto first = line.find_first_not_of(" \t\r");
        if (first == line.npos || line[first] == '#') continue;
        if (line[first] == '{') return LogKind::hook;
        if (line.starts_with("step,")) return LogKind::csv;
        if (line.find(" - ") != line.npos) return LogKind::inspect;
        return LogKind::unknown;
    }
    return LogKind::unknown;
}

}  // namespace fp8lab
