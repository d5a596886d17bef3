#include "app/shell/sheets/help_mode.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kCard = 360, kHelpPad = 16, kApart = 12;

Rect visible(const ui::Probes::Item& item) {
    return {std::max(item.rect.x0, item.clip.x0), std::max(item.rect.y0, item.clip.y0),
            std::min(item.rect.x1, item.clip.x1), std::min(item.rect.y1, item.clip.y1)};
}

// Beside the target where there is room, inside the window always.
Rect place(const ui::Context& context, Rect target, float width, float height) {
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    const float gap = context.px(kApart);
    float x = target.x1 + gap;
    float y = target.y0;
    if (x + width > window.x - gap) x = target.x0 - gap - width;
    if (x < gap) {  // neither side: below, or above
        x = target.x0;
        y = target.y1 + gap + height < window.y ? target.y1 + gap : target.y0 - gap - height;
    }
    x = std::round(std::clamp(x, gap, std::max(gap, window.x - width - gap)));
    y = std::round(std::clamp(y, gap, std::max(gap, window.y - height - gap)));
    return {x, y, x + width, y + height};
}

struct Line {
    std::string_view text;
    Font font;
    Role role;
    float height;  // logical
};

}  // namespace

void HelpMode::start(const ui::Context& context, std::string_view control) {
    on_ = true;
    telling_ = false;
    known_.clear();
    hovered_.clear();
    shown_ = !control.empty() ? control : context.focus.visible ? context.focus.name : "";
}

void HelpMode::stop() {
    if (on_ && telling_) ++told_;
    on_ = false;
}

const ControlHelp* HelpMode::of(const std::string& probe, const Lookup& lookup) {
    const auto [at, is_new] = known_.try_emplace(probe);
    if (is_new) at->second = lookup(probe);
    return at->second ? &*at->second : nullptr;
}

// The smallest control under the mouse of which something is known.
void HelpMode::point(ui::Context& context, const Lookup& lookup) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    hovered_.clear();
    if (card_.contains({mouse.x, mouse.y})) return;
    float least = std::numeric_limits<float>::infinity();
    for (const auto& [name, item] : context.probes.items) {
        const Rect area = visible(item);
        const float size = area.width() * area.height();
        if (!area.contains({mouse.x, mouse.y}) || size >= least || of(name, lookup) == nullptr) continue;
        hovered_ = name;
        least = size;
    }
}

void HelpMode::draw(ui::Context& context, const Lookup& lookup, std::string& term) {
    // Over everything, so that the mouse reaches nothing below.
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("help", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoScrollWithMouse);
    point(context, lookup);
    if (context.focus.moved && !context.focus.name.empty()) shown_ = context.focus.name;
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && !hovered_.empty()) shown_ = hovered_;
    for (const std::string& name : {hovered_, shown_}) {
        const auto at = context.probes.items.find(name);
        if (at == context.probes.items.end()) continue;
        ui::stroke_rect(context, ui::inset(visible(at->second), -context.px(2)),
                        {name == shown_ ? Role::text : Role::axis}, 4, name == shown_ ? 2.0F : 1.0F);
    }
    card_ = {};
    const ControlHelp* help = shown_.empty() ? nullptr : of(shown_, lookup);
    const auto at = context.probes.items.find(shown_);
    if (help != nullptr && at != context.probes.items.end()) {
        telling_ = true;
        context.focus.reach = ui::Focus::Reach::live;  // the card's own link can be pressed
        draw_card(context, *help, visible(at->second), term);
    }
    draw_banner(context);
    const ImVec2 mouse = ImGui::GetIO().MousePos;  // beside the arrow
    const Point mark{mouse.x + context.px(16), mouse.y + context.px(20)};
    auto& list = *ImGui::GetForegroundDrawList();
    list.AddCircleFilled({mark.x, mark.y}, context.px(9), context.color(Role::accent));
    ImFont* face = context.font(kBold13);
    const float width = face->CalcTextSizeA(face->FontSize, FLT_MAX, 0, "?").x;
    list.AddText(face, face->FontSize, {mark.x - width / 2, mark.y - face->FontSize / 2},
                 context.color(Role::inverse), "?");
    ImGui::End();
}

void HelpMode::draw_banner(ui::Context& context) {
    const std::string_view words = "What is this? Click a control, or go to it with Tab. Esc ends the help.";
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    const float width = std::round(ui::text_width(context, words, kSans13) + context.px(2 * kHelpPad));
    // At the bottom, in the middle; where the card is, beside it, and never over the lab's title.
    const float gap = context.px(kApart), tall = std::round(context.px(36));
    float x = (window.x - width) / 2, y = std::round(window.y - context.px(76));
    if (card_.y1 > y - gap && card_.x1 > x - gap && card_.x0 < x + width + gap) {
        const float left = card_.x0 - gap - width, right = card_.x1 + gap;
        if (left >= gap || right + width <= window.x - gap)
            x = left >= gap ? left : right;
        else
            y = std::max(context.px(8), std::round(card_.y0 - gap - tall));  // no room beside it: above
    }
    x = std::round(x);
    const Rect box{x, y, x + width, y + tall};
    ui::fill_rect(context, box, {Role::accent}, 6);
    ui::text_mid(context, {box.x0 + context.px(kHelpPad), (box.y0 + box.y1) / 2}, words, {Role::inverse},
                 kSans13);
    ui::probe(context, "help", box);
}

void HelpMode::draw_card(ui::Context& context, const ControlHelp& help, Rect target, std::string& term) {
    const float inner = context.px(kCard - 2 * kHelpPad);
    std::vector<Line> lines;
    const auto add = [&](std::string_view text, Font font, Role role) {
        for (const auto line : ui::wrap_lines(context, text, font, inner))
            lines.push_back({line, font, role, ui::line_height(font.size)});
    };
    const auto gap = [&] { lines.push_back({"", kSans13, Role::text, 8}); };
    add(help.title, kBold15, Role::text);
    if (!help.te_name.empty()) add(help.te_name, kMono13, Role::muted);
    add(help.what, kSans13, Role::text);
    add(help.values, kSans13, Role::muted);
    if (!help.term_text.empty()) {
        gap();
        add(help.term_text, kSans13, Role::text);
    }
    if (!help.why.empty()) {
        gap();
        add("Why it matters", kBold13, Role::text);
        add(help.why, kSans13, Role::text);
    }
    float height = 2 * kHelpPad + (help.term.empty() ? 0 : 44);
    for (const Line& line : lines) height += line.height;
    card_ = place(context, target, std::round(context.px(kCard)), std::round(context.px(height)));
    ui::fill_rect(context, card_, {Role::raised}, 6);
    ui::stroke_rect(context, card_, {Role::axis}, 6);
    ui::probe(context, "help.card", card_, {}, help.title);
    float y = card_.y0 + context.px(kHelpPad);
    for (const Line& line : lines) {
        ui::text_mid(context, {card_.x0 + context.px(kHelpPad), y + context.px(line.height / 2)}, line.text,
                     {line.role}, line.font);
        y += context.px(line.height);
    }
    if (help.term.empty()) return;
    ImGui::SetCursorScreenPos({card_.x0 + context.px(kHelpPad), card_.y1 - context.px(kHelpPad + 32)});
    const bool entered = context.focus.name != "help.term" && ui::key_pressed(ui::Key::enter);
    if (ui::button(context, "help.term", "In the glossary", {.key = "Enter"}) || entered) term = help.term;
}

}  // namespace fp8lab
