#include "app/shell/shell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "labs/ui/draw.h"

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

Shell::Shell(ui::Context& context, Settings settings, Machine machine, ProfileFolders folders, Host host)
    : context_(context),
      parts_(context, std::move(settings), std::move(machine), std::move(folders), std::move(host)),
      loaded_scale_(context.scale),
      probing_(context.probes.enabled) {}

void Shell::run_command(const Chord& chord) {
    const bool covered = parts_.over.covers();
    for (const ShellCommand& command : parts_.commands) {
        const bool meant = std::ranges::find(command.chords, chord) != command.chords.end();
        if (!meant || (covered && !command.over) || !command.applies()) continue;
        if (chord.key != ui::Key::none && !ui::pressed(chord.key, command.repeats)) continue;
        command.run();
        return;
    }
}

void Shell::keys() {
    const ImGuiIO& io = ImGui::GetIO();
    Labs& labs = parts_.labs;
    if (io.WantTextInput || context_.focus.modal != 0 || parts_.keeping.asking() || parts_.over.takes_keys())
        return;
    const bool covered = parts_.over.covers();
    for (const ui::Key key : ui::all_keys()) {
        if (!ui::pressed(key)) continue;
        Labs::Entry* entry = labs.current();
        const bool plain = !io.KeyCtrl && !io.KeyAlt;
        if (plain && context_.focus.visible && belongs_to_focus(key)) continue;
        // While it is held, a lab's key moves on where it steps and does not switch again.
        const bool stepped = !covered && ui::pressed(key, repeats(key));
        const bool used = entry != nullptr && !labs.predicting(*entry);
        if (plain && used && stepped && entry->view->key(context_, key)) continue;
        run_command({.key = key, .ctrl = io.KeyCtrl, .shift = io.KeyShift, .alt = io.KeyAlt});
    }
    if (parts_.over.types()) return;  // characters are typed there
    for (const ImWchar c : io.InputQueueCharacters) {
        Labs::Entry* entry = labs.current();
        if (covered || entry == nullptr || labs.predicting(*entry) || !entry->view->character(context_, c))
            run_command({.character = c});
    }
}

// The one window that everything is drawn in, desk or presentation.
void Shell::begin_whole_window() {
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("shell", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoScrollWithMouse);
}

void Shell::frame(double frame_ms) {
    loaded_scale_ = context_.scale;
    context_.probes.enabled = probing_ || parts_.over.needs_probes();
    parts_.past.begin_frame();
    ui::begin_frame(context_);
    if (parts_.presentation.active())
        parts_.presentation.take_keys();
    else
        keys();
    begin_whole_window();
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    if (parts_.presentation.active()) {
        parts_.presentation.frame({0, 0, size.x, size.y});
        ImGui::End();
    } else {
        frame_desk(make_window_layout(size.x, size.y, loaded_scale_, lab() != nullptr, settings().panel_open,
                                      parts_.labs.panel_open_narrow),
                   frame_ms);
    }
}

void Shell::frame_desk(const WindowLayout& layout, double frame_ms) {
    const bool covered = parts_.over.begin_frame(parts_.keeping.asking());
    parts_.labs.narrow = layout.narrow;
    rail_.draw(layout);
    context_.overlays.clear();
    context_.glossary = &parts_.over.glossary();
    if (Labs::Entry* entry = parts_.labs.current())  // the rail may have opened another
        use_lab(layout, *entry);
    else
        home_.draw(layout);
    draw_status(parts_, layout, frame_ms);
    ImGui::End();
    if (!covered) panel_.draw_toast(layout);
    if (!context_.wanted_term.empty()) parts_.over.show_term(std::exchange(context_.wanted_term, {}));
    if (!context_.wanted_lab.lab.empty()) parts_.scenes.lead_to(std::exchange(context_.wanted_lab, {}));
    parts_.over.draw();
    if (parts_.keeping.ask()) home_.greet();
}

void Shell::use_lab(const WindowLayout& layout, Labs::Entry& entry) {
    Labs::update(entry);
    if (parts_.labs.shown_tab(entry) == Tab::exercises) exercises().lay_over(*entry.lab);
    const Scenes::Held held = parts_.scenes.held(entry);
    const std::string before = fields_text(*entry.lab);
    panel_.draw(layout, entry);
    if (fields_text(*entry.lab) != before) Labs::update(entry);  // the stage shows the edit in this frame
    draw_lab(layout, entry);
    parts_.scenes.hold(entry, held);
    if (const auto told = std::exchange(context_.notice, {}); !told.title.empty()) say(told.title, told.line);
    if (entry.failure.empty()) exercises().follow(*entry.lab);
    parts_.past.note(entry);
}

float Shell::draw_heading(const Labs::Entry& entry, Rect stage) {
    const LabInfo& info = entry.info();
    const std::string_view asked = entry.view->question();
    const Font title{Face::sans_bold, 24};
    const Font number{Face::mono, 24};
    const Font question{Face::sans, 15};
    const float x = stage.x0 + context_.px(kStageMargin);
    const std::string label = info.mark();
    ui::text_mid(context_, {x, stage.y0 + context_.px(40)}, label, {Role::muted}, number);
    const float after = label.empty() ? x : x + ui::text_width(context_, label, number) + context_.px(13);
    ui::text_mid(context_, {after, stage.y0 + context_.px(40)}, info.title, {Role::text}, title);
    float y = stage.y0 + context_.px(70);
    for (const auto line : ui::wrap_lines(context_, asked.empty() ? info.question : asked, question,
                                          stage.width() - 2 * context_.px(kStageMargin))) {
        ui::text_mid(context_, {x, y}, line, {Role::muted}, question);
        y += context_.px(22);
    }
    return std::round(y + context_.px(4));
}

void Shell::draw_lab(const WindowLayout& layout, Labs::Entry& entry) {
    const Rect stage = layout.stage;
    if (stage.width() < 1) return;
    ImGui::SetCursorScreenPos({stage.x0, stage.y0});
    ImGui::BeginChild(("stage." + parts_.labs.open_id()).c_str(), {stage.width(), stage.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_HorizontalScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const float least_width = context_.px(kSmallestStageWidth + 2 * kStageMargin);
    Rect all{origin.x, origin.y, origin.x + std::max(stage.width(), least_width), origin.y + stage.height()};
    const float top = draw_heading(  // in what is visible, whatever the figures need
        entry, {all.x0, all.y0, all.x0 + stage.width(), all.y1});
    all.y1 = std::max(all.y1, top + std::round(context_.px(kSmallestStageHeight + 20)));
    const Rect area{all.x0 + context_.px(kStageMargin), top, all.x1 - context_.px(kStageMargin),
                    all.y1 - context_.px(20)};
    if (entry.failure.empty()) {
        const bool asks = parts_.labs.predicting(entry);
        const auto reach =
            std::exchange(context_.focus.reach, asks ? ui::Focus::Reach::covered : context_.focus.reach);
        entry.view->stage(context_, area);
        context_.focus.reach = reach;
        if (asks) exercises().draw_covers(*entry.lab, area);
        if (entry.lab->stale()) ui::fill_rect(context_, area, {Role::surface, Tone::line, 0.5F});
    } else {
        ImGui::SetCursorScreenPos({area.x0, area.y0 + context_.px(16)});
        ui::warning(context_, "This lab stopped", kBold15);
        ui::wrapped(context_, entry.failure, Role::text, {Face::sans, 15});
        if (ui::button(context_, "shell.recover", "Reset all", {})) parts_.past.reset(entry);
    }
    ui::advance(all);
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
}

}  // namespace fp8lab
