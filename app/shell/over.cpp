#include "app/shell/over.h"

#include <algorithm>
#include <utility>

#include "app/shell/sheets/key_sheet.h"
#include "app/shell/sheets/sheet.h"
#include "core/base/error.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kPaletteWidth = 680, kPaletteHeight = 520;

}  // namespace

Over::Over(Common& common, Labs& labs, ExercisesTab& exercises, const std::vector<ShellCommand>& commands)
    : common_(common),
      context_(common.context),
      labs_(labs),
      exercises_(exercises),
      commands_(commands),
      export_(common.context, common.folders, common.host, [this](std::string title, std::string line) {
          common_.toasts.say(std::move(title), std::move(line));
      }) {}

bool Over::begin_frame(bool covered) {
    covered |= sheet_ != Sheet::none || export_.is_open();
    free_ = !covered && !help_.on() && context_.focus.modal == 0 && !ImGui::GetIO().WantTextInput;
    using Reach = ui::Focus::Reach;
    context_.focus.reach = covered ? Reach::covered : help_.on() ? Reach::found : Reach::live;
    return covered;
}

const Glossary& Over::glossary() {
    if (!glossary_) {
        glossary_.emplace();
        try {
            glossary_ = load_glossary();
        } catch (const Error& error) {
            common_.toasts.say("No glossary", error.what());
        }
    }
    return *glossary_;
}

std::map<std::string, std::string> Over::lab_names() {
    std::map<std::string, std::string> names;
    for (const Labs::Entry& entry : labs_.entries()) names.emplace(entry.info().id, entry.name());
    return names;
}

void Over::open(Sheet sheet) {
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
    if (sheet == Sheet::words) words_sheet_.read(*labs_.lab());
    if (sheet == Sheet::scene) scene_sheet_.open(*labs_.lab(), common_.folders.data / "scenes", common_.host);
    if (sheet == Sheet::glossary) glossary_sheet_.open(glossary(), lab_names());
    if (sheet == Sheet::manual) show_page({});
}

void Over::show_page(std::string_view id) {
    try {
        manual_sheet_.open(id);
        if (sheet_ != Sheet::manual) open(Sheet::manual);
    } catch (const Error& error) {
        sheet_ = Sheet::none;
        common_.toasts.say("No manual", error.what());
    }
}

void Over::show_term(std::string_view id) {
    if (sheet_ != Sheet::glossary) open(Sheet::glossary);
    glossary_sheet_.open(glossary(), lab_names(), id);
}

void Over::start_tour() {
    labs_.open(Tour::kLab);
    labs_.show(Tab::explore);
    tour_.start(context_, seen());
}

void Over::explain(std::string_view control) {
    open(Sheet::none);
    help_.start(context_, control);
}

void Over::toggle_help() {
    const bool on = help_.on();
    open(Sheet::none);
    if (!on) help_.start(context_);
}

void Over::find_among(std::vector<Find> finds) {
    open(Sheet::palette);
    finds_ = std::move(finds);
}

void Over::open_by_name(std::string_view name) {
    const auto colon = std::min(name.find(':'), name.size());
    const std::string_view what = name.substr(0, colon),
                           which = name.substr(std::min(colon + 1, name.size()));
    if (what == "palette") return open(Sheet::palette);
    if (what == "keys") return open(Sheet::keys);
    if (what == "glossary") return show_term(which);
    if (what == "manual") return show_page(which);
    if (what == "help") return explain(which);
    if (what == "tour") return start_tour();
    if (what == "words" && labs_.lab() != nullptr) return open(Sheet::words);
    throw usage_error(
        "--open",
        "'" + std::string(name) + "' is not palette, keys, glossary, manual, help, tour or, in a lab, words");
}

std::vector<Find> Over::finds() {
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
    if (Labs::Entry* entry = labs_.current()) {
        for (const ViewKey& key : entry->view->keys()) {
            if (key.first != key.last) continue;
            all.push_back({{.kind = "Do",
                            .title = entry->name() + " " + std::string(key.effect),
                            .keys = std::string(key.keys)},
                           [this, entry, code = key.first] { entry->view->key(context_, code); }});
        }
    }
    for (const auto& offer : offers_)
        for (Find& find : offer()) all.push_back(std::move(find));
    add_pages(all);
    add_exercises(all);
    for (const Term& term : glossary().terms())
        all.push_back({{.kind = "Term", .title = term.term, .detail = term.also, .also = term.also},
                       [this, id = term.id] { show_term(id); }});
    return all;
}

