#include "app/cli/serve/engines.h"

namespace fp8lab::cli {

EngineSpec engine_spec(const std::string& format, const std::string& option, const std::string& lower) {
    const bool both = lower == "both";
    return {.format = &find_low_format(format, option, both ? RecipeList::activations : RecipeList::weights),
            .both = both};
}

}  // namespace fp8lab::cli
