// The panel.
#include <algorithm>
#include <cmath>

#include "app/shell/drawn.h"
#include "labs/ui/draw.h"
#include "labs/ui/markdown.h"

namespace fp8lab {
namespace {

constexpr float kTabs = 56, kButtons = 64, kPanelMargin = 24;

const char* label_of(Tab tab) {
    return tab == Tab::explore ? "Explore" : tab == Tab::learn ? "Learn" : "Exercises";
}

}  // namespace

void Panel::draw_head(const WindowLayout& layout, Labs::Entry& entry) {
    const Rect panel = layout.panel;
    ui::fill_rect(context_, panel, {Role::raised});
    ui::fill_rect(context_, {panel.x0, panel.y0, panel.x0 + ui::hairline(context_), panel.y1}, {Role::line});
    const float y = context_.px(36);
    const float arrow = layout.panel_open ? panel.x1 - context_.px(29) : (panel.x0 + panel.x1) / 2;
    const float reach = context_.px(12);
    const ui::Press fold =
        ui::press(context_, "panel.fold", {arrow - reach, y - reach, arrow + reach, y + reach}, 4);
    if (fold.clicked) parts_.labs.toggle_panel();
    ui::chevron(context_, {arrow, y}, layout.panel_open ? ui::Direction::right : ui::Direction::left,
                {fold.hovered ? Role::text : Role::muted});
    if (!layout.panel_open) return;
    const std::vector<Tab> tabs = parts_.labs.tabs_of(entry);
    std::vector<std::string> labels;
    for (const Tab tab : tabs) labels.emplace_back(label_of(tab));
    int selected = static_cast<int>(std::ranges::find(tabs, parts_.labs.shown_tab(entry)) - tabs.begin());
    ui::hline(context_, panel.x0, panel.x1, context_.px(kTabs) - ui::hairline(context_), {Role::line});
    if (ui::tabs(context_, "panel", labels, selected,
                 {panel.x0 + context_.px(kPanelMargin), context_.px(16),
                  panel.x1 - context_.px(kPanelMargin + 32), context_.px(kTabs)})) {
        parts_.labs.show(tabs[static_cast<std::size_t>(selected)]);
    }
}

void Panel::draw(const WindowLayout& layout, Labs::Entry& entry) {
    draw_head(layout, entry);
    parts_.labs.panel_shown = layout.panel_open;
    if (!layout.panel_open) return;
    const Rect panel = layout.panel;
    const float top = context_.px(kTabs);
    const Tab tab = parts_.labs.shown_tab(entry);
    const float strip = tab == Tab::exercises ? 0 : parts_.exercises.strip_height(*entry.lab);
    const float height = std::max(1.0F, panel.height() - top - context_.px(kButtons + strip));
    ImGui::SetCursorScreenPos({panel.x0, top});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {context_.px(kPanelMargin), context_.px(14)});
    // A child of its own for each lab and tab: it keeps where it was scrolled to, and a new one starts at its top.
    ImGui::BeginChild((label_of(tab) + ("." + parts_.labs.open_id())).c_str(), {panel.width(), height}, false,
                      ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoScrollbar);
    ImGui::PopStyleVar();
    draw_tab(entry, tab);
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
    const float left = panel.x0 + context_.px(kPanelMargin), right = panel.x1 - context_.px(kPanelMargin);
    const float bottom = panel.y1 - context_.px(kButtons);
    if (strip > 0 &&
        parts_.exercises.draw_strip(*entry.lab, {left, bottom - context_.px(strip - 16), right, bottom}))
        parts_.labs.show(Tab::exercises);
    draw_buttons(entry, panel);
}

void Panel::draw_tab(Labs::Entry& entry, Tab tab) {
    if (tab == Tab::explore) entry.view->explore(context_, ImGui::GetContentRegionAvail().x);
    if (tab == Tab::learn) {
        const std::string term = ui::markdown(context_, parts_.labs.lesson(), [&](std::string_view id) {
            pictures_.draw(context_, "lesson." + std::string(id), id);
        });
        claims_.draw(context_, *entry.lab, parts_.exercises.under_way(*entry.lab));
        entry.view->lesson_end(context_);
        if (!term.empty()) parts_.over.show_term(term);
    }
    if (tab == Tab::exercises) {
        parts_.exercises.draw_panel(*entry.lab);
        ui::divider(context_);
        if (ui::button(context_, "exercise.hand_in", "Hand in\u2026", {.width = 116}))
            parts_.over.export_files(ExportPanel::What::submission,
                                     parts_.labs.predicting(entry) ? nullptr : entry.lab.get());
    }
}

void Panel::draw_buttons(Labs::Entry& entry, Rect panel) {
    const float y = std::round(panel.y1 - context_.px(48));
    ImGui::SetCursorScreenPos({panel.x0 + context_.px(kPanelMargin), y});
    const bool exercising =
        parts_.labs.shown_tab(entry) == Tab::exercises && parts_.exercises.has_hint(*entry.lab);
    if (exercising) {
        if (ui::button(context_, "panel.hint", "Next hint", {.key = "H", .width = 120}))
            parts_.exercises.next_hint(*entry.lab);
    } else if (ui::button(context_, "panel.export", "Export", {.width = 96})) {
        parts_.over.export_files(ExportPanel::What::figures, entry.lab.get());
    }
    ImGui::SetCursorScreenPos({panel.x1 - context_.px(kPanelMargin + 124), y});
    if (ui::button(context_, "panel.reset", "Reset all", {.width = 124})) {
        parts_.past.reset(entry);
    }
}

// Over the panel; without one the status line tells it.
void Panel::draw_toast(const WindowLayout& layout) {
    Labs::Entry* entry = parts_.labs.current();
    if (entry == nullptr || !parts_.labs.panel_shown) return;
    const Rect panel = layout.panel;
    const bool strip = parts_.labs.shown_tab(*entry) != Tab::exercises;
    const float below = kButtons + (strip ? parts_.exercises.strip_height(*entry->lab) : 0);
    if (!entry->undo.swaps()) parts_.common.toasts.take_undo();
    if (parts_.common.toasts.draw({panel.x0 + context_.px(kPanelMargin), panel.y0,
                                   panel.x1 - context_.px(kPanelMargin), panel.y1 - context_.px(below)}))
        parts_.past.undo(*entry);
}

}  // namespace fp8lab
