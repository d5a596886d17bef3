// A condition's words in earlier versions, and today's: evidence with the earlier ones stands as it did.
#pragma once

#include <span>
#include <string_view>

namespace fp8lab {

struct Reworded {
    std::string_view was, now;
    bool same_values = true;  // false: the judge shows other values beside it today
};
std::span<const Reworded> rewordings();

}  // namespace fp8lab
