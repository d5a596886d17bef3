#include "app/shell/sheets/words_sheet.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/shell/sheets/sheet.h"
#include "core/figure/csv.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kWordsWidth = 860, kWordsHeight = 680, kFoot = 52, kNumber = 108, kStep = 66;
constexpr std::size_t kRows = 6;

std::string text_of(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& sentence : words) out += sentence + "\n";
    return out;
}

}  // namespace

void WordsSheet::read(const Lab& lab) {
    pages_.clear();
    for (const Figure& figure : lab.figures())
        pages_.push_back({figure, to_words(figure), to_table(figure, kRows)});
}

// The name's column takes what the numbers leave.
void WordsSheet::draw_table(ui::Context& context, const FigureTable& table) {
    if (table.rows.empty()) return;
    const float all = ui::next_area(context, 1).width();
    const float number = std::min(context.px(kNumber), all / static_cast<float>(table.header.size() + 1));
    const auto numbers = static_cast<float>(table.header.size() - 1);
    std::vector<float> columns = {all - number * numbers};
    columns.resize(table.header.size(), number);
    const auto row = [&](const std::vector<std::string>& texts, Role role, bool mono) {
        std::vector<ui::Cell> cells;
        for (const std::string& text : texts) {
            const bool name = cells.empty();
            cells.push_back({.text = text,
                             .role = role,
                             .mono = mono && !name,
                             .anchor = name ? Anchor::left : Anchor::right});
        }
        const auto lines =
            ui::wrap_lines(context, cells.front().text, {Face::sans, 13}, columns.front() - context.px(8));
        if (lines.size() > 1) cells.front().text = std::string(lines.front()) + " ...";
        ui::table_row(context, cells, columns);
    };
    row(table.header, Role::muted, false);
    for (const auto& texts : table.rows) row(texts, Role::text, true);
    ui::table_end(context, columns);
}

void WordsSheet::draw_page(ui::Context& context, const Page& page, Done& done) {
    for (std::size_t i = 0; i < page.words.size(); ++i)
        ui::wrapped(context, page.words[i], Role::text, {i == 0 ? Face::sans_bold : Face::sans, 15});
    draw_table(context, page.table);
    if (page.table.total > page.table.rows.size())
        ui::wrapped(context, fmt::format("The first {} of {} rows. The copy has all rows, with every digit.",
                                         page.table.rows.size(), page.table.total));
    if (ui::button(context, "words.copy." + page.figure.id, "Copy words")) {
        ImGui::SetClipboardText(text_of(page.words).c_str());
        done.title = "Words copied", done.line = page.words.front();
    }
    ImGui::SameLine(0, context.px(8));
    if (ui::button(context, "words.table." + page.figure.id, "Copy table")) {
        ImGui::SetClipboardText(to_csv(page.figure).c_str());
        done.title = "Table copied", done.line = fmt::format("{} rows, as CSV", page.table.total);
    }
    ImGui::Dummy({1, context.px(8)});
}

WordsSheet::Done WordsSheet::draw(ui::Context& context, const Lab& lab) {
    if (!lab.live()) read(lab);
    Done done;
    const SheetArea sheet = begin_sheet(context, "words", "Figures in words", kWordsWidth, kWordsHeight);
    done.closed = sheet.closed;
    const float top = sheet.content.y0 + context.px(16), foot = sheet.content.y1 - context.px(kFoot);
    begin_sheet_list(context, "words.list", {sheet.content.x0, top, sheet.content.x1, foot});
    for (const Page& page : pages_) {
        if (&page != &pages_.front()) ui::divider(context);
        draw_page(context, page, done);
    }
    // Arrow keys scroll, as in the sheet of keys.
    const float step = context.px(kStep);
    if (ui::key_pressed(ui::Key::down)) ImGui::SetScrollY(ImGui::GetScrollY() + step);
    if (ui::key_pressed(ui::Key::up)) ImGui::SetScrollY(std::max(0.0F, ImGui::GetScrollY() - step));
    end_sheet_list(context);
    ImGui::SetCursorScreenPos({sheet.content.x0, sheet.content.y1 - context.px(32)});
    if (ui::button(context, "words.all", "Copy all words")) {
        std::string all;
        for (const Page& page : pages_) all += text_of(page.words) + "\n";
        ImGui::SetClipboardText(all.c_str());
        done.title = "Words copied", done.line = fmt::format("of {} figures", pages_.size());
    }
    end_sheet();
    return done;
}

}  // namespace fp8lab
