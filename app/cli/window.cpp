#include "app/cli/window.h"

#include "app/cli/manual/verb_pages.h"
#include "app/cli/option_values.h"
#include "core/base/error.h"
#include "core/lesson/scene.h"
#include "labs/lab.h"
#ifdef FP8LAB_GUI
#include "app/window/window.h"
#endif

namespace fp8lab::cli {

void add_window_options(CLI::App& app, WindowArguments& arguments) {
    app.add_option("--lab", arguments.lab, "opens this lab: L1, bits, ...");
    app.add_option("--scene", arguments.scene, "opens a scene: FILE.f8scene, or the name of a shipped one");
    app.add_option("--present", arguments.deck,
                   "presents a deck: FILE.f8deck, a folder of scenes, or a shipped name")
        ->expected(0, 1)
        ->default_str("lecture-fp8");
    app.add_option("--monitor", arguments.monitor, "number of the monitor to present on, from 1")
        ->check(whole("--monitor", 1, 16));
    app.add_option("--probe-file", arguments.probe_file, "writes the place of every control, as JSON")
        ->group("");
}

int open_window(const WindowArguments& arguments, const Globals& globals) {
    const std::string lab = arguments.lab.empty() ? "" : std::string(find_lab(arguments.lab).id);
#ifdef FP8LAB_GUI
    WindowOptions options;
    options.lab = lab;
    if (!arguments.scene.empty()) options.scene = read_scene(find_scene(arguments.scene));
    if (!arguments.deck.empty()) options.deck = read_deck(find_scene(arguments.deck));
    options.monitor = arguments.monitor;
    options.verbs = verbs_part;
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
