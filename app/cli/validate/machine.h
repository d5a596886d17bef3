// What doctor and validate --report say of this machine.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace fp8lab::cli {

nlohmann::json cpu_facts();  // name, threads, vector_targets
// usable, and reason, or name, facts and modes: the FP8 scale modes, each tried, with its refusal.
nlohmann::json gpu_facts();

}  // namespace fp8lab::cli
