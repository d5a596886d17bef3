#include "app/window/screenshot.h"

#include "app/shell/export/png.h"
#include "app/shell/shell.h"
#include "app/window/gl_window.h"
#include "core/base/error.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/threads/worker.h"
#include "labs/set_fields.h"
#include "labs/ui/fonts.h"

namespace fp8lab {
namespace {

// What a person would wait for. A training is never at rest: its figures are those of its newest step.
void wait_for(Lab& lab) {
    while (lab.busy() && !lab.live()) {
        wait_for_workers();
        lab.update();
    }
}

// On the desk, or as an audience sees it once it has voted.
void open_scene(Shell& shell, const ScreenshotOptions& options) {
    Deck deck = read_deck(find_scene(options.scene));
    const int steps = deck.scenes.front().steps;
    if (!options.present) {
        shell.open(deck.scenes.front());
        shell.lab()->update();
        return advance_told(*shell.lab(), steps, "screenshot");
    }
    shell.present(std::move(deck));
    Lecture& lecture = *shell.presentation().lecture();
    lecture.reveal();
    advance_told(lecture.lab(), steps, "screenshot");
}

void prepare(Shell& shell, const ScreenshotOptions& options) {
    shell.open(options.lab);
    if (!options.scene.empty()) open_scene(shell, options);
    if (options.tab == "explore") shell.show(Tab::explore);
    if (options.tab == "learn") shell.show(Tab::learn);
    if (options.tab == "exercises") shell.show(Tab::exercises);
    Lab* lab = shell.lab();
    if (lab == nullptr) {
        if (!options.assignments.empty())
            throw usage_error("--set", "home has no fields; name a lab with --lab");
        if (options.steps != 0) throw usage_error("--steps", "home does not train; name a lab with --lab");
        return;
    }
    set_fields(*lab, options.assignments);
    if (options.steps == 0) return;
    require_steps(*lab);
    advance_told(*lab, options.steps, "screenshot");
}

}  // namespace

void take_screenshot(const ScreenshotOptions& options) {
    ui::Context context;
    context.scale = options.scale;
    Settings settings;
    settings.theme = options.theme;
    // The controls, as cli.md says; a reader's first visit would show the lesson.
    for (const LabEntry& entry : lab_registry()) settings.tabs[std::string(entry.id)] = name_of(Tab::explore);
    ProfileFolders folders = profile_folders(options.profile);
    if (!folders.notice.empty()) tell("fp8lab: profile: " + folders.notice);
    folders.access = Access::read_only;  // a picture changes nothing
    Shell shell{context, settings, detect_machine(), folders};
    if (options.verbs) shell.add_to_manual(options.verbs);
    prepare(shell, options);
    if (Lab* lab = shell.lab()) wait_for(*lab);
    GlWindow window{{options.width, options.height}, false};
    ui::load_fonts(context);
    window.upload_fonts();
    if (!options.open.empty()) {
        window.begin_frame();  // what is opened points at controls, so they are drawn once before
        shell.frame(-1);
        window.end_frame();
        shell.open_by_name(options.open);
    }
    for (int i = 0; i < options.frames; ++i) {
        if (shell.fonts_outdated()) {
            ui::load_fonts(context);
            window.upload_fonts();
        }
        window.begin_frame();
        shell.frame(-1);  // no frame time: the same command gives the same picture
        window.end_frame();
    }
    const auto size = window.size();
    write_file(options.output, encode_png(size.width, size.height, window.pixels()));
}

}  // namespace fp8lab
