// One file of a run's logs, read line by line into the log: a part of read_run.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/run/log_builder.h"
#include "core/run/log_lines.h"

namespace fp8lab {

// A file, and how far it was read.
struct OpenLog {
    std::filesystem::path path;
    std::string where;
    std::optional<std::string> text;  // in memory instead
    std::uint64_t consumed = 0;       // bytes: whole lines that were read
    std::uint64_t size = 0;           // bytes of the file when it was last opened
    std::size_t lines = 0;
    std::string head;  // its first bytes, to know the file again
    LogKind kind = LogKind::unknown;
    CsvColumns columns;
    std::string arm;
    bool has_columns = false, has_arm = false, has_head = false;
    std::size_t skipped = 0;
    bool open_end = false;     // its last line has no end yet
    std::string recipe;        // that its first line says
    std::uint16_t source = 0;  // TensorPoint::source, where it is the hook's
};

// Reads to the end of what the file has now, in blocks; `after_block` is called behind each. `arm`: of a CSV; empty: the
// first one with values. `source`: what a log of the hook gets. Throws as RunReader::read(); calls ask_between().
void read_log(OpenLog& file, std::uint16_t source, const std::string& arm, LogBuilder& into,
              const std::function<void()>& after_block);

}  // namespace fp8lab
