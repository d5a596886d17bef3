#include "app/shell/sheets/toasts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr double kToast_s = 8;  // look.md 5
constexpr float kToastHeight = 56, kToastLine = 20, kToastText = 44, kToastClose = 32, kToastUndo = 76;

}  // namespace

void Toasts::say(Toast toast) {
    if (shown_.stays) warnings_.push_front(shown_);
    shown_ = std::move(toast);
    until_s_ = -1;
    context_.wants_redraw = true;
}

void Toasts::warn(std::string title, std::string line) {
    warnings_.push_back({std::move(title), std::move(line), true});
}

void Toasts::let_go() {
    if (!shown_.stays) shown_ = {};
}

const Toast* Toasts::shown() {
    if (shown_.title.empty() && !warnings_.empty()) {
        shown_ = warnings_.front();
        warnings_.pop_front();
    }
    return shown_.title.empty() ? nullptr : &shown_;
}

double Toasts::rest(double now_s) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    if (shown_.title.empty() || shown_.stays) return kNever;
    if (until_s_ < 0) until_s_ = now_s + kToast_s;
    if (now_s < until_s_) return until_s_ - now_s;
    shown_ = {};
    context_.wants_redraw = true;
    return kNever;
}

std::vector<std::string_view> Toasts::lines(float width) const {
    const float right = kToastClose + (shown_.undo ? kToastUndo + 8 : 0);
    return ui::wrap_lines(context_, shown_.line, {Face::sans, 13}, width - context_.px(kToastText + right));
}

bool Toasts::draw(Rect room) {
    if (shown() == nullptr) return false;
    const auto more = static_cast<float>(std::max<std::size_t>(lines(room.width()).size(), 1) - 1);
    const float height = std::round(context_.px(kToastHeight + kToastLine * more));
    const Rect card{room.x0, room.y1 - height, room.x1, room.y1};
    ImGui::SetNextWindowPos({card.x0, card.y0});
    ImGui::SetNextWindowSize({card.width(), card.height()});
    ImGui::Begin("toast", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoFocusOnAppearing);
    const bool undo = draw_card(card);
    ImGui::End();
    return undo;
}

bool Toasts::draw_card(Rect card) {
    ui::fill_rect(context_, card, {Role::surface}, 6);
    ui::stroke_rect(context_, card, {Role::axis}, 6);
    const float y = card.y0 + context_.px(28);
    const Point mark{card.x0 + context_.px(24), y};
    if (shown_.stays)
        ui::alert(context_, mark, {Role::warning});
    else
        ui::disc_tick(context_, mark, 9, {Role::text}, {Role::surface});
    const float x = card.x0 + context_.px(kToastText);
    ImGui::PushClipRect({card.x0, card.y0}, {card.x1 - context_.px(kToastClose), card.y1}, true);
    const auto told = lines(card.width());
    const bool beside_undo = shown_.undo && told.size() < 3;  // else the button is below the title
    const float right = kToastClose + (beside_undo ? kToastUndo + 8 : 0);
    const std::string title =
        ui::cut_end(context_, shown_.title, kBold15, card.width() - context_.px(kToastText + right));
    ui::text_mid(context_, {x, y - context_.px(9)}, title, {Role::text}, kBold15);
    float line = y + context_.px(10);
    for (const auto words : told) {
        ui::text_mid(context_, {x, line}, words, {Role::muted}, {Face::sans, 13});
        line += context_.px(kToastLine);
    }
    ImGui::PopClipRect();
    ui::probe(context_, "toast", card, {}, fmt::format("{}: {}", shown_.title, shown_.line));

    bool undo = false;
    if (shown_.undo) {
        ImGui::SetCursorScreenPos({card.x1 - context_.px(kToastClose + kToastUndo),
                                   std::round((card.y0 + card.y1) / 2 - context_.px(16))});
        undo = ui::button(context_, "toast.undo", "Undo", {.width = kToastUndo});
    }
    const Point close{card.x1 - context_.px(18), card.y0 + context_.px(18)};
    const float reach = context_.px(10);
    const ui::Press hit = ui::press(context_, "toast.close",
                                    {close.x - reach, close.y - reach, close.x + reach, close.y + reach}, 4);
    ui::cross(context_, close, {hit.hovered ? Role::text : Role::muted});
    // The rest of the card: a click closes it too. After the buttons, which are on it and come first.
    ImGui::SetCursorScreenPos({card.x0, card.y0});
    const bool anywhere = ImGui::InvisibleButton("toast.card", {card.width(), card.height()});
    if (hit.clicked || anywhere || undo) {
        shown_ = {};
        context_.wants_redraw = true;
    }
    return undo;
}

}  // namespace fp8lab
