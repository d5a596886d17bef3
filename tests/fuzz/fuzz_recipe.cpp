// Any text is either refused with a usage error or a recipe whose shortest text reads back to the same
// recipe; and any amax file is refused or holds no negative number.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/scaling/delayed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const std::string shortest = recipe_text(parse_recipe(text));
        if (recipe_text(parse_recipe(shortest)) != shortest || shortest.size() > text.size()) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) std::abort();
    }
    try {
        for (const float value : parse_amax(text, "fuzz"))
            if (std::signbit(value)) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
