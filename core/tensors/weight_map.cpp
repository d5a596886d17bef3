#include "core/tensors/weight_map.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

bool is_own_file(const std::string& file) {
    return file.find('/') == file.npos && file.find('\\') == file.npos && file.find('\0') == file.npos &&
           file.ends_with(".safetensors");
}

// Where each name of a member begins, as it is spelt: from the member "weight_map" on, in one pass. Messages name the
// byte, which the parser does not tell.
std::unordered_map<std::string_view, std::size_t> places_of_names(std::string_view text) {
    std::unordered_map<std::string_view, std::size_t> out;
    std::size_t at = text.find("\"weight_map\"");
    while (at < text.size() && (at = text.find('"', at)) != text.npos) {
        std::size_t end = at + 1;
        while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
        if (end >= text.size()) break;
        const std::size_t next = text.find_first_not_of(" \t\r\n", end + 1);
        if (next != text.npos && text[next] == ':') out.try_emplace(text.substr(at, end + 1 - at), at);
        at = end + 1;
    }
    return out;
}

}  // namespace

WeightMap parse_weight_map(std::string_view text, const std::string& where) {
    const nlohmann::json index = parse_json(text, where);
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
        throw input_error(where, "byte 0: no index of a model: it has no object 'weight_map'");
    WeightMap map;
    const auto places = places_of_names(text);
    for (const auto& item : index["weight_map"].items()) {
        const std::string& tensor = item.key();
        const nlohmann::json& value = item.value();
        const auto place = places.find(nlohmann::json(tensor).dump());
        const std::size_t at = place == places.end() ? 0 : place->second;
        const auto fail = [&](const std::string& why) {
            return input_error(where, fmt::format("byte {}: tensor '{}': {}", at, quote_from(tensor), why));
        };
        if (!value.is_string()) throw fail("its file is not a text");
        const auto file = value.get<std::string>();
        if (!is_own_file(file))
            throw fail("'" + quote_from(file) + "' is no .safetensors in the folder of the index");
        map.files.insert(file);
        map.tensors[tensor] = {file, at};
    }
    if (map.tensors.empty()) throw input_error(where, "byte 0: the index names no tensor");
    return map;
}

}  // namespace fp8lab
