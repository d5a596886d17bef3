// Home.
#include <algorithm>
#include <array>
#include <cmath>

#include "app/shell/drawn.h"
#include "core/backend/recording.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab {
namespace {

constexpr float kCardWidth = 278, kCardHeight = 236, kHomeGap = 20, kMargin = 24, kFirstRow = 104;
constexpr float kKeys = 120;  // height of the foot, as the badge's in the rail
constexpr std::size_t kShortcuts = 6;

// Read once: a file that cannot be read costs only the second sentence.
const std::string& why() {
    static const std::string words = [] {
        try {
            return why_fp8(load_recording());
        } catch (const std::exception&) {
            return why_fp8(std::nullopt);
        }
    }();
    return words;
}

constexpr float kWidest = 1.5F * kCardWidth;

int columns_in(float width) {
    return std::max(1, static_cast<int>((width + kHomeGap) / (kCardWidth + kHomeGap)));
}
// The number of columns that gives the fewest rows, and rows of nearly equal length.
int card_columns(float width, int cards) {
    const int rows = (cards + columns_in(width) - 1) / columns_in(width);
    return std::max(1, (cards + rows - 1) / std::max(rows, 1));
}
int key_columns(float width) { return std::min(columns_in(width), 3); }

}  // namespace

// Returns where it begins: the right end of the text beside it.
float HomeScreen::draw_continue(Rect stage) {
    const Settings& settings = parts_.common.settings;
    const Labs::Entry* const last = parts_.labs.find(settings.last_lab);
    const bool first_time = settings.last_lab.empty() && !settings.toured;
    const float end = stage.x1 - context_.px(kMargin);
    if (last == nullptr && !first_time) return end;
    const std::string words = first_time ? "Take the tour, 40 seconds" : "Continue  " + last->name();
    const float width = ui::text_width(context_, words, kBold15) / context_.scale + 56;
    const float begin = end - context_.px(width);
    ImGui::SetCursorScreenPos({begin, stage.y0 + context_.px(32)});
    if (!greeted_) {  // Enter continues
        context_.focus.id = ImGui::GetID("home.continue");
        context_.focus.visible = true;
        greeted_ = true;
    }
    if (ui::button(context_, "home.continue", words, {.primary = true, .width = width})) {
        if (first_time) {
            parts_.over.start_tour();
        } else {
            parts_.labs.open(last->info().id);
        }
    }
    return begin - context_.px(kHomeGap);
}

// Left of that; where there is no room, its key is left. Returns as draw_continue() does.
float HomeScreen::draw_manual(float left, float end) {
    constexpr float kWidth = 132, kLeastText = 240;
    const float begin = end - context_.px(kWidth);
    if (begin - left < context_.px(kLeastText)) return end;
    ImGui::SetCursorScreenPos({begin, ImGui::GetWindowPos().y - ImGui::GetScrollY() + context_.px(32)});
    if (ui::button(context_, "shell.manual", "Manual", {.key = keys_of("manual"), .width = kWidth}))
        parts_.over.open(Sheet::manual);
    return begin - context_.px(kHomeGap);
}

// The card and, under it, the lab's question. Returns the lower end of both.
float HomeScreen::draw_card(Labs::Entry& entry, Rect card) {
    const LabInfo& info = entry.info();
    const ui::Press hit = ui::press(context_, "home." + std::string(info.id), card);
    ui::fill_rect(context_, card, {Role::raised}, 6);
    ui::stroke_rect(context_, card,
                    {info.id == parts_.common.settings.last_lab || hit.hovered ? Role::axis : Role::line}, 6);
    const auto px = [this](float logical) { return std::round(context_.px(logical)); };
    const float foot = card.y1 - px(kCardHeight - 134);  // the picture takes what the words leave
    const Rect picture{card.x0 + px(16), card.y0 + px(18), card.x1 - px(16), foot};
    ui::PlotState still;  // a picture: nothing to remember
    ui::plot(context_, "home." + std::string(info.id) + ".picture", entry.thumbnail, still, picture,
             {.bare = true, .interactive = false, .crosshair = false});
    ui::hline(context_, card.x0, card.x1, foot + px(18), {Role::line});
    const float x = card.x0 + px(16);
    ui::text_mid(context_, {x, foot + px(42)}, info.mark(), {Role::muted}, {Face::mono, 13});
    const float before = info.number > 0 ? 48 : 16;
    const float room = card.width() - px(before + 12);
    const bool fits = ui::text_width(context_, info.title, kBold15) <= room;
    ui::text_mid(context_, {card.x0 + px(before), foot + px(42)}, info.title, {Role::text},
                 {Face::sans_bold, fits ? 15.0F : 13.0F});
    std::string needs = std::to_string(info.minutes) + " min";
    if (!info.after.empty()) needs += " \u00b7 after " + std::string(info.after);
    if (!info.gpu.empty()) needs += " \u00b7 " + std::string(info.gpu);
    ui::text_mid(context_, {x, foot + px(78)}, needs, {Role::muted}, kSans13);
    if (const float share = parts_.exercises.share(*entry.lab); !std::isnan(share)) {
        const auto all = entry.lab->exercises().size();
        const auto passed = std::lround(share * static_cast<float>(all));
        const float right = card.x1 - px(16), middle = foot + px(78);
        draw_ring(context_, {right - px(7), middle}, share);
        ui::text_mid(context_, {right - px(24), middle},
                     std::to_string(passed) + " of " + std::to_string(all), {Role::muted}, kSans13,
                     Anchor::right);
    }
    float y = card.y1 + px(20);
    for (const auto line : ui::wrap_lines(context_, info.question, kSans13, card.width() - px(16))) {
        ui::text_mid(context_, {x, y}, line, {Role::muted}, kSans13);
        y += px(20);
    }
    if (hit.clicked) parts_.labs.open(info.id);
    return y;
}

