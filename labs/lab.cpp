#include "labs/lab.h"

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"
#include "core/lesson/exercise.h"

namespace fp8lab {

nlohmann::json Lab::state() { return fields_to_json(fields()); }

void Lab::act(std::string_view action) {
    if (listener_) listener_(action);
    perform(action);
}

void Lab::perform(std::string_view action) {
    throw usage_error(std::string(info().id), "has no action '" + std::string(action) + "'");
}

std::span<const Exercise> Lab::exercises() const {
    if (judges().empty()) return {};
    static std::mutex mutex;  // evidence is judged on several threads
    static std::map<std::string, std::vector<Exercise>, std::less<>> read;
    const std::lock_guard lock(mutex);
    if (const auto known = read.find(info().id); known != read.end()) return known->second;
    static const auto folder = asset("exercises");
    const std::string id(info().id);
    const auto file = folder / (id + ".json");
    // The table of defaults is only read, here for its names.
    const auto fields = const_cast<Lab*>(this)->defaults();
    return read.emplace(id, parse_exercises(read_text(file), file.string(), judges(), fields)).first->second;
}

std::vector<std::string> Lab::figure_ids() const {
    std::vector<std::string> out;
    for (Figure& figure : figures()) out.push_back(std::move(figure.id));
    return out;
}

std::vector<std::string> Lab::metric_names() const {
    std::vector<std::string> out;
    for (Metric& metric : metrics()) out.push_back(std::move(metric.name));
    return out;
}

void Lab::restore(const nlohmann::json& state) { fields_from_json(fields(), state); }

}  // namespace fp8lab
