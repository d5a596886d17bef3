// The values of an enumeration by the names that options and files have for them: one table for both ways.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace fp8lab {

template <class Enum>
struct Named {
    Enum value;
    std::string_view name;
};
template <class Enum>
Named(Enum, std::string_view) -> Named<Enum>;  // clang 16 does not deduce it by itself

// Throws usage_error "unknown WHAT 'TEXT'; valid: ..." of `where`.
template <class Rows>
auto parse_named(const Rows& rows, std::string_view what, std::string_view text, std::string_view where) {
    const auto row = std::ranges::find_if(rows, [&](const auto& r) { return r.name == text; });
    if (row == rows.end())
        throw unknown_name(std::string(where), what, text, rows, [](const auto& r) { return r.name; });
    return row->value;
}

// `value` must have a row.
template <class Rows, class Enum>
std::string_view name_in(const Rows& rows, Enum value) {
    return std::ranges::find_if(rows, [&](const auto& r) { return r.value == value; })->name;
}

}  // namespace fp8lab
