// The commands. One row each; in the sheet of keys they stand in this order, under their groups.
#include "app/shell/parts.h"

namespace fp8lab {
namespace {

using ui::Key;
struct Group {
    static constexpr const char *labs = "Labs", *find = "Find and ask", *panel = "Panel",
                                *lecture = "Lecture", *window = "Window";
};
constexpr Chord kNoKey = {}, kQuestionMark = {.character = '?'};
constexpr Chord plain(Key key) { return {.key = key}; }
constexpr Chord ctrl(Key key) { return {.key = key, .ctrl = true}; }
constexpr Chord ctrl_shift(Key key) { return {.key = key, .ctrl = true, .shift = true}; }
constexpr unsigned kOver = 1, kRepeats = 2;  // also over a sheet; while the key is held

// What the rows do.
struct Do {
    static void home(Parts& p) { p.labs.open(""); }
    static void palette(Parts& p) { p.over.open(Sheet::palette); }
    static void glossary(Parts& p) { p.over.open(Sheet::glossary); }
    static void manual(Parts& p) { p.over.open(Sheet::manual); }
    static void help(Parts& p) { p.over.toggle_help(); }
    static void keys(Parts& p) {  // a character repeats while its key is held: it opens and does not close
        if (p.over.sheet() != Sheet::keys) p.over.open(Sheet::keys);
    }
    static void tour(Parts& p) { p.over.start_tour(); }
    static void words(Parts& p) { p.over.open(Sheet::words); }
    static void explore(Parts& p) { p.labs.show(Tab::explore); }
    static void learn(Parts& p) {
        p.labs.current() != nullptr ? p.labs.show(Tab::learn) : p.over.open(Sheet::manual);
    }
    static void exercises(Parts& p) { p.labs.show(Tab::exercises); }
    static void fold(Parts& p) { p.labs.toggle_panel(); }
    static void reset(Parts& p) { p.past.reset(*p.labs.current()); }
    static void reset_control(Parts& p) { p.past.reset_control(*p.labs.current()); }
    static void undo(Parts& p) { p.past.undo(*p.labs.current()); }
    static void redo(Parts& p) { p.past.redo(*p.labs.current()); }
    static void hint(Parts& p) { p.exercises.next_hint(*p.labs.lab()); }
    static void export_figures(Parts& p) { p.over.export_files(ExportPanel::What::figures, p.labs.lab()); }
    static void save(Parts& p) { p.over.open(Sheet::scene); }
    static void copy(Parts& p) { p.scenes.copy(); }
    static void open_files(Parts& p) { p.common.host.ask_for_files(); }
    static void copy_link(Parts& p) { p.scenes.copy_link(); }
    static void open(Parts& p) { p.over.find_among(p.scenes.finds()); }
    static void paste(Parts& p) { p.scenes.paste(); }
    static void present(Parts& p) { p.scenes.present(); }
    static void theme(Parts& p) {
        p.common.set_theme(p.common.context.theme == Theme::light ? Theme::dark : Theme::light);
    }
    static void larger(Parts& p) { p.common.set_scale(p.common.context.scale + 0.25F); }
    static void smaller(Parts& p) { p.common.set_scale(p.common.context.scale - 0.25F); }
};
// When they apply.
struct When {
    static bool always(Parts&) { return true; }
    static bool on_lab(Parts& p) { return p.labs.current() != nullptr; }
    static bool no_prediction(Parts& p) { return !on_lab(p) || !p.labs.predicting(*p.labs.current()); }
    static bool on_lab_used(Parts& p) { return on_lab(p) && no_prediction(p); }
    static bool has_link(Parts& p) { return on_lab(p) && p.common.host.link != nullptr; }
    static bool asks_for_files(Parts& p) { return p.common.host.ask_for_files != nullptr; }
    static bool hinted(Parts& p) { return on_lab(p) && p.exercises.has_hint(*p.labs.lab()); }
};

// As in ShellCommand.
struct Row {
    const char *id, *group, *label, *help, *control;
    void (*run)(Parts& parts);
    bool (*when)(Parts& parts);
    Chord first, second;
    unsigned is;
};
constexpr Row kRows[] = {
    {"home", Group::labs, "Home", "All labs, a picture of each, and your progress.", "rail.home", Do::home,
     When::always, ctrl(Key::digit_0), kNoKey, kOver},
    {"palette", Group::find, "Find anything", "Finds labs, exercises, terms and commands.", "", Do::palette,
     When::always, ctrl(Key::k), kNoKey, kOver},
    {"glossary", Group::find, "Glossary", "The terms of the field, some with figures.", "", Do::glossary,
     When::always, ctrl(Key::g), kNoKey, kOver},
    {"manual", Group::find, "Manual", "Tutorials, answers to questions, why each recipe exists, every verb.",
     "shell.manual", Do::manual, When::always, plain(Key::f7), kNoKey, kOver},
    {"help", Group::find, "What is this?", "Then click a control to read what it is and why it matters.", "",
     Do::help, When::always, plain(Key::f1), kNoKey, kOver},
    {"keys", Group::find, "Keys and mouse", "Every key and every command.", "shell.keys", Do::keys,
     When::always, kQuestionMark, kNoKey, kOver},
    {"tour", Group::find, "Take the tour", "Forty seconds in L1.", "", Do::tour, When::always, kNoKey, kNoKey,
     kOver},
    {"words", Group::find, "Figures in words",
     "The figures as sentences and tables, to be read aloud or copied.", "", Do::words, When::on_lab_used,
     plain(Key::f6), kNoKey, kOver},
    {"explore", Group::panel, "Explore", "The controls of the lab.", "panel.Explore", Do::explore,
     When::on_lab, plain(Key::f2), kNoKey, 0},
    {"learn", Group::panel, "Learn", "The lesson, and claims of tutorials about it; on home the manual.",
     "panel.Learn", Do::learn, When::always, plain(Key::f3), kNoKey, 0},
    {"exercises", Group::panel, "Exercises",
     "Predict first, then experiment. What passes is kept as evidence.", "panel.Exercises", Do::exercises,
     When::on_lab, plain(Key::f4), kNoKey, 0},
    {"fold", Group::panel, "Fold or open the panel", "", "panel.fold", Do::fold, When::on_lab, ctrl(Key::b),
     kNoKey, 0},
    {"reset", Group::panel, "Reset all",
     "Sets every control of this lab to its default; in an exercise, to its start.", "panel.reset", Do::reset,
     When::on_lab, ctrl_shift(Key::r), kNoKey, 0},
    {"reset control", Group::panel, "Reset this control",
     "The control with the focus ring; without a ring, those of the panel.", "", Do::reset_control,
     When::on_lab, ctrl(Key::r), kNoKey, 0},
    {"undo", Group::panel, "Undo",
     "200 steps per lab; a drag is one step. Reset all, Do it again and another file too.", "", Do::undo,
     When::on_lab, ctrl(Key::z), kNoKey, kRepeats},
    {"redo", Group::panel, "Redo", "", "", Do::redo, When::on_lab, ctrl_shift(Key::z), ctrl(Key::y),
     kRepeats},
    {"hint", Group::panel, "Next hint",
     "Three hints, each more detailed than the last. The evidence counts the opened ones.", "panel.hint",
     Do::hint, When::hinted, plain(Key::h), kNoKey, 0},
    {"export", Group::panel, "Export", "Figures as PNG, SVG and CSV, the report, the submission to hand in.",
     "panel.export", Do::export_figures, When::no_prediction, ctrl(Key::e), kNoKey, 0},
    {"save", Group::lecture, "Save this scene",
     "The current state of the lab, as a file or as one line of text to send.", "", Do::save, When::on_lab,
     ctrl(Key::s), kNoKey, 0},
    {"copy", Group::lecture, "Copy this scene as text",
     "The state of the lab as one line, to send to somebody.", "", Do::copy, When::on_lab, kNoKey, kNoKey, 0},
    {"link", Group::lecture, "Copy a link to this lab", "An address that opens the lab as it stands.", "",
     Do::copy_link, When::has_link, kNoKey, kNoKey, 0},
    {"open", Group::lecture, "Open a scene",
     "The shipped scenes and your own. Files can also be dropped on the window.", "", Do::open, When::always,
     ctrl(Key::o), kNoKey, 0},
    {"files", Group::lecture, "Open files of this machine",
     "Tensors, scenes, decks, logs of a run. They stay in this page, and can also be dropped on it.", "",
     Do::open_files, When::asks_for_files, kNoKey, kNoKey, 0},
    {"paste", Group::lecture, "Open the copied scene", "Opens a scene that somebody sent as text.", "",
     Do::paste, When::always, ctrl(Key::v), kNoKey, 0},
    {"present", Group::lecture, "Present",
     "This lab, or on home the lecture that Esc left: one sentence, one figure. Esc ends it.", "",
     Do::present, When::always, plain(Key::f5), ctrl(Key::p), 0},
    {"theme", Group::window, "Other theme", "Light becomes dark, and any other theme light.", "shell.theme",
     Do::theme, When::always, ctrl(Key::t), plain(Key::f8), kOver},
    {"larger", Group::window, "Larger text and controls", "", "", Do::larger, When::always, ctrl(Key::equal),
     ctrl(Key::keypad_add), kOver | kRepeats},
    {"smaller", Group::window, "Smaller text and controls", "", "", Do::smaller, When::always,
     ctrl(Key::minus), ctrl(Key::keypad_subtract), kOver | kRepeats},
};

ShellCommand command_of(const Row& row, Parts& parts) {
    ShellCommand out{.id = row.id,
                     .group = row.group,
                     .label = row.label,
                     .run = [&row, &parts] { row.run(parts); },
                     .when = [&row, &parts] { return row.when(parts); },
                     .help = row.help,
                     .control = row.control,
                     .repeats = (row.is & kRepeats) != 0,
                     .over = (row.is & kOver) != 0};
    for (const Chord& chord : {row.first, row.second})
        if (chord != kNoKey) out.chords.push_back(chord);
    return out;
}

ShellCommand open_lab(const Labs::Entry& entry, Parts& parts) {
    const LabInfo& info = entry.info();
    ShellCommand out{.id = std::string(info.id),
                     .group = Group::labs,
                     .label = entry.name(),
                     .run = [&parts, id = info.id] { parts.labs.open(id); },
                     .help = std::string(info.title),
                     .control = "rail." + std::string(info.id),
                     .over = true};
    if (info.number >= 1 && info.number <= 9) out.chords = {ctrl(Key::digit_0 + info.number)};
    return out;
}

ShellCommand choose_theme(Theme theme, Parts& parts) {
    const std::string name(to_string(theme));
    return {.id = "theme-" + name,
            .group = Group::window,
            .label = "Theme: " + (theme == Theme::contrast ? "high contrast" : name),
            .run = [&parts, theme] { parts.common.set_theme(theme); },
            .over = true};
}

}  // namespace

std::vector<ShellCommand> make_commands(Parts& parts) {
    std::vector<ShellCommand> out;
    for (const Row& row : kRows) {
        out.push_back(command_of(row, parts));
        if (row.run == Do::home)
            for (const Labs::Entry& entry : parts.labs.entries()) out.push_back(open_lab(entry, parts));
        if (row.run == Do::theme)
            for (const Theme theme : {Theme::dark, Theme::light, Theme::projector, Theme::contrast})
                out.push_back(choose_theme(theme, parts));
    }
    return out;
}

}  // namespace fp8lab
