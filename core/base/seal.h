// A checksum inside a JSON file: finds accidents, a line lost or a bit turned. Against intent there is
// `check`, which repeats what evidence claims.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fp8lab {

std::string fnv_hash(std::string_view text);  // FNV-1a, 64 bit, as 16 hexadecimal digits

// The object's text with a member "checksum" over all others. indent: as nlohmann's dump(), -1: one line.
std::string sealed(nlohmann::json object, int indent);

// Takes the checksum out of an object; false: it had none. Throws Error{failed}: it does not fit.
bool unseal(nlohmann::json& object, const std::string& where);

// The text back, without the checksum; an object that never had one is taken as it is. Throws
// input_error(where,
// ...): not JSON (with line and column), not an object; and as unseal().
nlohmann::json unsealed(std::string_view text, const std::string& where);

}  // namespace fp8lab
