#include "app/shell/sheets/finder.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/shell/sheets/sheet.h"
#include "core/base/match.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kFinderLine = 40, kRow = 36, kKinds = 84, kPad = 12;
constexpr float kMostOfSheet = 0.36F, kBeside = 32, kBelowTitle = 16;
constexpr std::ptrdiff_t kPage = 8;

void append_utf8(std::string& text, unsigned c) {
    const auto byte = [&](unsigned value) { text += static_cast<char>(value); };
    if (c < 0x80) {
        byte(c);
    } else if (c < 0x800) {
        byte(0xC0 | (c >> 6));
        byte(0x80 | (c & 0x3F));
    } else {  // ImWchar has 16 bits
        byte(0xE0 | (c >> 12));
        byte(0x80 | ((c >> 6) & 0x3F));
        byte(0x80 | (c & 0x3F));
    }
}

void erase_last(std::string& text) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
    if (!text.empty()) text.pop_back();
}

}  // namespace

void Finder::open(std::string query) {
    query_ = std::move(query);
    matched_.reset();
    at_ = 0;
}

void Finder::select(std::size_t row) {
    open();
    found_.clear();
    at_ = row;  // match() of an empty query keeps the order of the rows
    moved_ = true;
}

std::optional<std::size_t> Finder::selected() const {
    return at_ < found_.size() ? std::optional(found_[at_]) : std::nullopt;
}

void Finder::type(const ui::Context& context) {
    const ImGuiIO& io = ImGui::GetIO();
    for (const ImWchar c : io.InputQueueCharacters) {
        const bool presses = c == ' ' && context.focus.visible;  // a control with the ring
        if (c >= ' ' && c != 0x7F && !presses) append_utf8(query_, c);
    }
    if (ui::key_pressed(ui::Key::backspace)) erase_last(query_);
    if (io.KeyCtrl && ui::key_pressed(ui::Key::v))
        if (const char* pasted = ImGui::GetClipboardText()) query_ += pasted;
    const auto move = [this](std::ptrdiff_t by) {
        const auto last = static_cast<std::ptrdiff_t>(found_.size()) - 1;
        at_ = static_cast<std::size_t>(std::clamp(static_cast<std::ptrdiff_t>(at_) + by, std::ptrdiff_t{0},
                                                  std::max(last, std::ptrdiff_t{0})));
        moved_ = true;
    };
    if (ui::key_pressed(ui::Key::down)) move(1);
    if (ui::key_pressed(ui::Key::up)) move(-1);
    if (ui::key_pressed(ui::Key::page_down)) move(kPage);
    if (ui::key_pressed(ui::Key::page_up)) move(-kPage);
}

void Finder::match(std::span<const FindRow> rows) {
    if (matched_ && *matched_ != query_) at_ = 0;
    matched_ = query_;
    std::vector<std::pair<int, std::size_t>> scored;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        // A match in the title scores higher than one in the words beside it.
        const int title = 4 * match_score(query_, rows[i].title);
        const int all = match_score(query_, rows[i].kind + " " + rows[i].title + " " + rows[i].also, false);
        if (const int score = std::max(title, all); score > 0)
            scored.emplace_back(query_.empty() ? 1 : score, i);
    }
    std::ranges::stable_sort(scored, std::ranges::greater{}, &std::pair<int, std::size_t>::first);
    found_.clear();
    for (const auto& [score, row] : scored) found_.push_back(row);
    at_ = found_.empty() ? 0 : std::min(at_, found_.size() - 1);
}

bool Finder::draw_row(ui::Context& context, const std::string& name, const FindRow& row, Rect area,
                      bool selected) {
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    const bool taken = ImGui::InvisibleButton(name.c_str(), {area.width(), area.height()});
    const bool hovered = ImGui::IsItemHovered();
    ui::probe(context, name, area, {}, row.title);
    if (selected || hovered)
        ui::fill_rect(context, area, {Role::field, Tone::line, selected ? 1.0F : 0.5F}, 4);
    const float y = (area.y0 + area.y1) / 2;
    float x = area.x0 + context.px(kPad), end = area.x1 - context.px(kPad);
    if (!row.kind.empty()) {
        ui::text_mid(context, {x, y}, row.kind, {Role::muted}, kSans13);
        x += context.px(kKinds);
    }
    ui::text_mid(context, {x, y}, row.title, {Role::text}, selected ? kBold15 : kSans15);
    x += ui::text_width(context, row.title, kBold15) + context.px(kPad);
    if (!row.keys.empty()) {
        ui::text_mid(context, {end, y}, row.keys, {Role::muted}, kMono13, Anchor::right);
        end -= ui::text_width(context, row.keys, kMono13) + context.px(kPad);
    }
    const auto lines = ui::wrap_lines(context, row.detail, kSans13, end - x);
    if (lines.size() == 1) ui::text_mid(context, {x, y}, lines.front(), {Role::muted}, kSans13);
    return taken;
}

