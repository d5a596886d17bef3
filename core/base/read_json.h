// JSON of files that anyone may have touched. nlohmann's copies and dump() call themselves once a level and
// its get<int>() takes any number: here both have a limit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fp8lab {

inline constexpr int kDeepestJson = 64;

// Throws input_error(where, ...): not JSON (with line and column), not UTF-8, nested deeper than
// kDeepestJson.
nlohmann::json parse_json(std::string_view text, const std::string& where);

// What one of nlohmann's messages says, without its name and number.
std::string json_reason(std::string_view message);

// Throws Error without a place: no integer, or out of range.
int integer_from(const nlohmann::json& json, int least, int most);

// What a message quotes of a file: its first 80 bytes at most, whole characters.
std::string quote_from(std::string text);

}  // namespace fp8lab
