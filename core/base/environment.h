// Environment variables, where an empty one counts as not set.
#pragma once

#include <cstdlib>

namespace fp8lab {

// Null where it is not set or empty.
inline const char* environment(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

}  // namespace fp8lab
