// The engines that draft and mismatch are told to compare.
#pragma once

#include <string>

#include "core/inference/serve/engine.h"

namespace fp8lab::cli {

// `lower`: "weights", or "both" weights and inputs. Throws usage_error: an unknown format, or one that no input can have.
EngineSpec engine_spec(const std::string& format, const std::string& option, const std::string& lower);

}  // namespace fp8lab::cli
