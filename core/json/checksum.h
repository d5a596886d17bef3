// A checksum inside a JSON file. It detects damage by accident, such as a lost line or a changed bit. It does
// not protect against a forgery; `fp8lab check` does, which repeats the events of the evidence.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fp8lab {

std::string fnv_hash(std::string_view text);  // FNV-1a, 64 bit, as 16 hexadecimal digits

// The object's text with a member "checksum" over all others. indent: as nlohmann's dump(), -1: one line.
std::string with_checksum(nlohmann::json object, int indent);

// Removes the checksum from an object; false: there was none. Throws Error{failed}: it is wrong.
bool take_checksum(nlohmann::json& object, const std::string& where);

// Parses the text and removes the checksum; an object without one is accepted. Throws input_error(where,
// ...): not JSON (with line and column), not an object; and as take_checksum().
nlohmann::json parse_with_checksum(std::string_view text, const std::string& where);

}  // namespace fp8lab
