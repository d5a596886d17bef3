#include "app/shell/sheets/key_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "app/shell/sheets/sheet.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kKeysWidth = 980, kKeysHeight = 660, kKeysColumnWidth = 296, kKeysKeyWidth = 112, kHead = 36,
                kKeysRow = 26, kKeysGap = 16;

constexpr std::string_view kAsk = "Find and ask";  // the group that has buttons at the foot

struct Row {
    std::string keys, effect;
};
struct Block {
    std::string title;
    std::vector<Row> rows;
    float height() const { return kHead + kKeysRow * static_cast<float>(rows.size()) + kKeysGap; }  // logical
};

// What is no command: the controls and the figures do it themselves.
const std::array<Block, 2>& gestures() {
    static const std::array<Block, 2> kGestures = {Block{"Controls",
                                                         {{"Tab", "next control, with Shift back"},
                                                          {"Enter", "presses it; edits a value"},
                                                          {"Left, Right", "move a slider or a switch"},
                                                          {"Up, Down", "choose from a list"},
                                                          {"Home, End", "ends of a slider"},
                                                          {"Esc", "closes what is open"}}},
                                                   Block{"Figures",
                                                         {{"Drag", "pans; right button zooms"},
                                                          {"Wheel", "zooms; on an axis that one"},
                                                          {"Double click", "shows all again"}}}};
    return kGestures;
}

std::vector<Block> blocks_of(std::span<const ShellCommand> commands, std::span<const ViewKey> lab_keys,
                             const std::string& lab) {
    std::vector<Block> blocks;
    if (!lab_keys.empty()) {
        blocks.push_back({lab, {}});
        for (const ViewKey& key : lab_keys)
            blocks.back().rows.push_back({std::string(key.keys), std::string(key.effect)});
    }
    const std::size_t first = blocks.size();
    for (const ShellCommand& command : commands) {
        if (command.chords.empty()) continue;
        const auto same = [&](const Block& block) { return block.title == command.group; };
        auto block = std::find_if(blocks.begin() + static_cast<std::ptrdiff_t>(first), blocks.end(), same);
        if (block == blocks.end()) block = blocks.insert(blocks.end(), {command.group, {}});
        block->rows.push_back({command.keys(), command.label});
    }
    blocks.insert(blocks.end(), gestures().begin(), gestures().end());
    return blocks;
}

void draw_block(ui::Context& context, const Block& block, float x, float y) {
    ui::text_mid(context, {x, y + context.px(14)}, block.title, {Role::text}, kBold15);
    y += context.px(kHead);
    for (const Row& row : block.rows) {
        ui::text_mid(context, {x, y + context.px(kKeysRow / 2)}, row.keys, {Role::text}, {Face::mono, 13});
        ui::text_mid(context, {x + context.px(kKeysKeyWidth), y + context.px(kKeysRow / 2)}, row.effect,
                     {Role::muted}, {Face::sans, 13});
        y += context.px(kKeysRow);
    }
}

}  // namespace

bool draw_key_sheet(ui::Context& context, std::span<const ShellCommand> commands,
                    std::span<const ViewKey> lab_keys, const std::string& lab, std::string& run) {
    const SheetArea sheet = begin_sheet(context, "keys", "Keys and mouse", kKeysWidth, kKeysHeight);
    const Rect area{sheet.content.x0, sheet.content.y0, sheet.content.x1, sheet.content.y1 - context.px(48)};
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("keys.list", {area.width(), area.height()}, false, ImGuiWindowFlags_NoScrollbar);
    const std::vector<Block> blocks = blocks_of(commands, lab_keys, lab);
    float total = 0;
    for (const Block& block : blocks) total += block.height();
    const int columns = std::max(
        1, static_cast<int>((area.width() / context.scale + kKeysGap) / (kKeysColumnWidth + kKeysGap)));
    // Blocks stay whole and in order; a column takes the next one while that leaves it nearer to an equal
    // share.
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float pitch = std::round((area.width() + context.px(kKeysGap)) / static_cast<float>(columns));
    const float share = total / static_cast<float>(columns), top = at.y + context.px(kKeysGap);
    float x = at.x, y = 0, lowest = 0;
    int column = 1;
    for (const Block& block : blocks) {
        if (y > 0 && column < columns && y + block.height() / 2 > share) {
            x += pitch;
            y = 0;
            ++column;
        }
        draw_block(context, block, x, top + context.px(y));
        y += block.height();
        lowest = std::max(lowest, y);
    }
    // Arrow keys scroll where the window is too small for all.
    const float step = context.px(2 * kKeysRow);
    if (ui::key_pressed(ui::Key::down)) ImGui::SetScrollY(ImGui::GetScrollY() + step);
    if (ui::key_pressed(ui::Key::up)) ImGui::SetScrollY(std::max(0.0F, ImGui::GetScrollY() - step));
    ui::advance({at.x, at.y, at.x + 1, top + context.px(lowest)});
    ui::scroll_thumbs(context);
    ImGui::EndChild();
    // The mouse gets to everything from here.
    ImGui::SetCursorScreenPos({area.x0, sheet.content.y1 - context.px(32)});
    for (const ShellCommand& command : commands) {
        if (command.group != kAsk || command.id == "keys" || !command.applies()) continue;
        if (ui::button(context, "keys." + command.id, command.label)) run = command.id;
        ImGui::SameLine();
    }
    end_sheet();
    return !sheet.closed;
}

}  // namespace fp8lab
