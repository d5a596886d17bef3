#include "core/tensors/weight_map.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

bool is_own_file(const std::string& file) {
    return file.find('/') == file.npos && file.find('\\') == file.npos && file.find('\0') == file.npos &&
           file.ends_with(".safetensors");
}

}  // namespace

WeightMap parse_weight_map(std::string_view text, const std::string& where) {
    const nlohmann::json index = parse_json(text, where);
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
        throw input_error(where, "byte 0: no index of a model: it has no object 'weight_map'");
    WeightMap map;
    std::size_t at = 0;  // members mostly stand in the order of their names
    for (const auto& item : index["weight_map"].items()) {
        const std::string& tensor = item.key();
        const nlohmann::json& value = item.value();
        const std::string quoted = nlohmann::json(tensor).dump();
        std::size_t found = text.find(quoted, at);
        if (found == text.npos) found = text.find(quoted);
        at = found == text.npos ? 0 : found;
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
