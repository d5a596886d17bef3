#include "labs/ui/stage/stage.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "labs/ui/draw.h"
#include "labs/ui/input.h"
#include "labs/ui/stage/headings.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

namespace {

struct Headings {
    int frame = 0;
    std::vector<Rect> before, now;

    void turn() {
        if (std::exchange(frame, ImGui::GetFrameCount()) == ImGui::GetFrameCount()) return;
        before.swap(now);
        now.clear();
    }
};
Headings& all_headings() {
    static Headings headings;
    headings.turn();
    return headings;
}

}  // namespace

void mark_heading(Rect area) { all_headings().now.push_back(area); }
std::span<const Rect> marked_headings() { return all_headings().before; }

float heading(Context& c, std::string_view words, Rect area) {
    float y = area.y0;
    for (const std::string_view line : wrap_lines(c, words, kBold15, area.width())) {
        text_at(c, {area.x0, y}, line, {Role::text}, kBold15);
        const float top = std::exchange(y, y + c.px(line_height(15)));
        mark_heading({area.x0, top, area.x0 + text_width(c, line, kBold15), y});
    }
    return y;
}

void note(Context& c, std::string_view words, Rect area) {
    const auto lines = static_cast<float>(wrap_lines(c, words, kSans13, area.width()).size());
    if (area.y0 + c.px(line_height(13)) * lines <= area.y1 + 1) paragraph(c, words, area);
}

float paragraph(Context& c, std::string_view words, Rect area) {
    float y = area.y0;
    for (const std::string_view line : wrap_lines(c, words, kSans13, area.width())) {
        if (y + c.px(line_height(13)) > area.y1 + 1) break;
        text_at(c, {area.x0, y}, line, {Role::muted}, kSans13);
        y += c.px(line_height(13));
    }
    return y;
}

void end_words(Context& c, std::vector<EndWords> ends, float x, Rect area) {
    move_apart(ends, c.px(18), area.y0, area.y1);
    for (const EndWords& end : ends) {
        float at = x;
        if (!end.value.empty()) {
            text_mid(c, {at, end.y}, end.value, end.ink, kMono13);
            at += text_width(c, end.value, kMono13) + c.px(6);
        }
        const bool fits = at + text_width(c, end.name, kSans13) <= area.x1 + 1;
        if (fits)
            text_mid(c, {at, end.y}, end.name, end.value.empty() ? end.ink : Color{Role::muted}, kSans13);
    }
}

void axis_below(Context& c, const PlotResult& plot, std::string_view name,
                std::span<const std::pair<double, std::string_view>> ticks, float left) {
    const float y = plot.area.y1 + c.px(14);
    text_mid(c, {left, y}, name, {Role::muted}, kSans13);
    for (const auto& [value, words] : ticks) {
        const float x = std::round(plot.to_px(value, plot.extents.y.lo).x);
        fill_rect(c, {x, plot.area.y1, x + hairline(c), plot.area.y1 + c.px(4)}, {Role::axis});
        text_mid(c, {x, y}, words, {Role::muted}, kMono13, Anchor::center);
    }
}

void headline(Context& c, std::string_view name, const Headline& result) {
    const Rect line = next_area(c, 36);
    const float y = (line.y0 + line.y1) / 2;
    const Font font{Face::mono, 32};
    text_mid(c, {line.x0, y}, result.words, result.ink, font);
    probe(c, name, line, {}, result.words);
    const float reach = text_width(c, result.words, font);
    if (std::isfinite(result.value))
        copyable(c, "value" + std::string(name.substr(name.find('.'))),
                 {line.x0, line.y0, line.x0 + reach, line.y1}, result.value);
    const bool beside = reach + c.px(12) + text_width(c, result.of, kSans13) <= line.width();
    if (beside) text_mid(c, {line.x1, y + c.px(6)}, result.of, {Role::muted}, kSans13, Anchor::right);
    advance(line);
    if (!beside) wrapped(c, result.of);
}

float row(Context& c, const RowWords& row, Rect area, float height) {
    const float y = area.y0 + height / 2;
    hline(c, area.x0, area.x1, area.y0, {Role::line});
    text_mid(c, {area.x0, y}, row.words, {Role::text}, row.strong ? kBold13 : kSans13);
    text_mid(c, {area.x1, y}, row.value, row.ink, row.strong ? kMonoBold13 : kMono13, Anchor::right);
    return area.y0 + height;
}

bool press_row(Context& c, std::string_view name, Rect line, bool chosen) {
    if (chosen) fill_rect(c, line, {Role::field}, 4);
    const Press row = press(c, name, line, 4);
    if (row.hovered) stroke_rect(c, line, {Role::axis}, 4);
    return row.clicked;
}

Halves halves(Context& c, std::string_view name, Rect area, const std::array<std::string, 2>& names,
              int& part) {
    if (area.width() < c.px(680)) {
        corner_switch(c, std::string(name) + ".part", {area.x1, area.y0}, 200, names, part);
        const Rect rest{area.x0, area.y0 + c.px(40), area.x1, area.y1};
        return {rest, rest, part == 0, part == 1};
    }
    const float between = 17;  // logical px from the line to either part
    const float middle = std::round((area.x0 + area.x1) / 2 - c.px(10));
    fill_rect(c, {middle, area.y0 - c.px(12), middle + hairline(c), area.y1}, {Role::line});
    return {{area.x0, area.y0, middle - c.px(between), area.y1},
            {middle + c.px(between), area.y0, area.x1, area.y1}};
}

void recipe_buttons(Context& c, const std::string& name, const std::string& te_code,
                    const std::string& recipe) {
    const float half = (ImGui::GetContentRegionAvail().x / c.scale - 8) / 2;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (button(c, name + ".copy_recipe", "Copy TE recipe", {.width = half}))
        ImGui::SetClipboardText(te_code.c_str());
    tooltip(c, "Copy as Transformer Engine recipe", te_code);
    if (recipe.empty()) return;
    ImGui::SetCursorScreenPos({at.x + c.px(half + 8), at.y});
    if (button(c, name + ".train", "Train with it", {.width = half})) {
        const std::size_t colon = std::min(recipe.find(':'), recipe.size());
        c.wanted_lab = {.lab = "train",
                        .fields = {"arm_b=" + recipe.substr(0, colon), "round=recipe",
                                   "options=" + recipe.substr(std::min(colon + 1, recipe.size()))}};
    }
    tooltip(c, "Train with it", "Opens L8 with arm B = " + recipe + ".");
}

void corner_switch(Context& c, std::string_view name, Point right_top, float width,
                   std::span<const std::string> labels, int& selected) {
    ImGui::SetCursorScreenPos({right_top.x - c.px(width), right_top.y});
    ImGui::BeginChild((std::string(name) + ".switch").c_str(), {c.px(width), c.px(34)}, false,
                      ImGuiWindowFlags_NoScrollbar);
    segmented(c, name, labels, selected);
    ImGui::EndChild();
}

void knob(Context& c, Point center, float radius) {
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.AddCircleFilled({center.x, center.y}, c.px(radius + 2), c.color(Role::surface));
    list.AddCircleFilled({center.x, center.y}, c.px(radius), c.color(Role::text));
}

int arrow_step() { return (key_pressed(Key::right) ? 1 : 0) - (key_pressed(Key::left) ? 1 : 0); }

}  // namespace fp8lab::ui
