#include "labs/lab.h"

#include <nlohmann/json.hpp>

namespace fp8lab {

nlohmann::json Lab::state() { return fields_to_json(fields()); }

void Lab::restore(const nlohmann::json& state) { fields_from_json(fields(), state); }

}  // namespace fp8lab
