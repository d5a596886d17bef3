// One of n: the segmented switch and the drop-down list.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

int step_of(Key less, Key more) { return (key_pressed(more) ? 1 : 0) - (key_pressed(less) ? 1 : 0); }

constexpr float kRow = 32, kLowRow = 24, kPad = 12;
constexpr float kDead = 0.5F;  // opacity of a choice that cannot be chosen

int clamp_index(int index, std::size_t count) { return std::clamp(index, 0, static_cast<int>(count) - 1); }

// The open list. True when it is to be closed; `highlighted` is what Enter takes, `selected` what was taken.
bool draw_list(Context& context, std::string_view name, std::span<const std::string> labels, int& selected,
               float width, float row_height) {
    ImGuiStorage& storage = *ImGui::GetStateStorage();
    const ImGuiID highlight_id = ImGui::GetID("highlighted");
    int highlighted = storage.GetInt(highlight_id, selected);
    highlighted = clamp_index(highlighted + step_of(Key::up, Key::down), labels.size());
    bool close = key_pressed(Key::escape) || key_pressed(Key::tab);
    if (!ImGui::IsWindowAppearing() && (key_pressed(Key::enter) || key_pressed(Key::space))) {
        selected = highlighted;
        close = true;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const int index = static_cast<int>(i);
        Rect row = next_area(context, row_height);
        row.x1 = row.x0 + width;
        const std::string row_name = std::string(name) + "." + std::to_string(i);
        ImGui::SetCursorScreenPos({row.x0, row.y0});
        if (ImGui::InvisibleButton(row_name.c_str(), {row.width(), row.height()})) {
            selected = index;
            close = true;
        }
        probe(context, row_name);
        if (ImGui::IsItemHovered() && (ImGui::GetIO().MouseDelta.x != 0 || ImGui::GetIO().MouseDelta.y != 0))
            highlighted = index;
        if (index == highlighted) fill_rect(context, inset(row, context.px(2)), {Role::field}, 4);
        const Face face = index == selected ? Face::sans_bold : Face::sans;
        text_mid(context, {row.x0 + context.px(kPad), (row.y0 + row.y1) / 2}, labels[i], {Role::text},
                 {face, 15});
    }
    storage.SetInt(highlight_id, highlighted);
    return close;
}

// As wide as the control and its words; under it, above it where there is no room, inside the window always. Where neither
// side has room, its rows are lower if they then fit under it.
struct ListArea {
    Point corner;
    float width, row;  // row: logical px
};
ListArea list_area(const Context& context, Rect control, std::span<const std::string> labels) {
    float width = control.width();
    for (const std::string& label : labels)
        width = std::max(width, text_width(context, label, kBold15) + context.px(2 * kPad));
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    const float gap = context.px(4), count = static_cast<float>(labels.size());
    const auto below = [&](float row) { return control.y1 + gap + context.px(row) * count <= window.y; };
    const float above = control.y0 - gap - context.px(kRow) * count;
    const float row = !below(kRow) && above < 0 && below(kLowRow) ? kLowRow : kRow;
    const float y = below(row) ? control.y1 + gap : std::max(above, 0.0F);
    const float x = std::clamp(control.x0, 0.0F, std::max(0.0F, window.x - width));
    return {{std::round(x), std::round(y)}, std::round(width), row};
}

// The parts of a segmented switch in an area that is `width` wide: parts of one width side by side; else parts as
// wide as their labels; else parts of one width in as few rows as the widest label allows.
std::vector<Rect> parts_of(const Context& context, std::span<const std::string> labels, float width) {
    const float high = std::round(context.px(32));
    std::vector<float> needed;
    for (const std::string& label : labels)
        needed.push_back(text_width(context, label, kBold15) + context.px(12));
    const std::size_t count = labels.size();
    const float widest = std::ranges::max(needed), all = std::accumulate(needed.begin(), needed.end(), 0.0F);
    std::vector<Rect> out;
    if (widest * static_cast<float>(count) > width && all <= width) {
        const float more = (width - all) / static_cast<float>(count);
        float left = 0;
        for (const float part : needed) {
            out.push_back({std::round(left), 0, std::round(left + part + more), high});
            left += part + more;
        }
        return out;
    }
    std::size_t columns = count;
    for (std::size_t rows = 2; columns > 1 && widest * static_cast<float>(columns) > width; ++rows)
        columns = (count + rows - 1) / rows;
    const float pitch = width / static_cast<float>(columns);
    for (std::size_t i = 0; i < count; ++i) {
        const float left = std::round(static_cast<float>(i % columns) * pitch);
        const float top = high * static_cast<float>(i / columns);
        out.push_back({left, top, std::round(left + pitch), top + high});
    }
    return out;
}

}  // namespace

int index_of_choice(std::span<const std::string> labels, std::string_view chosen) {
    const auto at = std::ranges::find(labels, chosen);
    return at == labels.end() ? 0 : static_cast<int>(at - labels.begin());
}

float segmented_height(const Context& context, std::span<const std::string> labels, float width_px) {
    return parts_of(context, labels, width_px).back().y1;
}

