#include "labs/memory/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/json/read_json.h"
#include "labs/memory/model.h"

namespace fp8lab::memory {
namespace {

using Json = nlohmann::json;

// A size under its field's name, and its names in config.json.
struct Size {
    std::string_view field;
    std::array<std::string_view, 2> names;
};
constexpr std::array kSizes = {Size{"layers", {"num_hidden_layers", "n_layer"}},
                               Size{"hidden", {"hidden_size", "n_embd"}},
                               Size{"ffn", {"intermediate_size", "n_inner"}},
                               Size{"heads", {"num_attention_heads", "n_head"}},
                               Size{"kv_heads", {"num_key_value_heads", "num_key_value_heads"}},
                               Size{"vocab", {"vocab_size", "vocab_size"}}};

class Config {
  public:
    Config(const Json& json, const std::string& where) : json_(json), where_(where) {
        if (!json.is_object()) throw input_error(where, "is not an object with a model's sizes");
    }
    const Json* find(std::string_view name) const {
        const auto found = json_.find(name);
        return found == json_.end() || found->is_null() ? nullptr : &*found;
    }
    bool truth(std::string_view name, bool otherwise) const {
        const Json* value = find(name);
        return value && value->is_boolean() ? value->get<bool>() : otherwise;
    }
    std::optional<int> number(const Size& size, const Field& field) const {
        for (const std::string_view name : size.names) {
            const Json* value = find(name);
            if (!value) continue;
            try {
                return integer_from(*value, static_cast<int>(field.min), static_cast<int>(field.max));
            } catch (const Error& error) {
                throw input_error(where_, fmt::format("'{}' {}", name, error.why()));
            }
        }
        return std::nullopt;
    }
    [[noreturn]] void refuse(const std::string& why) const { throw input_error(where_, why); }

  private:
    const Json& json_;
    const std::string& where_;
};

}  // namespace

std::vector<std::string> fields_of_config(std::string_view text, const std::string& where) {
    const Json json = parse_json(text, where);
    const Config config(json, where);
    for (const std::string_view experts : {"num_local_experts", "num_experts", "n_routed_experts"})
        if (config.find(experts))
            config.refuse(
                fmt::format("'{}': a mixture of experts; the calculator has dense models only", experts));
    const bool gpt = config.find("n_embd") != nullptr;
    MemoryLab lab;
    const std::vector<Field> fields = lab.fields();
    std::vector<std::string> out = {"model=own", gpt ? "kind=gpt" : "kind=llama"};
    int hidden = 0, heads = 0;
    for (const Size& size : kSizes) {
        std::optional<int> number = config.number(size, *find_field(fields, size.field));
        constexpr int kGptRatio = 4;  // of n_inner where it is null
        if (!number && size.field == "ffn" && gpt) number = kGptRatio * hidden;
        if (!number && size.field == "kv_heads") number = heads;
        if (!number) config.refuse(fmt::format("'{}' is missing", size.names[gpt ? 1 : 0]));
        if (size.field == "hidden") hidden = *number;
        if (size.field == "heads") heads = *number;
        if (size.field == "kv_heads" && heads % *number != 0)
            config.refuse(fmt::format("{} KV heads do not divide {} heads", *number, heads));
        out.push_back(fmt::format("{}={}", size.field, *number));
    }
    if (hidden % heads != 0)
        config.refuse(fmt::format("{} heads do not divide a hidden size of {}", heads, hidden));
    if (const Json* size = config.find("head_dim"); size && *size != hidden / heads)
        config.refuse(fmt::format("'head_dim' is not {}, hidden size over heads; the calculator has no other",
                                  hidden / heads));
    // Hugging Face ties embedding and head of GPT-2, and the GPT kind has one of them anyway.
    if (!gpt && config.truth("tie_word_embeddings", false)) out.emplace_back("tied=on");
    return out;
}

}  // namespace fp8lab::memory
