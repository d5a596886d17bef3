#include "app/shell/shell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kSmallestStageWidth = 480,
                kSmallestStageHeight = 454;  // content; what 960x600 leaves under a question of one line
constexpr float kStageMargin = 24;

// Keys that the control with the focus ring takes.
bool belongs_to_focus(ui::Key key) {
    constexpr ui::Key kFocusKeys[] = {ui::Key::space, ui::Key::enter, ui::Key::left, ui::Key::right,
                                      ui::Key::up,    ui::Key::down,  ui::Key::home, ui::Key::end,
                                      ui::Key::tab,   ui::Key::escape};
    return std::find(std::begin(kFocusKeys), std::end(kFocusKeys), key) != std::end(kFocusKeys);
}

std::string fields_text(Lab& lab) {
    std::string text;
    for (const Field& field : lab.fields()) text += field_text(field) + "\n";
    return text;
}

// While it is held: what moves on by a step does, what switches does not.
bool repeats(ui::Key key) {
    constexpr std::array kSteps = {ui::Key::comma, ui::Key::period, ui::Key::left,
                                   ui::Key::right, ui::Key::up,     ui::Key::down};
    return std::ranges::find(kSteps, key) != kSteps.end();
}

}  // namespace

Shell::Shell(ui::Context& context, Settings settings, Machine machine, ProfileFolders folders,
             std::function<void()> wake)
    : context_(context),
      settings_(std::move(settings)),
      machine_(std::move(machine)),
      folders_(std::move(folders)),
      wake_(std::move(wake)),
      toasts_(context),
      exercises_(
          context, folders_,
          {.say = [this](std::string title, std::string line) { say(std::move(title), std::move(line)); },
           .lose =
               [this](Lab& lab, std::string title, std::string line) {
                   Entry& entry = entry_of(lab);
                   set_aside(entry, what_is(entry));
                   if (!title.empty()) say_undoable(std::move(title), std::move(line));
               }}),
      recovery_(folders_,
                [this](std::string title, std::string line) { warn(std::move(title), std::move(line)); }),
      presentation_(context),
      export_(context, folders_,
              [this](std::string title, std::string line) { say(std::move(title), std::move(line)); }),
      last_at_start_(settings_.last_lab),
      loaded_scale_(context.scale),
      probing_(context.probes.enabled) {
    context_.theme = settings_.theme;
    for (const LabEntry& entry : lab_registry()) {
        Entry made;
        made.lab = entry.make();
        made.lab->set_wake(wake_);
        update(made);
        made.thumbnail = made.lab->thumbnail();
        exercises_.reveal(*made.lab);
        made.undo.note(made.lab->state(), 0, false);
        recovery_.journal().assume("lab." + std::string(entry.id), made.lab->state());
        entries_.push_back(std::move(made));
    }
    add_commands();
    offer([this] { return scenes(); });
    try {
        remap(commands_, folders_.config / "keys.json");
    } catch (const Error& error) {
        warn("Keys as they were", error.what());
    }
    recovery_.journal().assume("desk", {{"lab", ""}, {"tab", "explore"}});
    if (!exercises_.progress().problem().empty()) warn("Progress", exercises_.progress().problem());
}

void Shell::update(Entry& entry) {
    try {
        entry.lab->update();
        entry.failure.clear();
    } catch (const std::exception& error) {  // the lab stops, the window goes on
        entry.failure = error.what();
    }
}

Shell::Entry* Shell::current() {
    for (Entry& entry : entries_) {
        if (entry.lab->info().id == open_) return &entry;
    }
    return nullptr;
}

Lab* Shell::lab() {
    Entry* entry = current();
    return entry == nullptr ? nullptr : entry->lab.get();
}

void Shell::open(std::string_view lab) {
    open(Sheet::none);
    if (open_ == lab) return;
    if (Entry* left = current()) left->thumbnail = left->lab->thumbnail();
    open_ = lab;
    toasts_.let_go();
    context_.focus = {};
    Entry* entry = current();
    if (entry == nullptr) return;
    settings_.last_lab = open_;
    last_at_start_ = open_;
    if (!entry->view) entry->view = make_view(*entry->lab);
    update(*entry);
}

