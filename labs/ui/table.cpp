// Table rows and tooltips.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "labs/ui/draw.h"
#include "labs/ui/stage/headings.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

void table_row(Context& context, std::span<const Cell> cells, std::span<const float> columns_px) {
    const Rect row = next_area(context, 32);
    float width = 0;
    for (const float column : columns_px) width += column;
    hline(context, row.x0, row.x0 + width, row.y0, {Role::line});
    float left = row.x0;
    const float y = (row.y0 + row.y1) / 2;
    for (std::size_t i = 0; i < std::min(cells.size(), columns_px.size()); ++i) {
        const Cell& cell = cells[i];
        const float right = left + columns_px[i];
        const float x = cell.anchor == Anchor::left    ? left
                        : cell.anchor == Anchor::right ? right
                                                       : (left + right) / 2;
        const Face face = cell.mono ? (cell.strong ? Face::mono_bold : Face::mono)
                                    : (cell.strong ? Face::sans_bold : Face::sans);
        text_mid(context, {x, y}, cell.text, {cell.role, cell.tone}, {face, 13}, cell.anchor);
        if (cell.value) {
            const float reach = text_width(context, cell.text, {face, 13}) + context.px(6);
            copyable(context, "value." + cells.front().text + "." + std::to_string(i),
                     {right - reach, y - context.px(12), right, y + context.px(12)}, *cell.value);
        }
        left = right;
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});  // rows touch: the hairline is the gap
    advance({row.x0, row.y0, row.x0 + width, row.y1});
    ImGui::PopStyleVar();
}

void table_end(Context& context, std::span<const float> columns_px) {
    const Rect area = next_area(context, 4);
    float width = 0;
    for (const float column : columns_px) width += column;
    hline(context, area.x0, area.x0 + width, area.y0, {Role::line});
    advance(area);
}

namespace {

// The top for the box that is nearest to its own: within the window, and on no heading where there is such a place.
float beside_headings(Rect box, float gap) {
    const float height = box.height(), lowest = ImGui::GetIO().DisplaySize.y - height - gap;
    const float own = std::clamp(box.y0, gap, std::max(gap, lowest));
    std::vector<float> tops = {own};
    for (const Rect& heading : marked_headings()) {
        tops.push_back(heading.y1 + gap);
        tops.push_back(heading.y0 - gap - height);
    }
    const auto is_free = [&](float top) {
        return top >= gap && top <= lowest && std::ranges::none_of(marked_headings(), [&](const Rect& h) {
                   return h.x0 < box.x1 && h.x1 > box.x0 && h.y0 < top + height && h.y1 > top;
               });
    };
    std::erase_if(tops, [&](float top) { return !is_free(top); });
    const auto distance = [&](float top) { return std::abs(top - own); };
    return tops.empty() ? own : std::round(std::ranges::min(tops, {}, distance));
}

}  // namespace

void tooltip(Context& context, std::string_view title, std::string_view body) {
    constexpr double kDelay_s = 0.4;
    constexpr float kWidth = 280;
    if (!ImGui::IsItemHovered()) return;
    const ImVec2 lo = ImGui::GetItemRectMin();
    const ImVec2 hi = ImGui::GetItemRectMax();
    auto& hover = context.hover;
    if (hover.rect.x0 != lo.x || hover.rect.y0 != lo.y || hover.rect.x1 != hi.x)
        hover = {{lo.x, lo.y, hi.x, hi.y}, ImGui::GetTime()};
    if (ImGui::GetTime() - hover.since < kDelay_s) {
        context.wants_redraw = true;
        return;
    }
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {context.px(12), context.px(12)});
    ImGui::PushStyleVar(ImGuiStyleVar_PopupRounding, context.px(4));
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ImGui::PushStyleColor(ImGuiCol_Border, context.color(Role::axis));
    // Left of a control at the right, so that the next one below stays in sight; else right of it, if it fits.
    const float width = context.px(kWidth + 24), gap = context.px(8);
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    const auto lines = wrap_lines(context, body, {Face::sans, 13}, context.px(kWidth)).size();
    const float height = context.px(24 + 20 * static_cast<float>(lines + 1));
    const float left = lo.x - gap - width, right = hi.x + gap;
    const bool at_right = (lo.x + hi.x) / 2 > window.x / 2;
    const auto place = [&](float x) {
        const Rect box{std::round(x), lo.y, std::round(x) + width, lo.y + height};
        ImGui::SetNextWindowPos({box.x0, beside_headings(box, gap)});
    };
    if (at_right && left >= gap)
        place(left);
    else if (right + width <= window.x - gap)
        place(right);
    ImGui::SetNextWindowSize({width, 0});
    ImGui::BeginTooltip();
    text(context, title, Role::text, {Face::sans_bold, 13});
    wrapped(context, body, Role::muted, {Face::sans, 13});
    ImGui::EndTooltip();
    ImGui::PopStyleColor();
    ImGui::PopStyleVar(3);
}

float head(Context& context, Point middle_px, std::string_view words, std::string_view term, Anchor anchor) {
    if (words.empty()) return middle_px.x;
    constexpr Font kHead{Face::sans, 13};
    const float width = text_width(context, words, kHead), half = context.px(9);
    const float left = middle_px.x - (anchor == Anchor::right    ? width
                                      : anchor == Anchor::center ? width / 2
                                                                 : 0);
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos({left, middle_px.y - half});
    ImGui::Dummy({std::max(1.0F, width), 2 * half});
    const Rect drawn{left, middle_px.y - half, left + width, middle_px.y + half};
    probe(context, "head." + std::string(term), drawn, {}, words);
    mark_heading(drawn);
    const Term* entry = context.glossary ? context.glossary->find(term) : nullptr;
    const bool hovered = entry && ImGui::IsItemHovered();
    text_mid(context, middle_px, words, {hovered ? Role::text : Role::muted}, kHead, anchor);
    if (entry) {
        tooltip(context, entry->term, entry->text);
        const bool live = context.focus.reach == Focus::Reach::live;
        if (hovered && live && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) context.wanted_term = entry->id;
    }
    ImGui::SetCursorScreenPos(cursor);
    return left;
}

}  // namespace fp8lab::ui
