// The page of `validate --report OUT.html`: one file, no script, nothing from elsewhere.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fp8lab::cli {

// `report` is what `validate --report OUT.json` writes. Every number on the page is one of it, with its exact value in the attribute
// `data-value`. Parts that are missing were ended by a signal.
std::string validation_page(const nlohmann::json& report);

}  // namespace fp8lab::cli