void Shell::show(Tab tab) {
    if (!open_.empty()) settings_.tabs[open_] = name_of(tab);
    settings_.panel_open = true;
    panel_open_narrow_ = true;
}

void Shell::say(std::string title, std::string line) { toasts_.say({std::move(title), std::move(line)}); }

void Shell::say_undoable(std::string title, std::string line) {
    toasts_.say({.title = std::move(title), .line = std::move(line), .undo = true});
}

void Shell::warn(std::string title, std::string line) { toasts_.warn(std::move(title), std::move(line)); }

bool Shell::fonts_outdated() const { return loaded_scale_ != context_.scale; }

void Shell::toggle_panel(bool narrow) {
    bool& open = narrow ? panel_open_narrow_ : settings_.panel_open;
    open = !open;
}

void Shell::set_theme(Theme theme) {
    settings_.theme = theme;
    context_.theme = theme;
}

void Shell::set_scale(float scale) {
    settings_.scale = std::clamp(scale, kSmallestScale, kLargestScale);
    context_.scale = settings_.scale;
}

void Shell::run_command(const Chord& chord) {
    const bool covered = sheet_ != Sheet::none || help_.on();
    for (const ShellCommand& command : commands_) {
        const bool meant = std::ranges::find(command.chords, chord) != command.chords.end();
        if (!meant || (covered && !command.over) || !command.applies()) continue;
        if (chord.key != ui::Key::none && !ui::pressed(chord.key, command.repeats)) continue;
        command.run();
        return;
    }
}

void Shell::keys() {
    const ImGuiIO& io = ImGui::GetIO();
    if (io.WantTextInput || context_.focus.modal != 0 || recovery_.asking() || export_.is_open()) return;
    const bool covered = sheet_ != Sheet::none || help_.on();
    for (const ui::Key key : ui::all_keys()) {
        if (!ui::pressed(key)) continue;
        Entry* entry = current();
        const bool plain = !io.KeyCtrl && !io.KeyAlt;
        if (plain && context_.focus.visible && belongs_to_focus(key)) continue;
        // While it is held, a lab's key moves on where it steps and does not switch again.
        const bool stepped = !covered && ui::pressed(key, repeats(key));
        const bool used = entry != nullptr && !predicting(*entry);
        if (plain && used && stepped && entry->view->key(context_, key)) continue;
        run_command({.key = key, .ctrl = io.KeyCtrl, .shift = io.KeyShift, .alt = io.KeyAlt});
    }
    if (sheet_ == Sheet::palette || sheet_ == Sheet::glossary) return;  // characters are typed there
    for (const ImWchar c : io.InputQueueCharacters)
        if (covered || current() == nullptr || predicting(*current()) ||
            !current()->view->character(context_, c))
            run_command({.character = c});
}

