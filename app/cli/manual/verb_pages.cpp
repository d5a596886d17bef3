#include "app/cli/manual/verb_pages.h"

#include <fmt/format.h>

#include "app/cli/verb.h"
#include "labs/course/manual.h"

namespace fp8lab::cli {
namespace {

std::string option_line(const CLI::Option& option) {
    std::string out = fmt::format("- `{}`", option.get_name(option.get_positional(), true));
    if (option.get_required()) out += ", needed";
    out += ": " + plain_markdown(option.get_description());
    if (!option.get_default_str().empty()) out += fmt::format(" (`{}`)", option.get_default_str());
    return out + "\n";
}

ManualPage verb_page(const CLI::App& verb) {
    std::string text =
        fmt::format("# {}\n\n{}.\n\n", verb.get_name(), plain_markdown(verb.get_description()));
    for (const CLI::Option* option : verb.get_options())
        if (option->get_name() != "--help") text += option_line(*option);
    text += fmt::format("\n`fp8lab {} --help` prints the same.\n", verb.get_name());
    return {"verbs/" + verb.get_name(), verb.get_name(), text};
}

}  // namespace

ManualPart verbs_part() {
    CLI::App app;
    Globals globals;
    for (const AddVerb add : verbs()) add(app, globals);
    ManualPart part{"verbs", "Verbs", "The command line, from the program's own table of options.", {}};
    for (const CLI::App* verb : app.get_subcommands({})) part.pages.push_back(verb_page(*verb));
    return part;
}

}  // namespace fp8lab::cli
