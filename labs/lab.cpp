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

void Lab::restore(const nlohmann::json& state) { fields_from_json(fields(), state); }

}  // namespace fp8lab
