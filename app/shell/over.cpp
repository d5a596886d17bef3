// What lies over the window: palette, sheet of keys, glossary, help and tour.
#include <algorithm>
#include <utility>

#include "app/shell/sheets/key_sheet.h"
#include "app/shell/sheets/sheet.h"
#include "app/shell/shell.h"
#include "core/base/error.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kPaletteWidth = 680, kPaletteHeight = 520;

std::string lab_name(const LabInfo& info) { return info.mark_before() + std::string(info.short_title); }

}  // namespace

const Glossary& Shell::glossary() {
    if (!glossary_) {
        glossary_.emplace();
        try {
            glossary_ = load_glossary();
        } catch (const Error& error) {
            say("No glossary", error.what());
        }
    }
    return *glossary_;
}

std::map<std::string, std::string> Shell::lab_names() const {
    std::map<std::string, std::string> names;
    for (const Entry& entry : entries_) names.emplace(entry.lab->info().id, lab_name(entry.lab->info()));
    return names;
}

void Shell::open(Sheet sheet) {
    help_.stop();
    const bool was_open = sheet_ != Sheet::none;
    if (sheet == sheet_) sheet = Sheet::none;  // its key closes it again
    auto& focus = context_.focus;
    if (!was_open && sheet != Sheet::none) ring_before_ = focus.visible ? focus.name : "";
    if (was_open || sheet != Sheet::none) focus.visible = false;
    if (was_open && sheet == Sheet::none) focus.wanted = std::exchange(ring_before_, "");
    sheet_ = sheet;
    context_.wants_redraw = true;
    if (sheet == Sheet::palette) {
        finds_ = finds();
        palette_.open();
    }
    if (sheet == Sheet::words) words_sheet_.read(*lab());
    if (sheet == Sheet::scene) scene_sheet_.open(*lab(), folders_.data / "scenes");
    if (sheet == Sheet::glossary) glossary_sheet_.open(glossary(), lab_names());
}

void Shell::show_term(std::string_view id) {
    if (sheet_ != Sheet::glossary) open(Sheet::glossary);
    glossary_sheet_.open(glossary(), lab_names(), id);
}

void Shell::start_tour() {
    open(Tour::kLab);
    show(Tab::explore);
    tour_.start(context_, seen());
}

void Shell::explain(std::string_view control) {
    open(Sheet::none);
    help_.start(context_, control);
}

void Shell::open_by_name(std::string_view name) {
    const auto colon = std::min(name.find(':'), name.size());
    const std::string_view what = name.substr(0, colon),
                           which = name.substr(std::min(colon + 1, name.size()));
    if (what == "palette") return open(Sheet::palette);
    if (what == "keys") return open(Sheet::keys);
    if (what == "glossary") return show_term(which);
    if (what == "help") return explain(which);
    if (what == "tour") return start_tour();
    if (what == "words" && lab() != nullptr) return open(Sheet::words);
    throw usage_error("--open", "'" + std::string(name) +
                                    "' is not palette, keys, glossary, help, tour or, in a lab, words");
}

std::vector<Find> Shell::finds() {
    std::vector<Find> all;
    for (std::size_t i = 0; i < commands_.size(); ++i) {
        const ShellCommand& command = commands_[i];
        if (!command.applies() || command.id == "palette") continue;
        const bool lab = command.group == "Labs";
        all.push_back({{.kind = lab ? "Lab" : "Do",
                        .title = command.label,
                        .detail = command.help,
                        .keys = command.keys()},
                       command.run});
    }
    if (Entry* entry = current()) {
        for (const ViewKey& key : entry->view->keys()) {
            if (key.first != key.last) continue;
            all.push_back({{.kind = "Do",
                            .title = lab_name(entry->lab->info()) + " " + std::string(key.effect),
                            .keys = std::string(key.keys)},
                           [this, entry, code = key.first] { entry->view->key(context_, code); }});
        }
    }
    for (const auto& offer : offers_)
        for (Find& find : offer()) all.push_back(std::move(find));
    for (const Entry& entry : entries_) {
        const auto exercises = entry.lab->exercises();
        for (std::size_t i = 0; i < exercises.size(); ++i) {
            const bool passed = exercises_.progress().passed(exercises[i].id) != nullptr;
            all.push_back({{.kind = "Exercise",
                            .title = exercises[i].id + " " + exercises[i].title,
                            .detail = passed ? "passed" : "",
                            .also = exercises[i].question},
                           [this, id = entry.lab->info().id, i] {
                               open(id);
                               show(Tab::exercises);
                               exercises_.select(*lab(), i);
                           }});
        }
    }
    for (const Term& term : glossary().terms())
        all.push_back({{.kind = "Term", .title = term.term, .detail = term.also, .also = term.also},
                       [this, id = term.id] { show_term(id); }});
    return all;
}

