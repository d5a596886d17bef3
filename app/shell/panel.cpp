// The panel: its tabs, Export and Reset all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/shell.h"
#include "core/lesson/lesson.h"
#include "labs/ui/draw.h"
#include "labs/ui/markdown.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kTabs = 56, kButtons = 64, kPanelMargin = 24;

const char* label_of(Tab tab) {
    return tab == Tab::explore ? "Explore" : tab == Tab::learn ? "Learn" : "Exercises";
}

}  // namespace

void Shell::draw_panel(const WindowLayout& layout, Entry& entry) {
    const Rect panel = layout.panel;
    ui::fill_rect(context_, panel, {Role::raised});
    ui::fill_rect(context_, {panel.x0, panel.y0, panel.x0 + ui::hairline(context_), panel.y1}, {Role::line});
    const float y = context_.px(36);
    const float arrow = layout.panel_open ? panel.x1 - context_.px(29) : (panel.x0 + panel.x1) / 2;
    const float reach = context_.px(12);
    const ui::Press fold =
        ui::press(context_, "panel.fold", {arrow - reach, y - reach, arrow + reach, y + reach}, 4);
    if (fold.clicked) toggle_panel(layout.narrow);
    ui::chevron(context_, {arrow, y}, layout.panel_open ? ui::Direction::right : ui::Direction::left,
                {fold.hovered ? Role::text : Role::muted});
    panel_shown_ = layout.panel_open;
    if (!layout.panel_open) return;

    const std::vector<Tab> tabs = tabs_of(entry);
    std::vector<std::string> labels;
    for (const Tab tab : tabs) labels.emplace_back(label_of(tab));
    int selected = static_cast<int>(std::ranges::find(tabs, shown_tab(entry)) - tabs.begin());
    ui::hline(context_, panel.x0, panel.x1, context_.px(kTabs) - ui::hairline(context_), {Role::line});
    if (ui::tabs(context_, "panel", labels, selected,
                 {panel.x0 + context_.px(kPanelMargin), context_.px(16),
                  panel.x1 - context_.px(kPanelMargin + 32), context_.px(kTabs)})) {
        show(tabs[static_cast<std::size_t>(selected)]);
    }

    const float top = context_.px(kTabs);
    const Tab tab = shown_tab(entry);
    const float strip = tab == Tab::exercises ? 0 : exercises_.strip_height(*entry.lab);
    const float height = std::max(1.0F, panel.height() - top - context_.px(kButtons + strip));
    ImGui::SetCursorScreenPos({panel.x0, top});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {context_.px(kPanelMargin), context_.px(14)});
    // A child of its own for each lab and tab: it keeps where it was scrolled to, and a new one starts at its top.
    ImGui::BeginChild((label_of(tab) + ("." + open_)).c_str(), {panel.width(), height}, false,
                      ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoScrollbar);
    ImGui::PopStyleVar();
    draw_tab(entry, tab);
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
    const float left = panel.x0 + context_.px(kPanelMargin), right = panel.x1 - context_.px(kPanelMargin);
    const float bottom = panel.y1 - context_.px(kButtons);
    if (strip > 0 &&
        exercises_.draw_strip(*entry.lab, {left, bottom - context_.px(strip - 16), right, bottom}))
        show(Tab::exercises);
    draw_panel_buttons(entry, panel);
}

std::vector<Tab> Shell::tabs_of(const Entry& entry) {
    const auto [lesson, is_new] = lessons_.try_emplace(std::string(entry.lab->info().id));
    if (is_new) lesson->second = lesson_of(lesson->first);
    std::vector<Tab> tabs = {Tab::explore};
    if (!lesson->second.empty()) tabs.push_back(Tab::learn);
    if (!entry.lab->exercises().empty()) tabs.push_back(Tab::exercises);
    return tabs;
}

// The one that it was left with, where the lab has it; at first the lesson.
Tab Shell::shown_tab(const Entry& entry) {
    const auto tabs = tabs_of(entry);
    const auto left = settings_.tabs.find(entry.lab->info().id);
    const std::string_view wanted = left == settings_.tabs.end() ? name_of(Tab::learn) : left->second;
    const auto tab = std::ranges::find(tabs, wanted, name_of);
    return tab == tabs.end() ? Tab::explore : *tab;
}

bool Shell::predicting(const Entry& entry) {
    return panel_shown_ && shown_tab(entry) == Tab::exercises && exercises_.predicting(*entry.lab);
}

void Shell::draw_tab(Entry& entry, Tab tab) {
    if (tab == Tab::explore) entry.view->explore(context_, ImGui::GetContentRegionAvail().x);
    if (tab == Tab::learn) {
        const std::string term = ui::markdown(context_, lessons_[open_], [&](std::string_view id) {
            pictures_.draw(context_, "lesson." + std::string(id), id);
        });
        claims_.draw(context_, *entry.lab, exercises_.under_way(*entry.lab));
        entry.view->lesson_end(context_);
        if (!term.empty()) show_term(term);
    }
    if (tab == Tab::exercises) {
        exercises_.draw_panel(*entry.lab);
        ui::divider(context_);
        if (ui::button(context_, "exercise.hand_in", "Hand in\u2026", {.width = 116}))
            export_.open(ExportPanel::What::submission, predicting(entry) ? nullptr : entry.lab.get());
    }
}

void Shell::draw_panel_buttons(Entry& entry, Rect panel) {
    const float y = std::round(panel.y1 - context_.px(48));
    ImGui::SetCursorScreenPos({panel.x0 + context_.px(kPanelMargin), y});
    const bool exercising = shown_tab(entry) == Tab::exercises && exercises_.has_hint(*entry.lab);
    if (exercising) {
        if (ui::button(context_, "panel.hint", "Next hint", {.key = "H", .width = 120}))
            exercises_.next_hint(*entry.lab);
    } else if (ui::button(context_, "panel.export", "Export", {.width = 96})) {
        export_.open(ExportPanel::What::figures, entry.lab.get());
    }
    ImGui::SetCursorScreenPos({panel.x1 - context_.px(kPanelMargin + 124), y});
    if (ui::button(context_, "panel.reset", "Reset all", {.width = 124})) {
        reset(entry);
    }
}

// Over the panel; without one the status line tells it.
void Shell::draw_toast(const WindowLayout& layout) {
    Entry* entry = current();
    if (entry == nullptr || !panel_shown_) return;
    const Rect panel = layout.panel;
    const bool strip = shown_tab(*entry) != Tab::exercises;
    const float below = kButtons + (strip ? exercises_.strip_height(*entry->lab) : 0);
    if (!entry->undo.swaps()) toasts_.take_undo();
    if (toasts_.draw({panel.x0 + context_.px(kPanelMargin), panel.y0, panel.x1 - context_.px(kPanelMargin),
                      panel.y1 - context_.px(below)}))
        travel(*entry, entry->undo.undo());
}

}  // namespace fp8lab
