// The lines of a log, parsed without a tree of values: a part of read_run.h. A piece of a file is parsed by one thread,
// and knows nothing of the pieces before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/run_log.h"

namespace fp8lab {

// What one line, or one cell of a CSV, says of a tensor or, where the name is empty, of the loss.
struct LogRow {
    std::string_view name;  // in the text of the piece, in LogPiece::names, or in the CSV's head
    TensorPoint point;
    double loss = 0;
    std::size_t packed_begin = 0, packed_end = 0;  // of LogPiece::packed
};

struct LogFault {
    std::size_t line, byte;  // from 0, in the piece
    std::string why;
};

// What line 1 of a hook's log says.
struct LogHead {
    std::string recipe, kinds;
    int every = 1;
};

struct LogPiece {
    std::vector<LogRow> rows;
    std::vector<std::uint8_t> packed;  // counters, as BinadeCounters::pack()
    std::deque<std::string> names;     // those with escapes
    std::vector<std::string> arms;     // of a CSV
    std::optional<LogHead> head;
    std::size_t lines = 0, skipped = 0;  // skipped: lines that are no statistics
    std::optional<LogFault> fault;       // nothing behind it was parsed
    bool rounded = false;                // values have four decimals
};

// The columns of a `train --csv`, from its line of names.
struct CsvColumns {
    struct Column {
        enum class Kind { none, step, arm, loss, value } kind = Kind::none;
        float TensorPoint::*part = nullptr;
        std::size_t tensor = 0;
    };
    std::vector<Column> columns;
    std::vector<std::string> tensors;
};
// Throws std::string with the reason where it is no such line.
CsvColumns csv_columns(std::string_view line);
// The arm of a row of values; none where the row has no such cell.
std::optional<std::string_view> csv_arm(std::string_view line, const CsvColumns& columns);

// Whether a row of values has one of a tensor.
bool csv_has_values(std::string_view line, const CsvColumns& columns);

// Whole lines, each with its '\n' (the last one may be without). A fault ends the piece.
LogPiece parse_hook_lines(std::string_view text);
LogPiece parse_inspect_lines(std::string_view text);
LogPiece parse_csv_lines(std::string_view text, const CsvColumns& columns, std::string_view arm);

// "blocks.0.fc1_activation_cur_amax" of nvidia-dlfw-inspect: false where it is not one that a run is judged by. `name`
// becomes "blocks.0.fc1.x", `point` has the value. `why` is set, and false returned, where the value can be none.
bool read_statistic(std::string_view statistic, double value, std::string& name, TensorPoint& point,
                    std::string& why);

// The kind of a file by its first bytes.
enum class LogKind { hook, inspect, csv, unknown };
LogKind log_kind(std::string_view head);

}  // namespace fp8lab
