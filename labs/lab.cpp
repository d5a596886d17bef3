#include "labs/lab.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace fp8lab {

nlohmann::json Lab::state() { return fields_to_json(fields()); }

void Lab::act(std::string_view action) {
    if (listener_) listener_(action);
    perform(action);
}

void Lab::perform(std::string_view action) {
    throw usage_error(std::string(info().id), "has no action '" + std::string(action) + "'");
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
