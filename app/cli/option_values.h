// What holds for the values of all options, whichever verb they belong to.
#pragma once

#include <CLI/CLI.hpp>

namespace fp8lab::cli {

// Of the options that were given. Throws usage_error naming the option: an empty value, a number that is not
// finite.
void check_values(const CLI::App& app);

}  // namespace fp8lab::cli
