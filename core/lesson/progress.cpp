#include "core/lesson/progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPredictions = "predictions.json";

}  // namespace

Progress::Progress(fs::path profile_folder) : folder_(std::move(profile_folder) / "exercises") {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_, none)) {
        if (entry.path().extension() != ".json" || entry.path().filename().string().starts_with('.'))
            continue;
        try {
            read(entry.path());
        } catch (const std::exception&) {  // whatever is wrong with it, the window opens
            const std::string name = entry.path().filename().string();
            fs::rename(entry.path(), entry.path().string() + ".bak", none);
            problem_ = "exercises/" + name + " is unreadable; kept as " + name + ".bak";
        }
    }
}

void Progress::read(const fs::path& file) {
    const std::string text = read_text(file);
    if (file.filename() != kPredictions) {
        Evidence evidence = parse_evidence(text, file.string());
        passed_.insert_or_assign(evidence.exercise, std::move(evidence));
        return;
    }
    const auto json = nlohmann::json::parse(text);
    for (const auto& [exercise, one] : json.items())
        predictions_[exercise] = {.skipped = one.at("skipped").get<bool>(),
                                  .values = one.at("values").get<std::vector<double>>(),
                                  .at = one.at("at").get<std::string>()};
}

const Evidence* Progress::passed(std::string_view exercise) const {
    const auto found = passed_.find(exercise);
    return found == passed_.end() ? nullptr : &found->second;
}

fs::path Progress::file(std::string_view exercise) const {
    return folder_ / (std::string(exercise) + ".json");
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
    std::error_code problem;
    fs::create_directories(folder_, problem);
    if (problem) throw Error{ErrorKind::failed, folder_.string(), problem.message()};
    write_file(file(evidence.exercise), evidence_text(evidence));
}

void Progress::keep(std::string_view exercise, const Prediction& prediction) {
    predictions_.insert_or_assign(std::string(exercise), prediction);
    std::error_code problem;
    fs::create_directories(folder_, problem);
    if (problem) throw Error{ErrorKind::failed, folder_.string(), problem.message()};
    auto json = nlohmann::json::object();
    for (const auto& [name, one] : predictions_)
        json[name] = {{"skipped", one.skipped}, {"values", one.values}, {"at", one.at}};
    write_file(folder_ / kPredictions, json.dump(1) + "\n");
}

}  // namespace fp8lab
