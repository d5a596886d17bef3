#include "core/json/read_json.h"

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
        throw input_error(where, json_reason(error.what()));
    }
}

std::string json_reason(std::string_view message) {
    const std::size_t end = message.starts_with("[json.exception.") ? message.find("] ") : message.npos;
    std::string reason(end == message.npos ? message : message.substr(end + 2));
    // "parse error at line 1, column 2: syntax error while ...": the place first, as elsewhere.
    constexpr std::string_view kParse = "parse error at ";
    return reason.starts_with(kParse) ? reason.substr(kParse.size()) : reason;
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
