#include "core/convert/beside.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kConfig = "config.json";

// How the names of files begin and end that are copied.
struct Pattern {
    std::string_view begins, ends;
};
constexpr std::array kCopied = {
    Pattern{"tokenizer", ""},
    Pattern{"tokenization_", ".py"},
    Pattern{"vocab", ""},
    Pattern{"merges", ".txt"},
    Pattern{"special_tokens_map", ""},
    Pattern{"added_tokens", ""},
    Pattern{"chat_template", ""},
    Pattern{"generation_config", ".json"},
    Pattern{"", "processor_config.json"},
    Pattern{"configuration_", ".py"},
    Pattern{"modeling_", ".py"},
    Pattern{"processing_", ".py"},
    Pattern{"", ".tiktoken"},
    Pattern{"spiece", ".model"},
    Pattern{"sentencepiece", ""},
    Pattern{"LICENSE", ""},
    Pattern{"LICENCE", ""},
    Pattern{"NOTICE", ""},
    Pattern{"USE_POLICY", ""},
};

bool is_file(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

std::optional<Json> config_in(const fs::path& folder) {
    const fs::path path = folder / kConfig;
    if (!is_file(path)) return std::nullopt;
    Json config = parse_json(read_text(path), path.string());
    if (!config.is_object())
        throw input_error(path.string(), "is not an object with a model's configuration");
    return config;
}

}  // namespace

std::string converted_config(const fs::path& folder, const Json& block) {
    std::optional<Json> config = config_in(folder);
    if (!config && block.is_null()) return {};
    if (!config) config = Json::object();
    const auto clean = [](Json& node) {
        for (const char* const name : {"quantization_config", "compression_config"}) node.erase(name);
    };
    clean(*config);
    if (const auto text = config->find("text_config"); text != config->end() && text->is_object())
        clean(*text);
    if (!block.is_null()) (*config)["quantization_config"] = block;
    return config->dump(2) + "\n";
}

std::string model_type_in(const fs::path& folder) {
    const std::optional<Json> config = config_in(folder);
    if (!config) return {};
    const auto type = config->find("model_type");
    return type != config->end() && type->is_string() ? type->get<std::string>() : std::string();
}

FilesBeside files_beside(const fs::path& folder) {
    FilesBeside out;
    if (!is_file(folder / kConfig)) return out;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with('.') || name == kConfig || name.ends_with(".safetensors") ||
            name.ends_with(".safetensors.index.json") || !is_file(entry.path()))
            continue;
        const bool copied = std::ranges::any_of(kCopied, [&](const Pattern& each) {
            return name.starts_with(each.begins) && name.ends_with(each.ends);
        });
        (copied ? out.copied : out.left).push_back(name);
    }
    std::ranges::sort(out.copied);
    std::ranges::sort(out.left);
    return out;
}

}  // namespace fp8lab
