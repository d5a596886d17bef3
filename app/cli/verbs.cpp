#include <array>

#include "app/cli/verb.h"

namespace fp8lab::cli {

// In the order of --help.
void add_list(CLI::App& app, Globals& globals);
void add_screenshot(CLI::App& app, Globals& globals);
void add_run(CLI::App& app, Globals& globals);
void add_train(CLI::App& app, Globals& globals);
void add_simulate(CLI::App& app, Globals& globals);

std::span<const AddVerb> verbs() {
    static constexpr std::array kVerbs = {
        add_list, add_screenshot, add_run, add_train, add_simulate,
    };
    return kVerbs;
}

}  // namespace fp8lab::cli
