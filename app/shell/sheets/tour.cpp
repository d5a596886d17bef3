#include "app/shell/sheets/tour.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

struct TourStep {
    std::string_view title, words, keys;
    std::string_view control;  // the ring goes around all whose probe starts with it
    std::string_view field;    // done when it changed; empty: the tour asks otherwise
    std::string_view focus;    // gets the focus at the start, so that the keys in `keys` act; empty: none
};

constexpr std::array kTour = {
    TourStep{"These eight bits are a number",
             "Click one of them to flip it. The value, the map and the list change with it.",
             "or press 0 to 7", "bits.bit", "code", ""},
    TourStep{"The same bits in another format",
             "Choose E5M2: it has one more exponent bit and one less mantissa bit.", "or press Right",
             "bits.format0", "format", "bits.format0"},
    TourStep{"Ask what anything is", "Press F1, then click a control. Esc ends the help.",
             "or go to it with Tab", "bits.format0", "", ""},
    TourStep{
        "Where each lab begins",
        "Open Learn: the lesson comes first. Exercises, beside it, ask you to predict and to experiment.",
        "or press F3", "panel.Learn", "", ""}};
constexpr std::size_t kHelp = 2, kLesson = 3;

constexpr float kTourCard = 328, kTourPad = 16, kTourApart = 14;

std::string value_of(Lab& lab, std::string_view name) {
    const auto fields = lab.fields();
    const Field* const field = find_field(fields, name);
    return field ? field_text(*field) : std::string();
}

Rect around(const ui::Context& context, std::string_view prefix) {
    Rect all{};
    for (const auto& [name, item] : context.probes.items) {
        if (!name.starts_with(prefix)) continue;
        const Rect& r = item.rect;
        all = all.width() > 0 ? Rect{std::min(all.x0, r.x0), std::min(all.y0, r.y0), std::max(all.x1, r.x1),
                                     std::max(all.y1, r.y1)}
                              : r;
    }
    return all;
}

}  // namespace

static_assert(kTour.size() == 4);

void Tour::start(ui::Context& context, const Seen& seen) {
    completed_ = false;
    enter(context, 0, seen);
}

void Tour::enter(ui::Context& context, std::size_t step, const Seen& seen) {
    step_ = step;
    before_ = value_of(*seen.lab, kTour[step].field);
    helps_ = seen.helps;
    context.focus.wanted = kTour[step].focus;
    context.wants_redraw = true;
}

bool Tour::done(const Seen& seen) const {
    if (step_ == kHelp) return seen.helps > helps_;
    if (step_ == kLesson) return seen.reading;
    return value_of(*seen.lab, kTour[step_].field) != before_;
}

bool Tour::draw(ui::Context& context, const Seen& seen) {
    const bool left = seen.lab == nullptr || seen.lab->info().id != kLab;
    if (left || (seen.free && ui::key_pressed(ui::Key::escape))) {
        stop();
        return true;
    }
    // A drag is done when it ends.
    if (done(seen) && !ImGui::GetIO().MouseDown[0]) {
        if (step_ + 1 == kTour.size()) {
            completed_ = true;
            stop();
            return true;
        }
        enter(context, step_ + 1, seen);
    }
    if (!seen.free) return false;
    const Rect target = around(context, kTour[step_].control);
    if (target.width() > 0) {
        const Rect ring = ui::inset(target, -context.px(6));
        ImGui::GetForegroundDrawList()->AddRect({ring.x0, ring.y0}, {ring.x1, ring.y1},
                                                context.color(Role::accent), context.px(8), ImDrawFlags_None,
                                                context.px(3));
    }
    if (!draw_card(context, target)) return false;
    stop();
    return true;
}

// True: "End the tour" was pressed.
bool Tour::draw_card(ui::Context& context, Rect target) {
    const TourStep& step = kTour[step_];
    const auto px = [&](float logical) { return std::round(context.px(logical)); };
    const float width = px(kTourCard);
    const auto lines = ui::wrap_lines(context, step.words, kSans13, width - 2 * px(kTourPad));
    const float height = px(2 * kTourPad + 26 + 20 * static_cast<float>(lines.size() + 1) + 44);
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    const float gap = px(kTourApart) + px(8);
    // At the bottom, under the bits: their value and what it is made of stay in sight. What is in the panel has it
    // at its left.
    const Rect bits = around(context, kTour[0].control);
    const bool beside = target.x0 > window.x / 2;
    float x = bits.width() > 0 ? bits.x0 : target.x0;
    if (beside) x = std::min(x, target.x0 - gap - width);
    float y = std::max(window.y, target.y1 + gap);
    x = std::clamp(x, px(8), std::max(px(8), window.x - width - px(8)));
    y = std::clamp(y, px(8), std::max(px(8), window.y - height - px(36)));
    const Rect card{std::round(x), std::round(y), std::round(x) + width, std::round(y) + height};

    ImGui::SetNextWindowPos({card.x0, card.y0});
    ImGui::SetNextWindowSize({card.width(), card.height()});
    ImGui::Begin("tour", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoFocusOnAppearing);
    ui::fill_rect(context, card, {Role::raised}, 6);
    ui::stroke_rect(context, card, {Role::text}, 6, 2);
    ui::probe(context, "tour", card, {}, step.title);
    const float left = card.x0 + px(kTourPad);
    float top = card.y0 + px(kTourPad);
    ui::text_mid(context, {left, top + px(11)}, step.title, {Role::text}, kBold15);
    top += px(26);
    for (const auto line : lines) {
        ui::text_mid(context, {left, top + px(10)}, line, {Role::text}, kSans13);
        top += px(20);
    }
    ui::text_mid(context, {left, top + px(10)}, step.keys, {Role::muted}, kSans13);
    const float y_buttons = card.y1 - px(kTourPad + 32);
    ui::text_mid(context, {left, y_buttons + px(16)},
                 std::to_string(step_ + 1) + " of " + std::to_string(kTour.size()), {Role::muted},
                 {Face::mono, 13});
    ImGui::SetCursorScreenPos({card.x1 - px(kTourPad + 144), y_buttons});
    const bool end = ui::button(context, "tour.end", "End the tour", {.key = "Esc", .width = 144});
    ImGui::End();
    return end;
}

}  // namespace fp8lab