bool segmented(Context& context, std::string_view name, std::span<const std::string> labels, int& selected,
               std::size_t enabled) {
    enabled = std::min(enabled, labels.size());
    const int before = selected;
    Rect area = next_area(context, 32);
    const std::vector<Rect> parts = parts_of(context, labels, area.width());
    area.y1 = area.y0 + parts.back().y1;
    const Press whole = press(context, name, area);
    const int step = whole.focused ? step_of(Key::left, Key::right) : 0;
    if (step != 0) selected = clamp_index(selected + step, enabled);  // -1, none: stays so until a key
    fill_rect(context, area, {Role::field}, 6);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const Rect segment{area.x0 + parts[i].x0, area.y0 + parts[i].y0, area.x0 + parts[i].x1,
                           area.y0 + parts[i].y1};
        probe(context, std::string(name) + "." + std::to_string(i), segment);
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const bool dead = i >= enabled;
        const bool under_mouse = !dead && whole.hovered && segment.contains({mouse.x, mouse.y});
        if (whole.clicked && under_mouse) selected = static_cast<int>(i);
        const bool on = static_cast<int>(i) == selected;
        if (on) {
            const Rect pill = inset(segment, context.px(2));
            fill_rect(context, pill, {Role::surface}, 5);
            stroke_rect(context, pill, {Role::axis}, 5);
        }
        const Point middle{(segment.x0 + segment.x1) / 2, (segment.y0 + segment.y1) / 2};
        const float opacity = dead ? kDead : 1.0F;
        text_mid(context, middle, labels[i],
                 {on || under_mouse ? Role::text : Role::muted, Tone::ink, opacity},
                 {on ? Face::sans_bold : Face::sans, 15}, Anchor::center);
    }
    advance(area);
    return selected != before;
}

namespace {

// What opens under a menu that was pressed, and the keys of a closed one.
struct Menu {
    std::string popup;
    ImGuiID id;
    Press hit;
    bool open;
};
Menu closed_menu(Context& context, std::string_view name, Rect area, std::size_t count, int& selected) {
    Menu menu{std::string(name) + ".list", ImGui::GetID(std::string(name).c_str()),
              press(context, name, area), false};
    menu.open = ImGui::IsPopupOpen(menu.popup.c_str());
    if (menu.hit.focused && !menu.open) selected = clamp_index(selected + step_of(Key::up, Key::down), count);
    if (menu.hit.clicked && !menu.open) {
        ImGui::OpenPopup(menu.popup.c_str());
        context.focus.modal = menu.id;
    }
    return menu;
}
void open_list(Context& context, std::string_view name, Rect area, const Menu& menu,
               std::span<const std::string> labels, int& selected) {
    const ListArea list = list_area(context, area, labels);
    ImGui::SetNextWindowPos({list.corner.x, list.corner.y});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ImGui::PushStyleColor(ImGuiCol_Border, context.color(Role::axis));
    if (ImGui::BeginPopup(menu.popup.c_str(), ImGuiWindowFlags_NoNav)) {
        if (draw_list(context, name, labels, selected, list.width, list.row)) ImGui::CloseCurrentPopup();
        ImGui::EndPopup();
    } else if (context.focus.modal == menu.id) {
        context.focus.modal = 0;
    }
    ImGui::PopStyleColor();
    ImGui::PopStyleVar(2);
}

}  // namespace

bool dropdown(Context& context, std::string_view name, std::span<const std::string> labels, int& selected) {
    const int before = selected;
    const Rect area = next_area(context, 32);
    const Menu menu = closed_menu(context, name, area, labels.size(), selected);
    fill_rect(context, area, {Role::surface}, 6);
    stroke_rect(context, area, {menu.hit.hovered || menu.open ? Role::axis : Role::line}, 6);
    const float y = (area.y0 + area.y1) / 2;
    if (selected >= 0 && selected < static_cast<int>(labels.size())) {
        constexpr Font kFont{Face::sans, 15};
        text_mid(context, {area.x0 + context.px(kPad), y},
                 cut_middle(context, labels[static_cast<std::size_t>(selected)], kFont,
                            area.width() - context.px(kPad + 32)),
                 {Role::text}, kFont);
    }
    chevron(context, {area.x1 - context.px(16), y}, Direction::down, {Role::muted});
    open_list(context, name, area, menu, labels, selected);
    advance(area);
    return selected != before;
}

bool cell_menu(Context& context, std::string_view name, Rect area, std::string_view words, Color ink,
               std::span<const std::string> labels, int& selected) {
    const int before = selected;
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    const Menu menu = closed_menu(context, name, area, labels.size(), selected);
    if (menu.hit.hovered || menu.open) stroke_rect(context, area, {Role::axis}, 4);
    const float y = (area.y0 + area.y1) / 2;
    text_mid(context, {area.x0 + context.px(4), y}, words, ink, {Face::mono, 13});
    chevron(context, {area.x1 - context.px(10), y}, Direction::down, {Role::muted});
    open_list(context, name, area, menu, labels, selected);
    ImGui::SetCursorScreenPos(cursor);
    return selected != before;
}

}  // namespace fp8lab::ui