void Shell::draw_palette() {
    const SheetArea sheet = begin_sheet(context_, "palette", "", kPaletteWidth, kPaletteHeight);
    std::vector<FindRow> rows;
    for (const Find& find : finds_) rows.push_back(find.row);
    const auto taken = palette_.draw(context_, "palette.rows", rows, sheet.content,
                                     "Find a lab, an exercise, a term or something to do");
    end_sheet();
    if (!taken && !sheet.closed) return;
    open(Sheet::none);
    if (taken) finds_[*taken].run();
}

void Shell::draw_over() {
    context_.focus.reach = ui::Focus::Reach::live;
    std::string go_to;
    bool stays = true;
    Entry* entry = current();
    std::string command;
    switch (sheet_) {
        case Sheet::none:
            break;
        case Sheet::palette:
            draw_palette();
            return;
        case Sheet::keys:
            stays =
                draw_key_sheet(context_, commands_, entry ? entry->view->keys() : std::span<const ViewKey>{},
                               entry ? lab_name(entry->lab->info()) : "", command);
            break;
        case Sheet::scene: {
            const auto done = scene_sheet_.draw(context_, *entry->lab);
            stays = !done.closed;
            if (!done.title.empty()) say(done.title, done.line);
            break;
        }
        case Sheet::words: {
            const auto done = words_sheet_.draw(context_, *entry->lab);
            stays = !done.closed;
            if (!done.title.empty()) say(done.title, done.line);
            break;
        }
        case Sheet::glossary:
            stays = glossary_sheet_.draw(context_, glossary(), go_to);
            break;
    }
    if (!stays) open(Sheet::none);
    if (!go_to.empty()) open(go_to);
    if (!command.empty()) std::ranges::find(commands_, command, &ShellCommand::id)->run();
    if (help_.on()) {
        context_.focus.reach = ui::Focus::Reach::found;
        std::string term;
        help_.draw(
            context_, [this](std::string_view probe) { return help_of(probe); }, term);
        if (ui::key_pressed(ui::Key::escape)) help_.stop();
        if (!term.empty()) show_term(term);
        if (!help_.on()) context_.wants_redraw = true;
    }
    draw_tour();
}

Tour::Seen Shell::seen() {
    Entry* entry = current();
    return {.lab = entry ? entry->lab.get() : nullptr,
            .helps = help_.told(),
            .reading = entry != nullptr && panel_shown_ && shown_tab(*entry) == Tab::learn,
            .free = free_};
}

void Shell::draw_tour() {
    if (!tour_.on() || !tour_.draw(context_, seen())) return;
    settings_.toured = true;
    context_.wants_redraw = true;
    if (tour_.completed())
        say("This was the tour", "L1 begins here. Ctrl K finds everything, ? lists the keys");
}

// Help on the window's own controls comes from the table of commands, on a lab's from its fields and the glossary.
std::optional<ControlHelp> Shell::help_of(std::string_view probe) {
    const bool card = probe.starts_with("home.");
    const std::string control = card ? "rail." + std::string(probe.substr(5)) : std::string(probe);
    for (const ShellCommand& command : commands_) {
        if (command.control.empty() || command.control != control) continue;
        return ControlHelp{.title = command.label, .what = command.help, .values = command.keys()};
    }
    Entry* entry = current();
    return control_help(entry ? entry->lab.get() : nullptr, probe, glossary());
}

}  // namespace fp8lab
