#include "core/base/read_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace fp8lab {

using Json = nlohmann::json;

Json parse_json(std::string_view text, const std::string& where) {
    const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
        if (depth >= kDeepestJson)
            throw input_error(where, fmt::format("nested deeper than {}", kDeepestJson));
        return true;
    };
    try {
        return Json::parse(text, shallow);
    } catch (const Json::exception& error) {
        throw input_error(where, error.what());
    }
}

int integer_from(const Json& json, int least, int most) {
    if (!json.is_number_integer() || json < least || json > most)
        throw input_error("", fmt::format("expected an integer from {} to {}", least, most));
    return json.get<int>();
}

std::string quote_from(std::string text) {
    constexpr std::size_t kMost = 80;
    if (text.size() <= kMost) return text;
    std::size_t end = kMost;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    return text + "\u2026";
}

}  // namespace fp8lab
