#include "app/cli/option_values.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace fp8lab::cli {

CLI::Validator whole(std::string option, long long low, long long high) {
    return CLI::Validator(
        [option = std::move(option), low, high](std::string& text) -> std::string {
            errno = 0;
            char* end = nullptr;
            // As CLI11 reads it afterwards: 0x10 is 16.
            const long long value = std::strtoll(text.c_str(), &end, 0);
            if (text.empty()) throw usage_error(option, "the value is empty");
            if (*end != '\0' || errno == ERANGE || value < low || value > high)
                throw usage_error(option, fmt::format("{} is not in {}..{}", text, low, high));
            return {};
        },
        fmt::format("{}..{}", low, high));
}

Error not_converted(const std::string& what) {
    constexpr std::string_view kSays = "Could not convert: ";
    const std::size_t is = what.find(" = ");
    if (!what.starts_with(kSays) || is == what.npos) return usage_error("usage", what);
    return usage_error(what.substr(kSays.size(), is - kSays.size()),
                       "'" + what.substr(is + 3) + "' is not a number");
}

void check_values(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        const bool takes_a_value = option->get_items_expected_min() > 0;
        if (option->count() == 0 || !takes_a_value) continue;
        const bool number = option->get_type_name().starts_with("FLOAT");
        for (const std::string& value : option->results()) {
            if (value.empty()) throw usage_error(option->get_name(), "the value is empty");
            if (number && !std::isfinite(std::strtod(value.c_str(), nullptr)))
                throw usage_error(option->get_name(), "'" + value + "' is not a finite number");
        }
    }
}

}  // namespace fp8lab::cli
