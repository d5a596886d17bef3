// What a config.json says of a model: its sizes by name, with what transformers takes where the config leaves them out.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/plan/architecture.h"

namespace fp8lab::plan {

inline constexpr int kMostOfSize = 1 << 24, kMostLayers = 4096;

// A size and its names: GPT-2 has names of its own.
struct SizeName {
    std::string_view usual, gpt2 = {};
};

// Refers to its JSON and to `where`. All functions throw input_error(where).
class ModelConfig {
  public:
    ModelConfig(const nlohmann::json& json, const std::string& where);  // throws: it is no object
    // JSON: what the config has not is as in transformers' configuration of that model_type. A null is no size.
    void set_defaults(std::string_view json);
    const nlohmann::json* find(std::string_view name) const;  // null: neither has it
    bool truth(std::string_view name, bool otherwise) const;
    bool has(const Bias& bias) const;
    // 0 is a size where `least` says so: a model without dense layers at its start.
    std::optional<int> maybe(SizeName name, int least = 1, int most = kMostOfSize) const;
    int number(SizeName name, int least = 1, int most = kMostOfSize) const;  // throws: it is missing
    std::string name_of(SizeName name) const;  // the one that the config has; the usual one where it has none
    [[noreturn]] void refuse(const std::string& why) const;

  private:
    const nlohmann::json& json_;
    const std::string& where_;
    nlohmann::json defaults_ = nlohmann::json::object();
};

// The part of a config.json about language, with its model_type.
nlohmann::json language_part(const nlohmann::json& json);
// Throws: the model_type is missing, not known, or its layers are not counted.
const Architecture& architecture_of(const ModelConfig& config);

}  // namespace fp8lab::plan
