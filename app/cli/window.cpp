#include "app/cli/window.h"

#include "core/base/error.h"
#include "labs/lab.h"
#ifdef FP8LAB_GUI
#include "app/shell/window.h"
#endif

namespace fp8lab::cli {

void add_window_options(CLI::App& app, WindowArguments& arguments) {
    app.add_option("--lab", arguments.lab, "opens on this lab: L1, bits, ...");
    app.add_option("--probe-file", arguments.probe_file, "writes where every control is, as JSON")->group("");
}

int open_window(const WindowArguments& arguments, const Globals& globals) {
    const std::string lab = arguments.lab.empty() ? "" : std::string(find_lab(arguments.lab).id);
#ifdef FP8LAB_GUI
    WindowOptions options;
    options.lab = lab;
    options.probe_file = arguments.probe_file;
    options.profile = globals.profile;
    options.trace_startup = globals.trace_startup;
    return run_window(options);
#else
    static_cast<void>(globals);
    throw Error(ErrorKind::failed, "window",
                "this build has no window (FP8LAB_GUI=OFF); see fp8lab --help for what it does");
#endif
}

}  // namespace fp8lab::cli
