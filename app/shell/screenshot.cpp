#include "app/shell/screenshot.h"

#include "app/shell/gl_window.h"
#include "app/shell/png.h"
#include "app/shell/shell.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "labs/ui/fonts.h"

namespace fp8lab {
namespace {

void prepare(Shell& shell, const ScreenshotOptions& options) {
    shell.open(options.lab);
    if (options.tab == "explore") shell.show(Tab::explore);
    if (options.tab == "learn") shell.show(Tab::learn);
    if (options.tab == "exercises") shell.show(Tab::exercises);
    Lab* lab = shell.lab();
    if (lab == nullptr) {
        if (!options.assignments.empty())
            throw usage_error("--set", "home has no fields; name a lab with --lab");
        return;
    }
    const auto fields = lab->fields();
    for (const std::string& assignment : options.assignments) set_field(fields, assignment);
    lab->update();
    if (options.steps > 0) lab->advance(options.steps);
}

}  // namespace

void take_screenshot(const ScreenshotOptions& options) {
    ui::Context context;
    context.scale = options.scale;
    context.reduce_motion = true;
    Settings settings;
    settings.theme = options.theme;
    Shell shell{context, settings, detect_machine(), profile_folder()};
    prepare(shell, options);
    GlWindow window{{options.width, options.height}, false};
    ui::load_fonts(context);
    window.upload_fonts();
    for (int i = 0; i < options.frames; ++i) {
        window.begin_frame();
        shell.frame(-1);  // no frame time: the same command gives the same picture
        window.end_frame();
    }
    const auto size = window.size();
    write_file(options.output, encode_png(size.width, size.height, window.pixels()));
}

}  // namespace fp8lab
