// What holds for the values of all options, whichever verb they belong to.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "core/base/error.h"

namespace fp8lab::cli {

// For ->check() of every option that takes a whole number: "--d: 1e3 is not in 2..4096", the sentence of
// make_train_spec(), also where no int holds the number. Throws usage_error(option, ...).
CLI::Validator whole(std::string option, long long low, long long high);
// The error for a CLI::ConversionError, for numbers that are not whole: "--lr: 'x' is not a number".
Error not_converted(const std::string& what);

// Checks the options that were given. Throws usage_error naming the option: an empty value, a number that is not
// finite.
void check_values(const CLI::App& app);

}  // namespace fp8lab::cli
