#include "core/json/checksum.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {

using Json = nlohmann::json;

std::string fnv_hash(std::string_view text) {
    std::uint64_t h = 0xCBF29CE484222325ULL;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    return fmt::format("{:016x}", h);
}

std::string with_checksum(Json object, int indent) {
    object["checksum"] = fnv_hash(object.dump());
    return object.dump(indent) + "\n";
}

bool take_checksum(Json& object, const std::string& where) {
    const auto found = object.find("checksum");
    if (found == object.end()) return false;
    const Json checksum = *found;
    object.erase(found);
    if (checksum != fnv_hash(object.dump()))
        throw Error(ErrorKind::failed, where, "was changed: its checksum does not fit");
    return true;
}

Json parse_with_checksum(std::string_view text, const std::string& where) {
    Json object = parse_json(text, where);
    if (!object.is_object()) throw input_error(where, "is no JSON object");
    take_checksum(object, where);
    return object;
}

}  // namespace fp8lab