std::optional<std::size_t> Finder::draw(ui::Context& context, std::string_view name,
                                        std::span<const FindRow> rows, Rect area,
                                        std::string_view placeholder) {
    type(context);
    match(rows);
    const std::string id(name);
    const Rect line{area.x0, area.y0, area.x1, area.y0 + std::round(context.px(kFinderLine))};
    ui::fill_rect(context, line, {Role::surface}, 4);
    ui::stroke_rect(context, line, {Role::axis}, 4);
    ui::probe(context, id + ".query", line, {}, query_);
    const float y = (line.y0 + line.y1) / 2, x = line.x0 + context.px(kPad);
    ui::text_mid(context, {x, y}, query_.empty() ? placeholder : query_,
                 {query_.empty() ? Role::muted : Role::text}, kSans15);
    const float caret = std::round(x + ui::text_width(context, query_, kSans15));
    ui::fill_rect(context, {caret, y - context.px(9), caret + ui::hairline(context), y + context.px(9)},
                  {Role::text});

    std::optional<std::size_t> taken;
    ImGui::SetCursorScreenPos({area.x0, line.y1 + context.px(8)});
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ImGui::BeginChild(id.c_str(), {area.width(), std::max(1.0F, area.y1 - line.y1 - context.px(8))}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoNav);
    if (found_.empty()) ui::wrapped(context, "Nothing has that name.");
    const float height = std::round(context.px(kRow));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x - context.px(8);
    for (std::size_t i = 0; i < found_.size(); ++i) {
        const float top = at.y + height * static_cast<float>(i);
        const Rect row{at.x, top, at.x + width, top + height};
        const bool shown = ImGui::IsRectVisible({row.x0, row.y0}, {row.x1, row.y1});
        if (i == at_ && moved_) {
            const float from_top = row.y0 - ImGui::GetWindowPos().y;
            if (from_top < 0) ImGui::SetScrollFromPosY(from_top, 0);
            if (from_top + height > ImGui::GetWindowHeight()) ImGui::SetScrollFromPosY(from_top + height, 1);
            moved_ = false;
        }
        if (shown && draw_row(context, id + "." + std::to_string(i), rows[found_[i]], row, i == at_)) {
            at_ = i;
            taken = found_[i];
        }
    }
    ImGui::SetCursorScreenPos({at.x, at.y + height * static_cast<float>(found_.size())});
    ImGui::Dummy({1, 1});
    ui::scroll_thumbs(context);
    ImGui::EndChild();
    ImGui::PopStyleVar();
    if (!context.focus.visible && ui::key_pressed(ui::Key::enter)) taken = selected();
    return taken;
}

bool draw_finder_sheet(ui::Context& context, const FinderSheet& sheet, Finder& finder,
                       std::span<const FindRow> rows) {
    const SheetArea area = begin_sheet(context, sheet.name, sheet.title, sheet.width, sheet.height);
    const auto px = [&](float logical) { return std::round(context.px(logical)); };
    const Rect all = area.content;
    const float top = all.y0 + px(kBelowTitle);
    const float list = std::min(px(sheet.list_width), std::round(all.width() * kMostOfSheet));
    finder.draw(context, sheet.list, rows, {all.x0, top, all.x0 + list, all.y1}, "Type to search");
    if (const auto row = finder.selected()) {
        begin_sheet_list(context, sheet.part(*row), {all.x0 + list + px(kBeside), top, all.x1, all.y1});
        ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
        sheet.draw(*row);
        ImGui::PopStyleVar();
        end_sheet_list(context);
    }
    end_sheet();
    return area.closed;
}

}  // namespace fp8lab
