// The commands. One row each; in the sheet of keys they stand in this order, under their groups.
#include "app/shell/shell.h"
#include "labs/course/scene_run.h"

namespace fp8lab {

void Shell::add_commands() {
    const auto add = [this](ShellCommand command) { commands_.push_back(std::move(command)); };
    const auto on_lab = [this] { return current() != nullptr; };
    const auto ctrl = [](ui::Key key) { return Chord{.key = key, .ctrl = true}; };

    add({.id = "home",
         .group = "Labs",
         .label = "Home",
         .chords = {ctrl(ui::Key::digit_0)},
         .run = [this] { open(""); },
         .help = "All labs, a picture of each, and your progress.",
         .control = "rail.home",
         .over = true});
    for (const Entry& entry : entries_) {
        const LabInfo& info = entry.lab->info();
        add({.id = std::string(info.id),
             .group = "Labs",
             .label = info.mark_before() + std::string(info.short_title),
             .chords = info.number >= 1 && info.number <= 9
                           ? std::vector{ctrl(ui::Key::digit_0 + info.number)}
                           : std::vector<Chord>{},
             .run = [this, id = info.id] { open(id); },
             .help = std::string(info.title),
             .control = "rail." + std::string(info.id),
             .over = true});
    }

    add({.id = "palette",
         .group = "Find and ask",
         .label = "Find anything",
         .chords = {ctrl(ui::Key::k)},
         .run = [this] { open(Sheet::palette); },
         .help = "Finds labs, exercises, terms and commands.",
         .over = true});
    add({.id = "glossary",
         .group = "Find and ask",
         .label = "Glossary",
         .chords = {ctrl(ui::Key::g)},
         .run = [this] { open(Sheet::glossary); },
         .help = "The terms of the field, some with figures.",
         .over = true});
    add({.id = "help",
         .group = "Find and ask",
         .label = "What is this?",
         .chords = {{.key = ui::Key::f1}},
         .run =
             [this] {
                 const bool on = help_.on();
                 open(Sheet::none);
                 if (!on) help_.start(context_);
             },
         .help = "Then click a control to read what it is and why it matters.",
         .over = true});
    add({.id = "keys",
         .group = "Find and ask",
         .label = "Keys and mouse",
         .chords = {{.character = '?'}},
         // A character repeats while its key is held: it opens and does not close.
         .run =
             [this] {
                 if (sheet_ != Sheet::keys) open(Sheet::keys);
             },
         .help = "Every key and every command.",
         .control = "shell.keys",
         .over = true});
    add({.id = "tour",
         .group = "Find and ask",
         .label = "Take the tour",
         .run = [this] { start_tour(); },
         .help = "Forty seconds in L1.",
         .over = true});

    add({.id = "words",
         .group = "Find and ask",
         .label = "Figures in words",
         .chords = {{.key = ui::Key::f6}},
         .run = [this] { open(Sheet::words); },
         .when = [this] { return current() != nullptr && !predicting(*current()); },
         .help = "The figures as sentences and tables, to be read aloud or copied.",
         .over = true});

    add({.id = "explore",
         .group = "Panel",
         .label = "Explore",
         .chords = {{.key = ui::Key::f2}},
         .run = [this] { show(Tab::explore); },
         .when = on_lab,
         .help = "The controls of the lab.",
         .control = "panel.Explore"});
    add({.id = "learn",
         .group = "Panel",
         .label = "Learn",
         .chords = {{.key = ui::Key::f3}},
         .run = [this] { show(Tab::learn); },
         .when = on_lab,
         .help = "The lesson, and claims of tutorials about it.",
         .control = "panel.Learn"});
    add({.id = "exercises",
         .group = "Panel",
         .label = "Exercises",
         .chords = {{.key = ui::Key::f4}},
         .run = [this] { show(Tab::exercises); },
         .when = on_lab,
         .help = "Predict first, then experiment. What passes is kept as evidence.",
         .control = "panel.Exercises"});
    add({.id = "fold",
         .group = "Panel",
         .label = "Fold or open the panel",
         .chords = {ctrl(ui::Key::b)},
         .run = [this] { toggle_panel(narrow_); },
         .when = on_lab,
         .control = "panel.fold"});
    add({.id = "reset",
         .group = "Panel",
         .label = "Reset all",
         .chords = {{.key = ui::Key::r, .ctrl = true, .shift = true}},
         .run = [this] { reset(*current()); },
         .when = on_lab,
         .help = "Sets every control of this lab to its default; in an exercise, to its start.",
         .control = "panel.reset"});
    add({.id = "reset control",
         .group = "Panel",
         .label = "Reset this control",
         .chords = {ctrl(ui::Key::r)},
         .run = [this] { reset_control(*current()); },
         .when = on_lab,
         .help = "The control with the focus ring; without a ring, those of the panel."});
    add({.id = "undo",
         .group = "Panel",
         .label = "Undo",
         .chords = {ctrl(ui::Key::z)},
         .run = [this] { travel(*current(), current()->undo.undo()); },
         .when = on_lab,
         .help = "200 steps per lab; a drag is one step. Reset all, Do it again and another file too.",
         .repeats = true});
    add({.id = "redo",
         .group = "Panel",
         .label = "Redo",
         .chords = {{.key = ui::Key::z, .ctrl = true, .shift = true}, ctrl(ui::Key::y)},
         .run = [this] { travel(*current(), current()->undo.redo()); },
         .when = on_lab,
         .repeats = true});
    add({.id = "hint",
         .group = "Panel",
         .label = "Next hint",
         .chords = {{.key = ui::Key::h}},
         .run = [this] { exercises_.next_hint(*current()->lab); },
         .when = [this] { return current() != nullptr && exercises_.has_hint(*current()->lab); },
         .help = "Three hints, each more detailed than the last. The evidence counts the opened ones.",
         .control = "panel.hint"});

    add({.id = "export",
         .group = "Panel",
         .label = "Export",
         .chords = {ctrl(ui::Key::e)},
         .run = [this] { export_.open(ExportPanel::What::figures, lab()); },
         .when = [this] { return current() == nullptr || !predicting(*current()); },
         .help = "Figures as PNG, SVG and CSV, the report, the submission to hand in.",
         .control = "panel.export"});
    add({.id = "save",
         .group = "Lecture",
         .label = "Save this scene",
         .chords = {ctrl(ui::Key::s)},
         .run = [this] { open(Sheet::scene); },
         .when = on_lab,
         .help = "The current state of the lab, as a file or as one line of text to send."});
    add({.id = "copy",
         .group = "Lecture",
         .label = "Copy this scene as text",
         .run =
             [this] {
                 ImGui::SetClipboardText(
                     scene_line(scene_of(*lab(), std::string(lab()->info().short_title), "")).c_str());
                 say("Scene copied", "Ctrl V opens it in another window");
             },
         .when = on_lab,
         .help = "The state of the lab as one line, to send to somebody."});
    add({.id = "open",
         .group = "Lecture",
         .label = "Open a scene",
         .chords = {ctrl(ui::Key::o)},
         .run =
             [this] {
                 open(Sheet::palette);
                 finds_ = scenes();
             },
         .help = "The shipped scenes and your own. Files can also be dropped on the window."});
    add({.id = "paste",
         .group = "Lecture",
         .label = "Open the copied scene",
         .chords = {ctrl(ui::Key::v)},
         .run = [this] { paste(); },
         .help = "Opens a scene that somebody sent as text."});
    add({.id = "present",
         .group = "Lecture",
         .label = "Present",
         .chords = {{.key = ui::Key::f5}, ctrl(ui::Key::p)},
         .run = [this] { present(); },
         .help = "This lab, or on home the lecture that Esc left: one sentence, one figure. Esc ends it."});

    add({.id = "theme",
         .group = "Window",
         .label = "Other theme",
         .chords = {ctrl(ui::Key::t)},
         .run = [this] { set_theme(context_.theme == Theme::light ? Theme::dark : Theme::light); },
         .help = "Light becomes dark, and any other theme light.",
         .control = "shell.theme",
         .over = true});
    for (const Theme theme : {Theme::dark, Theme::light, Theme::projector, Theme::contrast}) {
        const std::string name(to_string(theme));
        add({.id = "theme-" + name,
             .group = "Window",
             .label = "Theme: " + (theme == Theme::contrast ? "high contrast" : name),
             .run = [this, theme] { set_theme(theme); },
             .over = true});
    }
    add({.id = "larger",
         .group = "Window",
         .label = "Larger text and controls",
         .chords = {ctrl(ui::Key::equal), ctrl(ui::Key::keypad_add)},
         .run = [this] { set_scale(context_.scale + 0.25F); },
         .repeats = true,
         .over = true});
    add({.id = "smaller",
         .group = "Window",
         .label = "Smaller text and controls",
         .chords = {ctrl(ui::Key::minus), ctrl(ui::Key::keypad_subtract)},
         .run = [this] { set_scale(context_.scale - 0.25F); },
         .repeats = true,
         .over = true});
}

}  // namespace fp8lab
