#include "core/plan/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab::plan {
namespace {

using Json = nlohmann::json;

std::string known_types() {
    std::vector<std::string_view> out;
    for (const Architecture& row : architectures()) out.push_back(row.type);
    return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace

ModelConfig::ModelConfig(const Json& json, const std::string& where) : json_(json), where_(where) {
    if (!json.is_object()) refuse("is not an object with a model's sizes");
}

void ModelConfig::set_defaults(std::string_view json) {
    if (!json.empty()) defaults_ = Json::parse(json);
}

const Json* ModelConfig::find(std::string_view name) const {
    for (const Json* json : {&json_, &defaults_})
        if (const auto found = json->find(name); found != json->end())
            return found->is_null() ? nullptr : &*found;
    return nullptr;
}

bool ModelConfig::truth(std::string_view name, bool otherwise) const {
    const Json* value = find(name);
    return value && value->is_boolean() ? value->get<bool>() : otherwise;
}

bool ModelConfig::has(const Bias& bias) const {
    return bias.where != Bias::none && (bias.key.empty() || truth(bias.key, bias.otherwise));
}

std::optional<int> ModelConfig::maybe(SizeName name, int least, int most) const {
    for (const std::string_view one : {name.usual, name.gpt2}) {
        const Json* value = one.empty() ? nullptr : find(one);
        if (!value) continue;
        try {
            return integer_from(*value, least, most);
        } catch (const Error& error) {
            refuse(fmt::format("'{}' {}", one, error.why()));
        }
    }
    return std::nullopt;
}

int ModelConfig::number(SizeName name, int least, int most) const {
    const auto value = maybe(name, least, most);
    if (!value) refuse(fmt::format("'{}' is missing", name.usual));
    return *value;
}

std::string ModelConfig::name_of(SizeName name) const {
    return std::string(!find(name.usual) && !name.gpt2.empty() && find(name.gpt2) ? name.gpt2 : name.usual);
}

void ModelConfig::refuse(const std::string& why) const { throw input_error(where_, why); }

Json language_part(const Json& json) {
    if (!json.is_object() || !json.contains("text_config") || !json["text_config"].is_object()) return json;
    Json inner = json["text_config"];
    // Gemma 3's inner config does not always name its type; Qwen3-VL's language part is a Qwen3.
    const auto type = [](const Json& of) {
        const auto found = of.find("model_type");
        return found != of.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    if (type(inner).empty() && type(json) == "gemma3") inner["model_type"] = "gemma3_text";
    if (type(inner) == "qwen3_vl_text") inner["model_type"] = "qwen3";
    if (!why_refused(type(json)).empty()) inner["model_type"] = type(json);
    if (!inner.contains("tie_word_embeddings") && json.contains("tie_word_embeddings"))
        inner["tie_word_embeddings"] = json["tie_word_embeddings"];
    return inner;
}

const Architecture& architecture_of(const ModelConfig& config) {
    const Json* type = config.find("model_type");
    if (!type || !type->is_string())
        config.refuse("'model_type' is missing: parameters are not guessed; known: " + known_types());
    const auto name = type->get<std::string>();
    if (const std::string_view why = why_refused(name); !why.empty())
        config.refuse(fmt::format("model_type '{}' is not counted: {}", name, why));
    const Architecture* row = find_architecture(name);
    if (!row)
        config.refuse(fmt::format("model_type '{}' is not known: parameters are not guessed; known: {}",
                                  quote_from(name), known_types()));
    return *row;
}

}  // namespace fp8lab::plan