std::string HomeScreen::keys_of(std::string_view command) const {
    const auto found = std::ranges::find(parts_.commands, command, &ShellCommand::id);
    return found == parts_.commands.end() ? "" : found->keys();
}

// What a newcomer needs, in the columns of the cards; all keys are on the sheet.
void HomeScreen::draw_keys(Rect area) {
    const auto px = [this](float logical) { return std::round(context_.px(logical)); };
    ui::hline(context_, area.x0, area.x1, area.y0, {Role::line});
    ui::text_mid(context_, {area.x0, area.y0 + px(28)}, "Keys and mouse", {Role::text}, kBold15);
    const int columns = key_columns(area.width() / context_.scale);
    const std::array<std::pair<std::string, const char*>, kShortcuts> shortcuts = {
        {{keys_of("palette"), "finds anything"},
         {keys_of("help"), "what is this? Then click"},
         {"Drag", "pans a figure, right zooms"},
         {keys_of("keys"), "all keys, the glossary"},
         {"Tab", "next control, Enter presses"},
         {"Wheel", "zooms, double click resets"}}};
    for (std::size_t i = 0; i < kShortcuts; ++i) {
        const auto& [keys, effect] = shortcuts[i];
        const int index = static_cast<int>(i);
        const float x = area.x0 + (px(kCardWidth) + px(kHomeGap)) * static_cast<float>(index % columns);
        const float y = area.y0 + px(58) + px(24) * static_cast<float>(index / columns);
        ui::text_mid(context_, {x, y}, keys, {Role::text}, {Face::mono, 13});
        ui::text_mid(context_, {x + px(80), y}, effect, {Role::muted}, kSans13);
    }
}

void HomeScreen::draw(const WindowLayout& layout) {
    const Rect stage{layout.stage.x0, 0, layout.status.x1, layout.stage.y1};
    ImGui::SetCursorScreenPos({stage.x0, stage.y0});
    ImGui::BeginChild("home", {stage.width(), stage.height()}, false, ImGuiWindowFlags_NoScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const auto px = [this](float logical) { return std::round(context_.px(logical)); };
    const Rect scrolled{origin.x, origin.y, origin.x + stage.width(), origin.y + stage.height()};
    const float left = origin.x + px(kMargin);
    ui::text_mid(context_, {left, origin.y + px(40)}, "Labs", {Role::text}, {Face::sans_bold, 24});
    const float room = stage.width() - 2 * px(kMargin),
                beside = draw_manual(left, draw_continue(scrolled)) - left;
    float y = origin.y + px(70);
    for (const auto line : ui::wrap_lines(context_,
                                          "Find out by experiment how 8-bit floats work, and when training "
                                          "in them works. No lab needs a GPU.",
                                          {Face::sans, 15}, beside)) {
        ui::text_mid(context_, {left, y}, line, {Role::muted}, {Face::sans, 15});
        y += px(22);
    }
    for (const auto line : ui::wrap_lines(context_, why(), kSans13, room)) {
        ui::text_mid(context_, {left, y}, line, {Role::muted}, kSans13);
        y += px(20);
    }

    const auto entries = parts_.labs.entries();
    float row_top = y + px(kFirstRow - 92);
    const int columns = card_columns(room / context_.scale, static_cast<int>(entries.size()));
    const float gaps = px(kHomeGap) * static_cast<float>(columns - 1);
    const float width =
        std::clamp(std::floor((room - gaps) / static_cast<float>(columns)), px(kCardWidth), px(kWidest));
    const float height = px(kCardHeight) + std::round((width - px(kCardWidth)) * 116 / 246);
    float bottom = row_top;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const int column = static_cast<int>(i) % columns;
        if (column == 0 && i > 0) row_top = bottom + px(kHomeGap);
        const float x = left + static_cast<float>(column) * (width + px(kHomeGap));
        bottom = std::max(bottom, draw_card(entries[i], {x, row_top, x + width, row_top + height}));
    }
    const int keys_across = key_columns(room / context_.scale);
    const int rows = (static_cast<int>(kShortcuts) + keys_across - 1) / keys_across;
    const float foot = std::max(bottom + px(kHomeGap), origin.y + stage.height() - px(kKeys));
    const Rect keys{left, foot, left + room, foot + px(72) + px(24) * static_cast<float>(rows)};
    draw_keys(keys);
    // The last 12 px are air: for them alone home does not scroll.
    ui::advance({origin.x, origin.y, origin.x + 1, std::max(keys.y1 - px(12), origin.y + 1)});
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
}

}  // namespace fp8lab
