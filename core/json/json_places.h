// The line and column of each value of a JSON text, which nlohmann's values do not keep and error messages
// need. Also checks the size and depth of files from outside before any value is built.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "core/json/read_json.h"

namespace fp8lab {

struct Place {
    std::size_t line = 1, column = 1;
};

// The keys are JSON pointers (RFC 6901): "" is the whole text, "/state/margin" a member of a member.
using JsonPlaces = std::map<std::string, Place, std::less<>>;

struct JsonLimits {
    std::size_t bytes = 8u << 20;
    int depth = kDeepestJson;
    std::size_t values = 1'000'000;  // each takes some 100 bytes in memory
};

// Values below a member whose name has kilobytes get no place of their own. Throws input_error(where, ...):
// too large, too deep, too many values, not UTF-8, not JSON (with line and column), a repeated member.
JsonPlaces json_places(std::string_view text, const std::string& where, JsonLimits limits = {});

// "line 12, column 5" of the pointer, or of the nearest value around it.
std::string place_text(const JsonPlaces& places, std::string_view pointer);

}  // namespace fp8lab
