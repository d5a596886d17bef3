#include "core/run/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/files/random_file.h"
#include "core/run/log_files.h"
#include "core/run/log_lines.h"
#include "core/scaling/recipe.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab {

namespace {

constexpr std::size_t kFirstBlock = std::size_t{1} << 20, kBlock = std::size_t{16} << 20,
                      kPiece = std::size_t{256} << 10, kLongestLine = std::size_t{64} << 20;

// One file, and how far it was read.
struct OpenLog {
    std::filesystem::path path;
    std::string where;
    std::optional<std::string> text;  // in memory instead
    std::uint64_t consumed = 0,
                  size = 0;  // bytes: whole lines that were read; of the file when it was last opened
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

// A log in which tensors are found by name.
class LogBuilder {
  public:
    RunLog log;

    // `source`: TensorPoint::source of the file.
    void add(const LogPiece& piece, std::uint16_t source) {
        for (const LogRow& row : piece.rows) {
            if (row.name.empty()) {
                add_loss(row);
                continue;
            }
            TensorSeries& series = find(row.name);
            if (piece.rounded) series.set_resolution(0.00005F);
            TensorPoint point = row.point;
            point.source = source;
            series.add(point,
                       std::span(piece.packed).subspan(row.packed_begin, row.packed_end - row.packed_begin));
        }
        if (piece.head) {
            if (!piece.head->recipe.empty())
                log.recipe = piece.head->recipe;  // InspectLogger does not say it
            if (!piece.head->kinds.empty()) log.kinds = piece.head->kinds;
            log.every = piece.head->every;
        }
        for (const std::string& arm : piece.arms) note_arm(arm);
    }
    void note_arm(const std::string& arm) {
        if (std::ranges::find(log.arms, arm) == log.arms.end()) log.arms.push_back(arm);
    }

    void settle() {
        for (TensorSeries& series : log.tensors) series.settle();
        if (std::exchange(losses_settled_, true)) return;
        std::ranges::stable_sort(log.losses, {}, &LossPoint::step);
        std::vector<LossPoint> kept;
        for (const LossPoint& point : log.losses) {
            if (!kept.empty() && kept.back().step == point.step)
                kept.back() = point;
            else
                kept.push_back(point);
        }
        log.losses = std::move(kept);
    }

  private:
    void add_loss(const LogRow& row) {
        if (!log.losses.empty() && log.losses.back().step == row.point.step) {
            log.losses.back().loss = row.loss;
            return;
        }
        losses_settled_ = losses_settled_ && (log.losses.empty() || log.losses.back().step < row.point.step);
        log.losses.push_back({row.point.step, row.loss});
    }

    // Rows come in the same order in every step: the next tensor is usually the one behind the last.
    TensorSeries& find(std::string_view name) {
        if (++last_ >= log.tensors.size()) last_ = 0;
        if (!log.tensors.empty() && log.tensors[last_].name() == name) return log.tensors[last_];
        const auto [at, is_new] = places_.try_emplace(std::string(name), log.tensors.size());
        if (is_new) log.tensors.emplace_back(at->first);
        last_ = at->second;
        return log.tensors[last_];
    }

    std::unordered_map<std::string, std::size_t> places_;
    std::size_t last_ = 0;
    bool losses_settled_ = true;
};

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

struct RunReader::State {
    std::vector<OpenLog> files;
    RunSelection selection;
    LogBuilder built;
    std::vector<std::string> file_notes;

    ReadProgress progress() const {
        ReadProgress out;
        for (const OpenLog& file : files) {
            out.bytes_read += file.consumed;
            out.bytes += std::max(file.size, file.consumed);
        }
        return out;
    }

    void read(OpenLog& file, const RandomFile& now, const std::function<void(const ReadProgress&)>& report) {
        check_same(file, now);
        file.size = now.size();
        file.open_end = false;
        if (file.size > 0 && !recognise(file, now)) file.open_end = true;
        if (file.kind == LogKind::unknown) return;
        if (file.kind == LogKind::hook) file.source = static_cast<std::uint16_t>(&file - files.data() + 1);
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
            take_lines(file, text.substr(0, whole), selection.arm, built);
            if (loaded == file.size) take_rest(file, text.substr(whole), built);
            buffer.erase(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(whole));
            finish();
            if (report) report(progress());
        }
    }

    // The log can be read after this.
    void finish() {
        built.settle();
        check_one_run();
        RunLog& log = built.log;
        log.notes = file_notes;
        for (const OpenLog& file : files) {
            if (file.kind == LogKind::csv && file.has_arm) {
                log.arm = file.arm;
                log.recipe = file.arm;
            }
            if (file.open_end)
                log.notes.push_back(
                    fmt::format("{}: its last line, line {} at byte {}, has no end and was not read",
                                file.where, file.lines + 1, file.consumed));
            if (file.skipped > 0)
                log.notes.push_back(fmt::format("{}: {} line{} no statistics that are read", file.where,
                                                file.skipped, file.skipped == 1 ? " is" : "s are"));
        }
        if (selection.arm.empty() && log.arms.size() > 1)
            log.notes.push_back(
                fmt::format("arm {} of {} is read; --arm chooses another", log.arm, log.arms.size()));
        note_recipe();
        note_order();
        note_rounding();
    }

