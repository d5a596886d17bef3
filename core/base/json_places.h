// Where in a JSON text each value begins: nlohmann's values do not remember it, and an error should point at
// the line. Also the gate for files that strangers send: size and depth are limited before anything is built.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace fp8lab {

struct Place {
    std::size_t line = 1, column = 1;
};

// By JSON pointer (RFC 6901): "" is the whole text, "/state/margin" a member of a member.
using JsonPlaces = std::map<std::string, Place, std::less<>>;

struct JsonLimits {
    std::size_t bytes = 8u << 20;
    int depth = 64;
};

// Throws input_error(where, ...): too large, too deep, not UTF-8, not JSON (with line and column), a member
// twice.
JsonPlaces json_places(std::string_view text, const std::string& where, JsonLimits limits = {});

// "line 12, column 5" of the pointer, or of the nearest value around it.
std::string place_text(const JsonPlaces& places, std::string_view pointer);

}  // namespace fp8lab
