// Reading JSON that may have been edited by anyone. nlohmann's copies and dump() recurse once per level, and
// its get<int>() accepts any number: here depth and range are limited.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fp8lab {

inline constexpr int kDeepestJson = 64;

// Throws input_error(where, ...): not JSON (with line and column), not UTF-8, nested deeper than
// kDeepestJson.
nlohmann::json parse_json(std::string_view text, const std::string& where);

// The text of one of nlohmann's messages without the name and number of the exception.
std::string json_reason(std::string_view message);

// Throws Error with an empty `where`: not an integer, or out of range.
int integer_from(const nlohmann::json& json, int least, int most);

// The part of a text that a message quotes: at most 80 bytes, whole characters.
std::string quote_from(std::string text);

}  // namespace fp8lab