void Over::add_pages(std::vector<Find>& finds) {
    try {
        for (const ManualPart& part : manual_sheet_.parts())
            for (const ManualPage& page : part.pages)
                finds.push_back({{.kind = "Manual", .title = page.title, .detail = part.title},
                                 [this, id = page.id] { show_page(id); }});
    } catch (const Error&) {  // said where it is opened
    }
}

void Over::add_exercises(std::vector<Find>& finds) {
    for (const Labs::Entry& entry : labs_.entries()) {
        const auto exercises = entry.lab->exercises();
        for (std::size_t i = 0; i < exercises.size(); ++i) {
            const bool passed = exercises_.progress().passed(exercises[i].id) != nullptr;
            finds.push_back({{.kind = "Exercise",
                              .title = exercises[i].id + " " + exercises[i].title,
                              .detail = passed ? "passed" : "",
                              .also = exercises[i].question},
                             [this, id = entry.info().id, i] {
                                 labs_.open(id);
                                 labs_.show(Tab::exercises);
                                 exercises_.select(*labs_.lab(), i);
                             }});
        }
    }
}

void Over::draw_palette() {
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

void Over::draw() {
    context_.focus.reach = ui::Focus::Reach::live;
    if (sheet_ == Sheet::palette)
        draw_palette();
    else
        draw_sheet(), draw_help(), draw_tour();
    if (export_.is_open()) export_.draw(labs_.lab());
}

void Over::draw_sheet() {
    Labs::Entry* entry = labs_.current();
    std::string command, go_to;
    bool stays = true;
    const auto done = [&](const auto& sheet) {
        stays = !sheet.closed;
        if (!sheet.title.empty()) common_.toasts.say(sheet.title, sheet.line);
    };
    if (sheet_ == Sheet::keys)
        stays = draw_key_sheet(context_, commands_, entry ? entry->view->keys() : std::span<const ViewKey>{},
                               entry ? entry->name() : "", command);
    if (sheet_ == Sheet::scene) done(scene_sheet_.draw(context_, *entry->lab));
    if (sheet_ == Sheet::words) done(words_sheet_.draw(context_, *entry->lab));
    if (sheet_ == Sheet::glossary) stays = glossary_sheet_.draw(context_, glossary(), go_to);
    if (sheet_ == Sheet::manual) stays = draw_manual(go_to);  // a term opens the glossary, in the next frame
    if (!stays) open(Sheet::none);
    if (!go_to.empty()) labs_.open(go_to);
    if (!command.empty()) std::ranges::find(commands_, command, &ShellCommand::id)->run();
}

bool Over::draw_manual(std::string& go_to) {
    const ManualSheet::Done done = manual_sheet_.draw(context_);
    go_to = done.lab;
    if (!done.term.empty()) show_term(done.term);
    return !done.closed && done.lab.empty();
}

void Over::draw_help() {
    if (!help_.on()) return;
    context_.focus.reach = ui::Focus::Reach::found;
    std::string term;
    help_.draw(
        context_, [this](std::string_view probe) { return help_of(probe); }, term);
    if (ui::key_pressed(ui::Key::escape)) help_.stop();
    if (!term.empty()) show_term(term);
    if (!help_.on()) context_.wants_redraw = true;
}

Tour::Seen Over::seen() {
    Labs::Entry* entry = labs_.current();
    return {.lab = entry ? entry->lab.get() : nullptr,
            .helps = help_.told(),
            .reading = entry != nullptr && labs_.panel_shown && labs_.shown_tab(*entry) == Tab::learn,
            .free = free_};
}

void Over::draw_tour() {
    if (!tour_.on() || !tour_.draw(context_, seen())) return;
    common_.settings.toured = true;
    context_.wants_redraw = true;
    if (tour_.completed())
        common_.toasts.say("This was the tour", "L1 begins here. Ctrl K finds everything, ? lists the keys");
}

// Help on the window's own controls comes from the table of commands, on a lab's from its fields and the glossary.
std::optional<ControlHelp> Over::help_of(std::string_view probe) {
    const bool card = probe.starts_with("home.");
    const std::string control = card ? "rail." + std::string(probe.substr(5)) : std::string(probe);
    for (const ShellCommand& command : commands_) {
        if (command.control.empty() || command.control != control) continue;
        return ControlHelp{.title = command.label, .what = command.help, .values = command.keys()};
    }
    Labs::Entry* entry = labs_.current();
    return control_help(entry ? entry->lab.get() : nullptr, probe, glossary());
}

}  // namespace fp8lab
