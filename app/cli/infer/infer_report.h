// What `infer` prints: one JSON, or the same as a table or CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/inference/mixes.h"

namespace fp8lab::cli {

nlohmann::json finite_or_null(double value);  // JSON has no word for Inf and NaN

// The frontier of all mixes and the neighbours of one of them.
nlohmann::json mixes_json(const AllMixes& all, double bits, double divergence);
nlohmann::json greedy_json(const std::vector<GreedyStep>& path);
// A row per layer; with all mixes a row per mix, with the greedy path a row per step.
std::string infer_csv(const nlohmann::json& out, const std::optional<AllMixes>& all);
std::string infer_table(const nlohmann::json& out);

}  // namespace fp8lab::cli