    // Logs of the hook are of one run, and each says something else of it: other tensors or other steps.
    void check_one_run() const {
        const OpenLog* said = nullptr;
        for (const OpenLog& file : files) {
            if (file.source == 0 || file.recipe.empty()) continue;
            if (said && said->recipe != file.recipe)
                throw input_error(file.where, fmt::format("it was trained in {}, {} in {}: name one of them",
                                                          file.recipe, said->where, said->recipe));
            said = &file;
        }
        for (const TensorSeries& series : built.log.tensors)
            if (const auto& same = series.same_record())
                throw input_error(
                    files[same->second - std::size_t{1}].where,
                    fmt::format("{} in step {} is in {} too, so that these are two ranks or runs: name one "
                                "of them, or choose by --rank the last number of its name",
                                series.name(), same->step, files[same->first - std::size_t{1}].where));
    }

    // A recipe that this program does not know is no reason not to look at the tensors.
    void note_recipe() {
        try {
            if (!built.log.recipe.empty()) parse_recipe(built.log.recipe);
        } catch (const Error&) {
            built.log.notes.push_back(
                fmt::format("the log says recipe {}, which is none of this program's", built.log.recipe));
        }
    }

    void note_order() {
        std::uint64_t unsorted = 0, twice = 0;
        for (const TensorSeries& series : built.log.tensors) {
            unsorted += series.unsorted();
            twice += series.twice();
        }
        if (unsorted > 0)
            built.log.notes.push_back(
                fmt::format("{} record{} came after one of a later step: they were sorted", unsorted,
                            unsorted == 1 ? "" : "s"));
        if (twice > 0)
            built.log.notes.push_back(fmt::format(
                "{} records are of a tensor and a step that were there before: the later one is taken",
                twice));
    }

    void note_rounding() {
        std::uint64_t below = 0;
        for (const TensorSeries& series : built.log.tensors)
            if (series.resolution() > 0)
                below +=
                    static_cast<std::uint64_t>(std::ranges::count(series.points(), 0.0F, &TensorPoint::amax));
        if (below > 0)
            built.log.notes.push_back(
                fmt::format("{} amaxes read 0.0000: they are below 0.00005, not 0. InspectLogger of "
                            "fp8lab_hook.py logs all digits",
                            below));
    }
};

RunReader::RunReader(const std::vector<std::filesystem::path>& paths, RunSelection selection)
    : state_(std::make_unique<State>()) {
    LogFiles files = log_files(paths, selection.rank);
    state_->selection = std::move(selection);
    state_->file_notes = std::move(files.notes);
    if (files.paths.size() >= std::numeric_limits<std::uint16_t>::max())
        throw input_error(files.paths.front().string(), "more than 65,534 logs");
    for (const auto& path : files.paths) {
        OpenLog file;
        file.path = path;
        file.where = path.string();
        file.size = RandomFile(path).size();
        state_->files.push_back(std::move(file));
    }
}

RunReader::RunReader(std::string text, std::string where, RunSelection selection)
    : state_(std::make_unique<State>()) {
    state_->selection = std::move(selection);
    OpenLog file;
    file.where = std::move(where);
    file.size = text.size();
    file.text = std::move(text);
    state_->files.push_back(std::move(file));
}

RunReader::~RunReader() = default;

void RunReader::read(const std::function<void(const ReadProgress&)>& report) {
    State& state = *state_;
    for (OpenLog& file : state.files) state.read(file, open(file), report);
    state.finish();
    const std::string& arm = state.selection.arm;
    const auto& arms = state.built.log.arms;
    const bool complete =
        std::ranges::all_of(state.files, [](const OpenLog& file) { return file.consumed > 0; });
    if (!arm.empty() && complete && std::ranges::find(arms, arm) == arms.end()) {
        if (arms.empty()) throw usage_error("--arm", "the log has no arms: it is no CSV of fp8lab train");
        throw unknown_name("--arm", "arm", arm, arms, [](const std::string& name) { return name; });
    }
}

const RunLog& RunReader::log() const { return state_->built.log; }
ReadProgress RunReader::progress() const { return state_->progress(); }

RunLog RunReader::take() { return std::exchange(state_->built, {}).log; }

RunLog read_run(const std::vector<std::filesystem::path>& paths, RunSelection selection) {
    RunReader reader(paths, std::move(selection));
    reader.read();
    return reader.take();
}

RunLog read_run_text(std::string text, std::string where, RunSelection selection) {
    RunReader reader(std::move(text), std::move(where), std::move(selection));
    reader.read();
    return reader.take();
}

}  // namespace fp8lab
