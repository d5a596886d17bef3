// Home: where to go on, and what each lab looks like.
#include <algorithm>
#include <cmath>

#include "app/shell/shell.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/plot.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kCardWidth = 278, kCardHeight = 236, kGap = 20, kMargin = 24, kFirstRow = 104;

}  // namespace

void Shell::draw_continue(Rect stage) {
    const auto last = std::find_if(entries_.begin(), entries_.end(), [this](const Entry& entry) {
        return entry.lab->info().id == last_at_start_;
    });
    if (last == entries_.end()) return;
    const LabInfo& info = last->lab->info();
    const std::string words =
        "Continue  L" + std::to_string(info.number) + " " + std::string(info.short_title);
    const float width = ui::text_width(context_, words, {Face::sans_bold, 15}) / context_.scale + 56;
    ImGui::SetCursorScreenPos({stage.x1 - context_.px(kMargin + width), context_.px(32)});
    if (!greeted_) {  // Enter continues
        context_.focus.id = ImGui::GetID("home.continue");
        context_.focus.visible = true;
        greeted_ = true;
    }
    if (ui::button(context_, "home.continue", words, {.primary = true, .width = width})) open(info.id);
}

void Shell::draw_card(Entry& entry, Rect card) {
    const LabInfo& info = entry.lab->info();
    const ui::Press hit = ui::press(context_, "home." + std::string(info.id), card);
    ui::fill_rect(context_, card, {Role::raised}, 6);
    ui::stroke_rect(context_, card, {info.id == last_at_start_ || hit.hovered ? Role::axis : Role::line}, 6);
    const auto px = [this](float logical) { return std::round(context_.px(logical)); };
    const Rect picture{card.x0 + px(16), card.y0 + px(18), card.x1 - px(16), card.y0 + px(134)};
    ui::PlotState still;  // a picture: nothing to remember
    ui::plot(context_, "home." + std::string(info.id) + ".picture", entry.thumbnail, still, picture,
             {.bare = true, .interactive = false, .crosshair = false});
    ui::hline(context_, card.x0, card.x1, card.y0 + px(152), {Role::line});
    const float x = card.x0 + px(16);
    ui::text_mid(context_, {x, card.y0 + px(176)}, "L" + std::to_string(info.number), {Role::muted},
                 {Face::mono, 13});
    ui::text_mid(context_, {card.x0 + px(48), card.y0 + px(176)}, info.title, {Role::text},
                 {Face::sans_bold, 15});
    ui::text_mid(context_, {x, card.y0 + px(212)}, std::to_string(info.minutes) + " min", {Role::muted},
                 {Face::sans, 13});
    if (hit.clicked) open(info.id);
}

void Shell::draw_home(const WindowLayout& layout) {
    const Rect stage{layout.stage.x0, 0, layout.status.x1, layout.stage.y1};
    ImGui::SetCursorScreenPos({stage.x0, stage.y0});
    ImGui::BeginChild("home", {stage.width(), stage.height()}, false, ImGuiWindowFlags_NoScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const auto px = [this](float logical) { return std::round(context_.px(logical)); };
    const Rect scrolled{origin.x, origin.y, origin.x + stage.width(), origin.y + stage.height()};
    const float left = origin.x + px(kMargin);
    ui::text_mid(context_, {left, origin.y + px(40)}, "Labs", {Role::text}, {Face::sans_bold, 24});
    ui::text_mid(context_, {left, origin.y + px(70)},
                 "Find out by experiment how 8-bit floats work, and when training in them works.",
                 {Role::muted}, {Face::sans, 15});
    draw_continue(scrolled);

    const float room = stage.width() - 2 * px(kMargin);
    const int columns = std::max(1, static_cast<int>((room + px(kGap)) / (px(kCardWidth) + px(kGap))));
    float bottom = origin.y;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const auto column = static_cast<float>(static_cast<int>(i) % columns);
        const auto row = static_cast<float>(static_cast<int>(i) / columns);
        const float x = left + column * (px(kCardWidth) + px(kGap));
        const float y = origin.y + px(kFirstRow) + row * (px(kCardHeight) + px(kGap));
        draw_card(entries_[i], {x, y, x + px(kCardWidth), y + px(kCardHeight)});
        bottom = y + px(kCardHeight) + px(kMargin);
    }
    ui::advance({origin.x, origin.y, origin.x + 1, std::max(bottom, origin.y + 1)});
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
}

}  // namespace fp8lab
