// A lab's result as the JSON of `run`, for every verb that opens a lab.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "labs/lab.h"

namespace fp8lab::cli {

// Header, "lab", "state", "seed" and "metrics", of the last update().
nlohmann::json lab_json(Lab& lab);

}  // namespace fp8lab::cli
