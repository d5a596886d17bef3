#include "core/run/open_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/files/random_file.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::size_t kFirstBlock = std::size_t{1} << 20, kBlock = std::size_t{16} << 20,
                      kPiece = std::size_t{256} << 10, kLongestLine = std::size_t{64} << 20;

// Cuts text, which ends with a line, into pieces of about that size at ends of lines.
std::vector<std::string_view> pieces_of(std::string_view text) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
        std::size_t end = text.size();
        if (end > kPiece)
            if (const auto newline = text.find('\n', kPiece); newline != text.npos) end = newline + 1;
        out.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return out;
}

[[noreturn]] void refuse(const OpenLog& file, std::size_t line, std::uint64_t byte, const std::string& why) {
    throw input_error(file.where, fmt::format("line {} at byte {}: {}", file.lines + line + 1, byte, why));
}

// Reads the lines of a CSV up to the first row of values: names of columns, the arm. What is left.
std::string_view begin_csv(OpenLog& file, std::string_view text, const std::string& arm, LogBuilder& into) {
    while (!file.has_arm && !text.empty()) {
        const std::size_t end = text.find('\n') + 1;
        std::string_view line = text.substr(0, end - 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        const bool is_note = line.empty() || line.starts_with('#');
        if (!is_note && file.has_columns) {
            const std::string of_row(csv_arm(line, file.columns).value_or(""));
            if (!arm.empty() || csv_has_values(line, file.columns)) {
                file.arm = arm.empty() ? of_row : arm;
                file.has_arm = true;
                break;
            }
            into.note_arm(of_row);  // an arm without tensors, as fp32: the one that is read has some
        }
        if (!is_note && !file.has_columns) {
            file.columns = csv_columns(line);
            if (file.columns.tensors.empty())
                refuse(file, 0, file.consumed,
                       "no column is an amax, a scale or an underflow: this is no CSV of fp8lab train");
            file.has_columns = true;
        }
        text.remove_prefix(end);
        file.consumed += end;
        ++file.lines;
    }
    return text;
}

LogPiece parse(const OpenLog& file, std::string_view text) {
    switch (file.kind) {
        case LogKind::hook:
            return parse_hook_lines(text);
        case LogKind::csv:
            return parse_csv_lines(text, file.columns, file.arm);
        default:
            return parse_inspect_lines(text);
    }
}

// Parses whole lines on all threads and adds them in their order.
void take_lines(OpenLog& file, std::string_view text, const std::string& arm, LogBuilder& into) {
    if (file.kind == LogKind::csv) text = begin_csv(file, text, arm, into);
    const auto texts = pieces_of(text);
    std::vector<LogPiece> pieces(texts.size());
    parallel_for(texts.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) pieces[i] = parse(file, texts[i]);
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        LogPiece& piece = pieces[i];
        if (file.kind == LogKind::hook && !file.has_head && !piece.head &&
            (!piece.rows.empty() || piece.skipped > 0))
            refuse(file, 0, file.consumed,
                   "the log does not begin with {\"fp8lab\":1,...}: it is not of fp8lab_hook.py");
        file.has_head = file.has_head || piece.head;
        if (piece.head && !piece.head->recipe.empty()) file.recipe = piece.head->recipe;
        into.add(piece, file.source);
        if (piece.fault) refuse(file, piece.fault->line, file.consumed + piece.fault->byte, piece.fault->why);
        file.consumed += texts[i].size();
        file.lines += piece.lines;
        file.skipped += piece.skipped;
        piece = {};
    }
}

// What stands behind the last line's end at the end of the file. A hook's record is complete where it is JSON.
void take_rest(OpenLog& file, std::string_view rest, LogBuilder& into) {
    file.open_end = !rest.empty();
    if (rest.empty() || file.kind != LogKind::hook) return;
    const LogPiece piece = parse_hook_lines(rest);
    if (piece.fault) return;
    if (piece.head && !piece.head->recipe.empty()) file.recipe = piece.head->recipe;
    into.add(piece, file.source);
    file.has_head = file.has_head || piece.head;
    file.open_end = false;
    file.consumed += rest.size();  // not counted as a line: its end is still to come
}

// The same file as before, with as much or more?
void check_same(const OpenLog& file, const RandomFile& now) {
    if (file.head.empty()) return;
    const auto bytes = now.read_some(0, file.head.size());
    if (now.size() < file.consumed || bytes.size() != file.head.size() ||
        std::memcmp(bytes.data(), file.head.data(), bytes.size()) != 0)
        throw input_error(file.where, "it is another file than the one that was read before");
}

RandomFile open(const OpenLog& file) {
    if (!file.text) return RandomFile(file.path);
    const auto bytes = std::as_bytes(std::span(*file.text));
    return {std::vector<std::byte>(bytes.begin(), bytes.end()), file.where};
}

// Which kind of log it is. False: its first line has no end yet.
bool recognise(OpenLog& file, const RandomFile& now) {
    constexpr std::size_t kBytes = std::size_t{4} << 10, kKept = 256;
    if (file.kind != LogKind::unknown) return true;
    const auto bytes = now.read_some(0, kBytes);
    std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    file.head = head.substr(0, kKept);
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (head.starts_with(kByteOrderMark)) {
        head.remove_prefix(kByteOrderMark.size());
        file.consumed = kByteOrderMark.size();
    }
    if (bytes.size() < kBytes && head.find('\n') == head.npos && !head.starts_with('{')) return false;
    file.kind = log_kind(head);
    if (file.kind == LogKind::unknown)
        throw input_error(file.where,
                          "it is no log of tensors: neither of fp8lab_hook.py, nor of nvidia-dlfw-inspect, "
                          "nor a CSV of fp8lab train");
    return true;
}

// What reading the rest takes at most: a point has 32 bytes and its counters some 30, in vectors that grow by doubling;
// beside them a block and its rows.
void require_memory_for(const OpenLog& file) {
    const double rest = static_cast<double>(file.size - file.consumed),
                 per_byte = file.kind == LogKind::csv ? 2 : 0.75;
    require_memory(file.where, per_byte * rest + 4 * std::min(rest, static_cast<double>(kBlock)));
}

}  // namespace

void read_log(OpenLog& file, std::uint16_t source, const std::string& arm, LogBuilder& into,
              const std::function<void()>& after_block) {
    const RandomFile now = open(file);
    check_same(file, now);
    file.size = now.size();
    file.open_end = false;
    if (file.size > 0 && !recognise(file, now)) file.open_end = true;
    if (file.kind == LogKind::unknown) return;
    if (file.kind == LogKind::hook) file.source = source;
    require_memory_for(file);
    std::vector<std::byte> buffer;
    std::uint64_t loaded = file.consumed;  // the buffer has the bytes from `consumed` to here
    std::size_t block = kFirstBlock;
    while (loaded < file.size) {
        ask_between();
        const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(block, file.size - loaded));
        const std::size_t rest = buffer.size();
        buffer.resize(rest + more);
        now.read(loaded, std::span(buffer).subspan(rest));
        loaded += more;
        block = kBlock;
        const std::string_view text(reinterpret_cast<const char*>(buffer.data()), buffer.size());
        const std::size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
        if (whole == 0 && text.size() > kLongestLine)
            refuse(file, 0, file.consumed, "a line of more than 64 MiB");
        take_lines(file, text.substr(0, whole), arm, into);
        if (loaded == file.size) take_rest(file, text.substr(whole), into);
        buffer.erase(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(whole));
        after_block();
    }
}

}  // namespace fp8lab
