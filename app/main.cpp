// fp8lab: the window and the command line. Every failure is one line on stderr and an exit code
// (app/cli/ending.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "app/cli/ending.h"
#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "app/cli/window.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/threads/parallel.h"

namespace {

using namespace fp8lab;

// One line, whatever the library that refused the options put into its message.
std::string first_line(std::string text) {
    text.erase(std::min(text.find('\n'), text.size()));
    return text;
}

// --help, --version.
int print_answer(const CLI::App& app, const CLI::ParseError& asked) {
    std::ostringstream out, err;
    const int code = app.exit(asked, out, err);
    fmt::print("{}", out.str());
    return code;
}

// `doing`: the verb, once it is known.
int run(int argc, char** argv, std::string& doing) {
    CLI::App app{"FP8 Lab: find out by experiment how 8-bit floats work and when training in them works.",
                 "fp8lab"};
    cli::Globals globals;
    app.set_version_flag("--version", "fp8lab " FP8LAB_VERSION);
    app.add_option("--threads", globals.threads, "threads for computation (default: the machine's cores)")
        ->check(cli::whole("--threads", 1, 1024));
    app.add_option("--device", globals.device, "GPU number")->check(cli::whole("--device", 0, 63));
    app.add_flag("--trace-startup", globals.trace_startup, "print how the time to the first frame was spent");
    app.add_option("--profile", globals.profile, "folder for settings and progress");
    app.require_subcommand(0, 1);
    app.fallthrough();  // the global options may follow the verb
    for (const cli::AddVerb add : cli::verbs()) add(app, globals);
    for (CLI::App* verb : app.get_subcommands({})) verb->fallthrough();  // `train --threads 1` as well
    app.footer(cli::exit_codes());  // after the verbs, which would take it over
    cli::WindowArguments window;
    cli::add_window_options(app, window);
    app.parse_complete_callback([&] {
        const auto parsed = app.get_subcommands();
        doing = parsed.empty() ? "window" : parsed.front()->get_name();
        handle_end_signals(doing);
        cli::check_values(app);
        for (const CLI::App* verb : parsed) cli::check_values(*verb);
        if (!parsed.empty() && !window.lab.empty())
            throw usage_error(parsed.front()->get_name(), "takes no --lab: it is the window's");
        cli::check_profile(globals);
        if (globals.threads > 0) set_threads(globals.threads);
        set_gpu(globals.device);
    });
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return print_answer(app, error);
        if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ConversionError))
            throw cli::not_converted(first_line(error.what()));
        const auto parsed = app.get_subcommands();
        const auto rest = app.remaining();
        if (parsed.empty() && !rest.empty() && !rest.front().starts_with("-"))
            throw unknown_name("usage", "verb", rest.front(), app.get_subcommands({}),
                               [](const CLI::App* verb) { return verb->get_name(); });
        throw usage_error(parsed.empty() ? "usage" : parsed.front()->get_name(), first_line(error.what()));
    }
    if (app.get_subcommands().empty()) return cli::open_window(window, globals);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    prepare_streams();
    handle_end_signals("");
    std::string doing = "usage";
    return cli::to_the_end([&] { return run(argc, argv, doing); }, doing);
}
