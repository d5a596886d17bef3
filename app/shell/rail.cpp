// The rail.
#include <algorithm>
#include <cmath>

#include "app/shell/drawn.h"
#include "labs/ui/draw.h"

namespace fp8lab {
namespace {

constexpr float kMachine = 120;  // height of badge and reason
constexpr float kNarrowMachine = 113;
constexpr std::size_t kLabsApart = 13;

}  // namespace

void Rail::draw_item(std::string_view id, std::string_view number, std::string_view title, float share,
                     float top, bool full) {
    const float right = context_.px(full ? 212 : 48);
    const Rect row{context_.px(8), std::round(top), right, std::round(top + context_.px(36))};
    const std::string name = "rail." + std::string(id.empty() ? "home" : id);
    const ui::Press hit = ui::press(context_, name, row);
    if (hit.clicked) parts_.labs.open(id);
    const bool selected = parts_.labs.open_id() == id;
    if (selected || hit.hovered)
        ui::fill_rect(context_, row, {Role::field, Tone::line, selected ? 1.0F : 0.5F}, 6);
    const float y = (row.y0 + row.y1) / 2;
    const float bar = context_.px(full ? 8 : 2);  // "Home" fills the narrow row: the bar is beside it
    if (selected)
        ui::fill_rect(context_, {bar, row.y0 + context_.px(9), bar + context_.px(2), row.y1 - context_.px(9)},
                      {Role::text});
    const Font font{selected ? Face::sans_bold : Face::sans, 15};
    if (full) {
        ui::text_mid(context_, {context_.px(24), y}, number, {Role::muted}, kMono13);
        ui::text_mid(context_, {context_.px(number.empty() ? 24 : 60), y}, title, {Role::text}, font);
        if (!std::isnan(share)) draw_ring(context_, {context_.px(192), y}, share);
        return;
    }
    const Font small{selected ? Face::sans_bold : Face::sans, 13};
    const std::string_view words = number.empty() ? title : number;
    ui::text_mid(context_, {context_.px(28), y}, words,
                 {selected || number.empty() ? Role::text : Role::muted}, number.empty() ? small : kMono13,
                 Anchor::center);
    ui::advance(row);
    if (!number.empty()) ui::tooltip(context_, title, "");
}

// A round button with a tooltip.
ui::Press Rail::draw_disc(const char* name, Point center, const char* title, const char* key) {
    const float reach = context_.px(12);
    const Rect area{center.x - reach, center.y - reach, center.x + reach, center.y + reach};
    const ui::Press hit = ui::press(context_, name, area);
    ui::advance(area);
    ui::tooltip(context_, title, key);
    return hit;
}

// A question mark in a circle: the way to keys, palette, glossary, help and tour for the mouse.
void Rail::draw_keys_switch(Point center) {
    const ui::Press hit = draw_disc("shell.keys", center, "Keys, glossary, help", "?");
    if (hit.clicked) parts_.over.open(Sheet::keys);
    const Role ink = hit.hovered ? Role::text : Role::muted;
    ImGui::GetWindowDrawList()->AddCircle({center.x, center.y}, context_.px(8), context_.color(ink), 32,
                                          context_.px(1.25F));
    ui::text_mid(context_, center, "?", {ink}, {Face::sans_bold, 13}, Anchor::center);
}

// A disc, half dark and half light.
void Rail::draw_theme_switch(Point center) {
    const bool light = context_.theme == Theme::light;
    const ui::Press hit = draw_disc("shell.theme", center, light ? "Dark theme" : "Light theme", "Ctrl+T");
    if (hit.clicked) parts_.common.set_theme(light ? Theme::dark : Theme::light);
    const ImU32 ink = context_.color(hit.hovered ? Role::text : Role::muted);
    auto& list = *ImGui::GetWindowDrawList();
    constexpr float kQuarter = 1.5707963F;
    list.PathArcTo({center.x, center.y}, context_.px(6), -kQuarter, kQuarter, 24);
    list.PathFillConvex(ink);
    list.AddCircle({center.x, center.y}, context_.px(6), ink, 32, context_.px(1.25F));
}

// What does not fit below the labs is left out, the theme switch first: Ctrl+T does it too, and the status
// line names the provenance.
void Rail::draw_machine(const WindowLayout& layout, float labs_end) {
    const float bottom = layout.rail.y1;
    const float room = bottom - labs_end;
    const Labs::Entry* entry = parts_.labs.current();
    const Provenance provenance =
        entry != nullptr ? entry->lab->provenance() : parts_.common.machine.provenance;
    const std::string device = entry != nullptr ? entry->lab->device() : "";
    const std::string& reason = device.empty() ? parts_.common.machine.reason : device;
    if (!layout.rail_full) {
        if (room > context_.px(112)) draw_keys_switch({context_.px(28), bottom - context_.px(98)});
        if (room > context_.px(84)) draw_theme_switch({context_.px(28), bottom - context_.px(68)});
        if (room < context_.px(44)) return;
        const Rect box{context_.px(16), bottom - context_.px(40), context_.px(40), bottom - context_.px(16)};
        ui::stroke_rect(context_, box, {Role::axis}, 4);
        ui::badge_glyph(context_, provenance, {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2});
        ui::probe(context_, "badge", box);
        ui::advance(box);
        ui::tooltip(context_, ui::badge_words(provenance), reason);
        return;
    }
    if (room < context_.px(kMachine)) return;
    ui::hline(context_, context_.px(24), context_.px(196), bottom - context_.px(kMachine), {Role::line});
    ImGui::SetCursorScreenPos({context_.px(24), std::round(bottom - context_.px(104))});
    ui::badge(context_, provenance);
    const float width = context_.px(176);
    float y = bottom - context_.px(66);
    std::size_t shown = 0;
    for (const auto line : ui::wrap_lines(context_, reason, kSans13, width)) {
        if (++shown > 3) break;
        ui::text_mid(context_, {context_.px(24), y}, line, {Role::muted}, kSans13);
        y += context_.px(18);
    }
    ui::advance({context_.px(24), bottom - context_.px(76), context_.px(196), bottom - context_.px(16)});
    ui::tooltip(context_, "Where the numbers come from", reason);
}

void Rail::draw(const WindowLayout& layout) {
    const Rect rail = layout.rail;
    const bool full = layout.rail_full;
    ui::fill_rect(context_, rail, {Role::raised});
    ui::fill_rect(context_, {rail.x1 - ui::hairline(context_), rail.y0, rail.x1, rail.y1}, {Role::line});
    const Font name{Face::sans_bold, full ? 18.0F : 15.0F};
    ui::text_mid(context_, {full ? context_.px(24) : context_.px(28), context_.px(41)},
                 full ? "FP8 Lab" : "FP8", {Role::text}, name, full ? Anchor::left : Anchor::center);
    if (full) draw_keys_switch({context_.px(158), context_.px(41)});
    if (full) draw_theme_switch({context_.px(186), context_.px(41)});
    draw_item("", "", "Home", NAN, context_.px(72), full);
    ui::hline(context_, context_.px(full ? 24 : 12), context_.px(full ? 196 : 44), context_.px(116),
              {Role::line});
    const float foot = draw_labs(layout);
    draw_machine(layout, foot);
}

// The list scrolls where the window is low; the badge below it stays. Returns where it ends.
float Rail::draw_labs(const WindowLayout& layout) {
    const bool full = layout.rail_full;
    const auto entries = parts_.labs.entries();
    // With 14 labs and more they stand closer.
    const float pitch = context_.px(entries.size() > kLabsApart ? 36 : 38), from = context_.px(117);
    const float needed = context_.px(124) + pitch * static_cast<float>(entries.size()) + context_.px(12);
    const float most = layout.rail.y1 - context_.px(full ? kMachine : kNarrowMachine);
    // One lab at least, where the window has room for one: below the rail is the status line.
    const float end = std::min(std::max(most, from + pitch), layout.rail.y1);
    if (end <= from) return end;
    const bool scrolls = needed > most;
    float top = context_.px(124);
    if (scrolls) {
        ImGui::SetCursorScreenPos({layout.rail.x0, from});
        const ImVec2 size{layout.rail.width() - ui::hairline(context_), end - from};
        ImGui::BeginChild("rail.labs", size, false, ImGuiWindowFlags_NoScrollbar);
        top = ImGui::GetCursorScreenPos().y + context_.px(7);
    }
    const float first = top;
    bool numbered = true;
    for (const Labs::Entry& entry : entries) {
        const LabInfo& info = entry.info();
        if (numbered && info.number == 0) {
            top += context_.px(5);
            ui::hline(context_, context_.px(full ? 24 : 12), context_.px(full ? 196 : 44), top, {Role::line});
            top += context_.px(7);
            numbered = false;
        }
        const std::string mark =
            full || info.number > 0 ? info.mark() : std::string(info.short_title.substr(0, 1));
        draw_item(info.id, mark, info.short_title, parts_.exercises.share(*entry.lab), top, full);
        if (scrolls && parts_.labs.open_id() == info.id && shows_ != info.id) {
            ImGui::SetCursorScreenPos({layout.rail.x0, top});
            ImGui::Dummy({1, pitch});
            ImGui::SetScrollHereY();
        }
        top += pitch;
    }
    shows_ = parts_.labs.open_id();
    if (!scrolls) return top;
    ui::advance({layout.rail.x0, first, layout.rail.x0 + 1, top});
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
    return end;
}

}  // namespace fp8lab
