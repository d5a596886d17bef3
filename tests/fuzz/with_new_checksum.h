// What a change of a kept file would be without its checksum and scene hash, which no mutation hits: the same
// with those that fit, on one line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/json/checksum.h"
#include "core/json/read_json.h"

namespace fp8lab::test {

// Empty where it is no JSON object.
inline std::string with_new_checksum(std::string_view text) {
    try {
        nlohmann::json json = parse_json(text, "anew");
        if (!json.is_object()) return {};
        if (json.contains("scene_hash") && json.contains("scene"))
            json["scene_hash"] = fnv_hash(json["scene"].dump());
        json.erase("checksum");
        return with_checksum(std::move(json), -1);
    } catch (const Error&) {
        return {};
    }
}

}  // namespace fp8lab::test
