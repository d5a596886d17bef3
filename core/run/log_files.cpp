#include "core/run/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/run/log_lines.h"

namespace fp8lab {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kInspectFolder = "nvdlfw_inspect_statistics_logs";
constexpr std::size_t kHead = std::size_t{4} << 10;

bool is_log_name(const fs::path& path) {
    const std::string extension = path.extension().string();
    return extension == ".jsonl" || extension == ".log" || extension == ".csv";
}

// R of "..._globalrank-R.log"
std::optional<int> globalrank_of(const fs::path& path) {
    constexpr std::string_view kMark = "globalrank-";
    const std::string name = path.filename().string();
    const auto at = name.rfind(kMark);
    int rank = 0;
    if (at == name.npos ||
        std::from_chars(name.data() + at + kMark.size(), name.data() + name.size(), rank).ec != std::errc{})
        return std::nullopt;
    return rank;
}

// Of a log of the hook, which is named as its user likes: the last number of its name.
std::optional<int> last_number(const fs::path& path) {
    constexpr std::string_view kDigits = "0123456789";
    if (path.extension() != ".jsonl") return std::nullopt;
    const std::string name = path.stem().string();
    const auto last = name.find_last_of(kDigits);
    if (last == name.npos) return std::nullopt;
    const auto before = name.find_last_not_of(kDigits, last);
    const std::size_t begin = before == name.npos ? 0 : before + 1;
    int rank = 0;
    if (std::from_chars(name.data() + begin, name.data() + last + 1, rank).ec != std::errc{})
        return std::nullopt;
    return rank;
}

void add_folder(const fs::path& folder, LogFiles& files) {
    std::vector<fs::path> found;
    for (const fs::path& place : {folder, folder / kInspectFolder}) {
        std::error_code error;
        for (fs::directory_iterator at(place, error), end; !error && at != end; at.increment(error))
            if (at->is_regular_file(error) && is_log_name(at->path())) found.push_back(at->path());
    }
    std::ranges::sort(found);
    std::size_t used = 0;
    for (const fs::path& path : found) {
        if (log_kind(read_head(path, kHead)) == LogKind::unknown) {
            files.notes.push_back(path.string() + " is no log of tensors, and was not read");
            continue;
        }
        files.paths.push_back(path);
        ++used;
    }
    if (used == 0)
        throw input_error(folder.string(),
                          "there is no log in this folder: .jsonl of fp8lab_hook.py, .log of "
                          "nvidia-dlfw-inspect, or .csv of fp8lab train");
}

// Of the files of several ranks one rank's stay.
void keep_rank(LogFiles& files, int rank) {
    const auto rank_of = [&](const fs::path& path) {
        const auto global = globalrank_of(path);
        return global || rank < 0 ? global : last_number(path);
    };
    std::set<int> ranks;
    for (const fs::path& path : files.paths)
        if (const auto one = rank_of(path)) ranks.insert(*one);
    if (ranks.empty() && rank < 0) return;
    if (rank >= 0 && !ranks.contains(rank)) {
        std::string there;
        for (const int one : ranks) there += fmt::format("{}{}", there.empty() ? "" : " ", one);
        throw usage_error("--rank", fmt::format("there is no file of rank {}; ranks: {}", rank,
                                                there.empty() ? "none" : there));
    }
    const int kept = rank >= 0 ? rank : *ranks.begin();
    const std::size_t before = files.paths.size();
    std::erase_if(files.paths, [&](const fs::path& path) { return rank_of(path).value_or(kept) != kept; });
    if (rank < 0 && files.paths.size() < before)
        files.notes.push_back(
            fmt::format("rank {} of {} is read; --rank chooses another", kept, ranks.size()));
}

}  // namespace

LogFiles log_files(const std::vector<fs::path>& paths, int rank) {
    LogFiles files;
    for (const fs::path& path : paths) {
        std::error_code error;
        if (fs::is_directory(path, error))
            add_folder(path, files);
        else
            files.paths.push_back(path);
    }
    keep_rank(files, rank);
    return files;
}

}  // namespace fp8lab
