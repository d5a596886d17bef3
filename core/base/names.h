// Names in a message: a list that may be long ends with how many more there are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fp8lab {

inline constexpr std::size_t kNamesInMessage = 10;

// "1,234": for messages and tables in a terminal. group_thousands() of units.h is the window's.
inline std::string with_commas(std::size_t value) {
    std::string out = std::to_string(value);
    for (std::size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, 1, ',');
    return out;
}

// Up to ten items as "a, b, c"; of a longer list the first ten "and 99,990 more". `name_of` turns an item into a
// text; what comes from a file is quoted by it (quote_from() of read_json.h).
template <class Range, class Name>
std::string some_names(const Range& items, Name name_of, std::string_view between = ", ") {
    std::string out;
    std::size_t all = 0;
    for (const auto& item : items) {
        if (++all > kNamesInMessage) continue;
        if (all > 1) out += between;
        out += name_of(item);
    }
    if (all > kNamesInMessage) out += " and " + with_commas(all - kNamesInMessage) + " more";
    return out;
}

}  // namespace fp8lab
