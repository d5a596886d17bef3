// The panel: Explore and Learn, the toast, Export and Reset all.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>

#include "app/shell/shell.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "labs/export.h"
#include "labs/ui/draw.h"
#include "labs/ui/markdown.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kTabs = 56, kButtons = 64, kMargin = 24;

// The lesson of a lab; empty where there is none.
std::string read_lesson(std::string_view id) {
    try {
        return read_text(asset("text/" + std::string(id) + ".md"));
    } catch (const Error&) {
        return {};
    }
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
    if (!layout.panel_open) return;

    const auto [lesson, is_new] = lessons_.try_emplace(open_);
    if (is_new) lesson->second = read_lesson(open_);
    std::vector<std::string> labels = {"Explore"};
    if (!lesson->second.empty()) labels.emplace_back("Learn");
    int selected = tab_ == Tab::learn && labels.size() > 1 ? 1 : 0;
    ui::hline(context_, panel.x0, panel.x1, context_.px(kTabs) - ui::hairline(context_), {Role::line});
    if (ui::tabs(context_, "panel", labels, selected,
                 {panel.x0 + context_.px(kMargin), context_.px(16), panel.x1 - context_.px(kMargin + 32),
                  context_.px(kTabs)})) {
        tab_ = selected == 1 ? Tab::learn : Tab::explore;
    }

    const float top = context_.px(kTabs);
    const float toast = toast_.title.empty() ? 0 : 72;
    const float height = std::max(1.0F, panel.height() - top - context_.px(kButtons + toast));
    ImGui::SetCursorScreenPos({panel.x0, top});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {context_.px(kMargin), context_.px(14)});
    ImGui::BeginChild(selected == 1 ? "learn" : "explore", {panel.width(), height}, false,
                      ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoScrollbar);
    ImGui::PopStyleVar();
    if (selected == 1) {
        ui::markdown(context_, lesson->second);
    } else {
        entry.view->explore(context_, ImGui::GetContentRegionAvail().x);
    }
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
    if (toast > 0) {
        const float bottom = panel.y1 - context_.px(kButtons);
        draw_toast({panel.x0 + context_.px(kMargin), bottom - context_.px(56),
                    panel.x1 - context_.px(kMargin), bottom});
    }
    draw_panel_buttons(entry, panel);
}

void Shell::draw_panel_buttons(Entry& entry, Rect panel) {
    const float y = std::round(panel.y1 - context_.px(48));
    ImGui::SetCursorScreenPos({panel.x0 + context_.px(kMargin), y});
    if (ui::button(context_, "panel.export", "Export", {.width = 96})) export_lab(entry);
    ImGui::SetCursorScreenPos({panel.x1 - context_.px(kMargin + 124), y});
    if (ui::button(context_, "panel.reset", "Reset all", {.width = 124})) {
        entry.lab->reset();
        toast_ = {};
    }
}

void Shell::draw_toast(Rect area) {
    ui::fill_rect(context_, area, {Role::surface}, 6);
    ui::stroke_rect(context_, area, {Role::axis}, 6);
    const float y = (area.y0 + area.y1) / 2;
    ui::disc_tick(context_, {area.x0 + context_.px(24), y}, 9, {Role::text}, {Role::surface});
    const float x = area.x0 + context_.px(44);
    ImGui::PushClipRect({area.x0, area.y0}, {area.x1 - context_.px(32), area.y1}, true);
    ui::text_mid(context_, {x, y - context_.px(9)}, toast_.title, {Role::text}, {Face::sans_bold, 15});
    ui::text_mid(context_, {x, y + context_.px(10)}, toast_.line, {Role::muted}, {Face::sans, 13});
    ImGui::PopClipRect();
    const Point close{area.x1 - context_.px(18), area.y0 + context_.px(18)};
    const float reach = context_.px(10);
    const ui::Press hit = ui::press(context_, "toast.close",
                                    {close.x - reach, close.y - reach, close.x + reach, close.y + reach}, 4);
    ui::cross(context_, close, {hit.hovered ? Role::text : Role::muted});
    ui::probe(context_, "toast", area);
    if (hit.clicked) toast_ = {};
}

void Shell::export_lab(Entry& entry) {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const std::string folder =
        fmt::format("{}-{:%Y-%m-%d-%H%M%S}", entry.lab->info().id, fmt::localtime(now));
    try {
        const auto files = export_figures(*entry.lab, profile_folder_ / "exports" / folder);
        say(fmt::format("{} files written", files.size()), "exports/" + folder);
    } catch (const std::exception& error) {
        say("Export failed", error.what());
    }
}

}  // namespace fp8lab
