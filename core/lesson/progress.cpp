#include "core/lesson/progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/files/kept_file.h"
#include "core/json/checksum.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPredictions = "predictions.json";

// This includes files of which only the .bak is left.
std::set<std::string> files_of(const fs::path& folder) {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
        std::string name = entry.path().filename().string();
        if (name.starts_with('.')) continue;
        if (name.ends_with(".json.bak")) name.resize(name.size() - 4);
        if (name.ends_with(".json")) names.insert(name);
    }
    return names;
}

}  // namespace

Progress::Progress(const ProfileFolders& folders)
    : folder_(folders.data / "exercises"), access_(folders.access), why_read_only_(folders.why_read_only) {
    int others = -1;
    for (const std::string& name : files_of(folder_)) {
        bool taken = false;
        const std::string problem = load_kept(
            folder_ / name,
            [&](const std::string& text) {
                if (name == kPredictions) {
                    std::map<std::string, Prediction, std::less<>> read;
                    const auto json = parse_with_checksum(text, name);
                    for (const auto& [exercise, one] : json.items()) read[exercise] = prediction_from(one);
                    predictions_ = std::move(read);
                } else {
                    Evidence evidence = parse_evidence(text, name);
                    passed_.insert_or_assign(evidence.exercise, std::move(evidence));
                }
                taken = true;
            },
            access_);
        if (problem.empty()) continue;
        if (++others == 0) problem_ = problem;
        if (!taken) lost_ = true;
        if (taken && access_ == Access::read_only) from_previous_.insert(name);
    }
    if (others > 0) problem_ += "; and " + std::to_string(others) + " more in " + folder_.string();
}

const Evidence* Progress::passed(std::string_view exercise) const {
    const auto found = passed_.find(exercise);
    return found == passed_.end() ? nullptr : &found->second;
}

fs::path Progress::file(std::string_view exercise) const {
    const std::string name = std::string(exercise) + ".json";
    return folder_ / (from_previous_.contains(name) ? name + ".bak" : name);
}

int Progress::count(std::string_view lab) const {
    return static_cast<int>(
        std::ranges::count_if(passed_, [&](const auto& entry) { return entry.second.lab == lab; }));
}

const Prediction* Progress::prediction(std::string_view exercise) const {
    const auto found = predictions_.find(exercise);
    return found == predictions_.end() ? nullptr : &found->second;
}

void Progress::keep(const Evidence& evidence) {
    passed_.insert_or_assign(evidence.exercise, evidence);
    write(evidence.exercise + ".json");
}

void Progress::keep(std::string_view exercise, const Prediction& prediction) {
    predictions_.insert_or_assign(std::string(exercise), prediction);
    write(kPredictions);
}

std::string Progress::text_of(const std::string& name) const {
    if (name != kPredictions) return evidence_text(passed_.at(name.substr(0, name.size() - 5)));
    auto json = nlohmann::json::object();
    for (const auto& [exercise, one] : predictions_) json[exercise] = to_json(one);
    return with_checksum(std::move(json), 1);
}

void Progress::write(const std::string& name) {
    if (access_ == Access::read_only) throw Error{ErrorKind::failed, "profile", why_read_only_};
    unsaved_.insert(name);
    make_folder(folder_);
    save_kept(folder_ / name, text_of(name));
    unsaved_.erase(name);
}

bool Progress::retry() {
    const auto waiting = unsaved_;
    try {
        for (const std::string& name : waiting) write(name);
    } catch (const Error&) {
        return false;
    }
    return true;
}

}  // namespace fp8lab