void Shell::frame(double frame_ms) {
    loaded_scale_ = context_.scale;
    context_.probes.enabled = probing_ || help_.on() || tour_.on();
    focused_ = context_.focus.visible ? context_.focus.name : "";
    ui::begin_frame(context_);
    const bool presenting = presentation_.active();
    if (presenting) presentation_keys();
    if (!presenting) keys();
    if (presentation_.active()) return frame_presentation();
    using Reach = ui::Focus::Reach;
    const bool covered = sheet_ != Sheet::none || recovery_.asking() || export_.is_open();
    free_ = !covered && !help_.on() && context_.focus.modal == 0 && !ImGui::GetIO().WantTextInput;
    context_.focus.reach = covered ? Reach::covered : help_.on() ? Reach::found : Reach::live;
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    Entry* entry = current();
    const WindowLayout layout = make_window_layout(size.x, size.y, loaded_scale_, entry != nullptr,
                                                   settings_.panel_open, panel_open_narrow_);
    narrow_ = layout.narrow;
    begin_whole_window();
    draw_rail(layout);
    entry = current();  // the rail may have opened another
    context_.overlays.clear();
    context_.glossary = &glossary();
    if (entry != nullptr) {
        update(*entry);
        if (shown_tab(*entry) == Tab::exercises) exercises_.lay_over(*entry->lab);
        const auto held = this->held(*entry);
        const std::string before = fields_text(*entry->lab);
        draw_panel(layout, *entry);
        if (fields_text(*entry->lab) != before) update(*entry);  // the stage shows the edit in this frame
        draw_lab(layout, *entry);
        hold(*entry, held);
        if (const auto told = std::exchange(context_.notice, {}); !told.title.empty())
            say(told.title, told.line);
        if (entry->failure.empty()) exercises_.follow(*entry->lab);
        note_undo(*entry);
    } else {
        draw_home(layout);
    }
    draw_status(layout, frame_ms);
    ImGui::End();
    if (!covered) draw_toast(layout);
    if (!context_.wanted_term.empty()) show_term(std::exchange(context_.wanted_term, {}));
    if (!context_.wanted_lab.lab.empty()) lead_to(std::exchange(context_.wanted_lab, {}));
    draw_over();
    if (export_.is_open()) export_.draw(lab());
    answer();
}

float Shell::draw_heading(const LabInfo& info, Rect stage) {
    const Font title{Face::sans_bold, 24};
    const Font number{Face::mono, 24};
    const Font question{Face::sans, 15};
    const float x = stage.x0 + context_.px(kStageMargin);
    const std::string label = info.mark();
    ui::text_mid(context_, {x, stage.y0 + context_.px(40)}, label, {Role::muted}, number);
    const float after = label.empty() ? x : x + ui::text_width(context_, label, number) + context_.px(13);
    ui::text_mid(context_, {after, stage.y0 + context_.px(40)}, info.title, {Role::text}, title);
    float y = stage.y0 + context_.px(70);
    for (const auto line :
         ui::wrap_lines(context_, info.question, question, stage.width() - 2 * context_.px(kStageMargin))) {
        ui::text_mid(context_, {x, y}, line, {Role::muted}, question);
        y += context_.px(22);
    }
    return std::round(y + context_.px(4));
}

void Shell::draw_lab(const WindowLayout& layout, Entry& entry) {
    const Rect stage = layout.stage;
    if (stage.width() < 1) return;
    ImGui::SetCursorScreenPos({stage.x0, stage.y0});
    ImGui::BeginChild(("stage." + open_).c_str(), {stage.width(), stage.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_HorizontalScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const float least_width = context_.px(kSmallestStageWidth + 2 * kStageMargin);
    Rect all{origin.x, origin.y, origin.x + std::max(stage.width(), least_width), origin.y + stage.height()};
    const float top = draw_heading(  // in what is visible, whatever the figures need
        entry.lab->info(), {all.x0, all.y0, all.x0 + stage.width(), all.y1});
    all.y1 = std::max(all.y1, top + std::round(context_.px(kSmallestStageHeight + 20)));
    const Rect area{all.x0 + context_.px(kStageMargin), top, all.x1 - context_.px(kStageMargin),
                    all.y1 - context_.px(20)};
    if (entry.failure.empty()) {
        const bool asks = predicting(entry);
        const auto reach =
            std::exchange(context_.focus.reach, asks ? ui::Focus::Reach::covered : context_.focus.reach);
        entry.view->stage(context_, area);
        context_.focus.reach = reach;
        if (asks) exercises_.draw_covers(*entry.lab, area);
        if (entry.lab->stale()) ui::fill_rect(context_, area, {Role::surface, Tone::line, 0.5F});
    } else {
        ImGui::SetCursorScreenPos({area.x0, area.y0 + context_.px(16)});
        ui::warning(context_, "This lab stopped", kBold15);
        ui::wrapped(context_, entry.failure, Role::text, {Face::sans, 15});
        if (ui::button(context_, "shell.recover", "Reset all", {})) reset(entry);
    }
    ui::advance(all);
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
}

}  // namespace fp8lab
