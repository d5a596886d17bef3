// Environment variables, where an empty one counts as not set.
#pragma once

#include <cstdlib>

namespace fp8lab {

// The value; null where the variable is not set or is empty.
inline const char* environment(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

}  // namespace fp8lab
