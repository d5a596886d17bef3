#include "app/cli/option_values.h"

#include <cmath>
#include <cstdlib>

#include "core/base/error.h"

namespace fp8lab::cli {

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
