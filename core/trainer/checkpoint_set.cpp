// The checkpoints of a run as one set of files in a folder: which they are, and how they replace the set before.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/files/files.h"
#include "core/files/folders.h"
#include "core/files/growing_file.h"
#include "core/files/random_file.h"
#include "core/nn/model.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSaving = ".saving";  // a set that is being written
constexpr const char* kSaved = ".saved";    // a whole set that is being moved to its place

// The number that the name of a checkpoint begins with; none: it is no checkpoint.
std::optional<int> number_of(const fs::path& file) {
    const std::string name = file.filename().string();
    int number = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool is_one = failure == std::errc{} && *end == '-' && file.extension() == ".safetensors";
    return is_one ? std::optional(number) : std::nullopt;
}

using ByNumber = std::map<std::pair<int, std::string>, fs::path>;

void add_files(const fs::path& dir, ByNumber& found) {
    for (const auto& entry : fs::directory_iterator(dir))
        if (const auto number = number_of(entry.path()))
            found[{*number, entry.path().filename().string()}] = entry.path();
}

Error not_moved(const fs::path& to, const std::error_code& why) {
    return {ErrorKind::failed, to.string(), why.message()};
}

// Moves to the place that a link leads to, so that the link stays. On another file system it copies.
void move_file(const fs::path& from, const fs::path& to) {
    std::error_code problem;
    fs::rename(from, write_target(to).path, problem);
    if (problem == std::errc::cross_device_link) {
        const RandomFile file(from);
        write_file(to, file.read_some(0, file.size()));
        fs::remove(from, problem);
    }
    if (problem) throw not_moved(to, problem);
}

// Ends what a save that was killed had begun, or does nothing.
void move_saved(const fs::path& dir) {
    std::error_code problem;
    const fs::path saved = dir / kSaved;
    if (!fs::is_directory(saved, problem)) return;
    ByNumber files;
    add_files(saved, files);
    for (const auto& [name, file] : files) move_file(file, dir / file.filename());
    sync_folder(dir);
    fs::remove(saved, problem);
    if (problem) throw not_moved(saved, problem);
}

std::string names_of(const std::vector<fs::path>& files) {
    return some_names(files, [](const fs::path& file) { return file.stem().string(); });
}

// Why this file is no earlier state of the run; empty: it is.
std::string other_run(const fs::path& file, const TrainSpec& spec) {
    const SafeTensorsIndex index = index_safetensors(RandomFile(file));
    const auto format = index.metadata.find("format");
    if (format == index.metadata.end() || !format->second.starts_with("fp8lab-checkpoint"))
        return "is no checkpoint of this program";
    for (const auto& parameter : model_plan(spec).parameters) {
        const auto there = index.tensors.find(parameter.name);
        if (there == index.tensors.end() || there->second.shape != parameter.shape)
            return "is a checkpoint of another model";
    }
    const auto task = [](const std::string& line) {  // "" in old checkpoints
        constexpr std::string_view kOption = "--task ";
        const std::size_t at = line.find(kOption);
        if (at == line.npos) return std::string();
        return line.substr(at + kOption.size(), line.find(' ', at + kOption.size()) - at - kOption.size());
    };
    const auto line = index.metadata.find("command_line");
    const std::string before = line == index.metadata.end() ? "" : task(line->second);
    return before.empty() || before == task(command_line(spec)) ? "" : "was trained on the task " + before;
}

}  // namespace

std::vector<fs::path> checkpoints_to_save(const fs::path& dir, const TrainSpec& spec) {
    std::vector<fs::path> paths;
    for (const Recipe& arm : spec.arms)
        paths.push_back(dir / fmt::format("{}-{}.safetensors", paths.size() + 1, arm.name));
    return paths;
}

std::vector<fs::path> checkpoints_to_load(const fs::path& path) {
    std::error_code none;
    if (!fs::is_directory(path, none)) return {path};
    ByNumber found;
    add_files(path, found);
    if (fs::is_directory(path / kSaved, none)) add_files(path / kSaved, found);
    std::vector<fs::path> paths;
    for (auto& [name, file] : found) paths.push_back(std::move(file));
    return paths;
}

void save_checkpoints(const fs::path& dir, const TrainSpec& spec,
                      const std::function<ArmCheckpoint(std::size_t arm)>& state, int steps_done) {
    make_folder(dir);
    move_saved(dir);
    const fs::path saving = dir / kSaving, saved = dir / kSaved;
    std::error_code problem;
    fs::remove_all(saving, problem);  // of a save that was killed
    make_folder(saving);
    const auto paths = checkpoints_to_save(dir, spec);
    for (std::size_t i = 0; i < paths.size(); ++i) {
        GrowingFile file(saving / paths[i].filename(), paths[i]);
        write_safetensors(to_safetensors(state(i), spec, steps_done),
                          [&file](std::span<const std::byte> bytes) { file.append(bytes); });
        file.keep();
    }
    fs::rename(saving, saved, problem);
    if (problem) throw not_moved(dir, problem);
    sync_folder(dir);
    move_saved(dir);
}

void check_replaceable_set(const std::string& option, const fs::path& dir, const TrainSpec& spec) {
    std::error_code none;
    if (!fs::is_directory(dir, none)) return;
    const auto there = checkpoints_to_load(dir), planned = checkpoints_to_save(dir, spec);
    std::set<std::string> names, allowed;
    for (const fs::path& file : there) names.insert(file.filename().string());
    for (const fs::path& file : planned) allowed.insert(file.filename().string());
    if (there.empty()) return;
    if (names != allowed)
        throw usage_error(option, fmt::format("{} has the checkpoints of another run, {}, and this one would "
                                              "save {}; name another folder",
                                              dir.string(), names_of(there), names_of(planned)));
    for (const fs::path& file : there)
        if (const std::string why = other_run(file, spec); !why.empty())
            throw usage_error(
                option, fmt::format("{} {} and would be replaced; name another folder", file.string(), why));
}

}  // namespace fp8lab
