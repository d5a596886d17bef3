// fp8lab code RECIPE --for LIBRARY [-o FILE]: a recipe as Python code to take away.
#include <memory>

#include "app/cli/verb.h"
#include "core/base/names.h"
#include "core/files/files.h"
#include "core/files/outputs.h"
#include "core/python/recipe_code.h"

namespace fp8lab::cli {
namespace {

struct CodeArguments {
    std::string recipe, library, out = "-";
};

void write_code(const CodeArguments& arguments) {
    const CodeTarget& target = find_code_target(arguments.library);
    const Recipe recipe = parse_recipe(arguments.recipe, {}, "code");
    const std::string text = recipe_code(recipe, target);
    Outputs files;
    files.writes("-o", arguments.out, Holds::program);
    write_file(arguments.out, text);
}

}  // namespace

void add_code(CLI::App& app, Globals&) {
    const auto arguments = std::make_shared<CodeArguments>();
    CLI::App* verb = app.add_subcommand("code", "A recipe as Python code to take away");
    verb->add_option("recipe", arguments->recipe, "with its options, as in current:pow2=1")->required();
    verb->add_option(
            "--for", arguments->library,
            some_names(code_targets(), [](const CodeTarget& target) { return std::string(target.name); }))
        ->required();
    verb->add_option("-o", arguments->out, "the file; - is stdout, and the default");
    verb->callback([arguments] { write_code(*arguments); });
}

}  // namespace fp8lab::cli
