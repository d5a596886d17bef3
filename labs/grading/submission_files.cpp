#include "labs/grading/submission_files.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/files/bounded_file.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;

// Evidence names its kind after the explanation, which is a few sentences.
constexpr std::size_t kHeadOfEvidence = std::size_t{1} << 20;
constexpr std::string_view kNothing = "holds no evidence of an exercise";

// In a bundle the members of evidence are escaped, so that no quote is next to the name.
bool names_its_kind(const std::string& text) {
    return text.find("fp8lab_evidence") != text.npos || text.find("fp8lab_bundle") != text.npos;
}

void look_at_file(const fs::path& file, std::vector<SubmissionFile>& out) {
    const std::string extension = lower_extension(file);
    if (extension == ".f8lab") return out.push_back({file});
    if (extension != ".json") return;
    try {
        if (names_its_kind(read_head(file, kHeadOfEvidence))) out.push_back({file});
    } catch (const Error& error) {
        out.push_back({file, error.why()});
    }
}

void look_into(const fs::path& folder, std::vector<SubmissionFile>& out);

void look_at(const fs::directory_entry& entry, std::vector<SubmissionFile>& out) {
    const fs::path& path = entry.path();
    if (path.filename().string().starts_with('.')) return;
    const bool handed_in = lower_extension(path) == ".f8lab";
    std::error_code problem;
    const fs::file_status status = fs::status(path, problem);
    if (fs::is_directory(status) && !entry.is_symlink(problem)) {
        const std::size_t before = out.size();
        look_into(path, out);
        if (handed_in && out.size() == before) out.push_back({path, "is a folder, not a file"});
    } else if (fs::is_regular_file(status)) {
        look_at_file(path, out);
    } else if (handed_in) {  // its reader says what it is instead
        out.push_back({path});
    } else if (problem && problem != std::errc::no_such_file_or_directory) {
        out.push_back({path, problem.message()});
    }
}

void look_into(const fs::path& folder, std::vector<SubmissionFile>& out) {
    std::error_code problem;
    std::vector<fs::directory_entry> entries;
    fs::directory_iterator at(folder, problem);
    for (; !problem && at != fs::directory_iterator(); at.increment(problem)) entries.push_back(*at);
    if (problem) out.push_back({folder, problem.message()});
    std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) { return entry.path(); });
    for (const fs::directory_entry& entry : entries) look_at(entry, out);
}

std::vector<SubmissionFile> all_in(std::span<const std::string> paths) {
    std::vector<SubmissionFile> out;
    for (const std::string& path : paths) {
        std::error_code none;  // its reader says what is wrong with it
        if (path == "-" || !fs::is_directory(path, none)) {
            out.push_back({path});
            continue;
        }
        const std::size_t before = out.size();
        look_into(path, out);
        if (out.size() == before) out.push_back({path, std::string(kNothing)});
    }
    return out;
}

}  // namespace

std::string lower_extension(const fs::path& path) {
    std::string out = path.extension().string();
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
    return out;
}

std::vector<SubmissionFile> submissions_in(std::span<const std::string> paths) {
    std::vector<SubmissionFile> out = all_in(paths);
    std::set<fs::path> seen;  // a folder, and a file in it that is named besides
    std::erase_if(out, [&seen](const SubmissionFile& file) {
        return !seen.insert(file.path.lexically_normal()).second;
    });
    return out;
}

}  // namespace fp8lab
