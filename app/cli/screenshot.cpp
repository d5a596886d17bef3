// fp8lab screenshot: the real window, drawn hidden, as a PNG.
#include "app/cli/manual/verb_pages.h"
#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/files/outputs.h"
#include "labs/lab.h"
#ifdef FP8LAB_GUI
#include "app/window/screenshot.h"
#endif

namespace fp8lab::cli {

#ifdef FP8LAB_GUI

namespace {

struct Arguments {
    std::string lab = "home", tab, theme = "dark", size = "1440x900";
    ScreenshotOptions options;
};

void parse_size(const std::string& text, ScreenshotOptions& options) {
    constexpr int kSmallest = 320, kLargest = 7680;
    char times = 0;
    char rest = 0;
    const int read = std::sscanf(text.c_str(), "%5d%c%5d%c", &options.width, &times, &options.height, &rest);
    const bool shaped = read == 3 && times == 'x';
    const auto in_range = [](int px) { return px >= kSmallest && px <= kLargest; };
    if (!shaped || !in_range(options.width) || !in_range(options.height)) {
        throw usage_error("--size", "'" + text + "' is not WIDTHxHEIGHT with both from 320 to 7680");
    }
}

void shoot(Arguments arguments) {
    ScreenshotOptions& options = arguments.options;
    if (arguments.lab != "home") options.lab = find_lab(arguments.lab).id;
    options.theme = parse_theme(arguments.theme);
    parse_size(arguments.size, options);
    options.tab = arguments.tab;
    options.verbs = verbs_part;
    if (options.present && options.scene.empty()) throw usage_error("--present", "needs a --scene");
    Outputs files;
    if (!options.scene.empty()) files.reads(options.scene);
    files.writes("-o", options.output, Holds::picture);
    take_screenshot(options);
}

}  // namespace

void add_screenshot(CLI::App& app, Globals& globals) {
    const auto arguments = std::make_shared<Arguments>();
    ScreenshotOptions& options = arguments->options;
    CLI::App* verb = app.add_subcommand("screenshot", "The real window, drawn hidden, as a PNG");
    verb->add_option("--lab", arguments->lab, "home, or a lab's number or word")->capture_default_str();
    verb->add_option("--tab", arguments->tab, "tab of the panel")
        ->check(CLI::IsMember({"explore", "learn", "exercises"}));
    verb->add_option("--scene", options.scene, "a scene: FILE.f8scene, or the name of a shipped one");
    verb->add_flag("--present", options.present, "the scene as presentation shows it");
    verb->add_option("--set", options.assignments, "FIELD=VALUE of the lab; may be repeated");
    verb->add_option("--open", options.open,
                     "palette, keys, glossary[:TERM], manual[:PAGE], words, help:CONTROL or tour over it")
        ->group("");
    verb->add_option("--steps", options.steps, "steps of a training lab")
        ->check(whole("--steps", 0, 10'000'000));
    verb->add_option("--theme", arguments->theme, "dark, light, projector or contrast")
        ->capture_default_str();
    verb->add_option("--size", arguments->size, "WIDTHxHEIGHT in pixels")->capture_default_str();
    verb->add_option("--scale", options.scale, "scale of text and controls")
        ->check(CLI::Range(0.75, 3.0))
        ->capture_default_str();
    verb->add_option("--frames", options.frames, "drawn before the picture is taken")
        ->check(whole("--frames", 3, 1000))
        ->capture_default_str();
    verb->add_option("-o", options.output, "PNG file; - is stdout")->required();
    verb->callback([arguments, &globals] {
        arguments->options.profile = globals.profile;
        shoot(*arguments);
    });
}

#else

void add_screenshot(CLI::App& app, Globals&) {
    CLI::App* verb = app.add_subcommand("screenshot", "Not in this build: it has no window (FP8LAB_GUI=OFF)");
    verb->allow_extras();
    verb->callback([] {
        throw Error{ErrorKind::failed, "screenshot", "this build has no window (FP8LAB_GUI=OFF)"};
    });
}

#endif

}  // namespace fp8lab::cli
