// The selected tensor: its histogram, where it loses, and all recipes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

void draw_note(Context& c, std::string_view words, Rect area) {
    float y = area.y0;
    for (const std::string_view line : ui::wrap_lines(c, words, kSans13, area.width())) {
        if (y + c.px(ui::line_height(13)) > area.y1 + 1) return;
        ui::text_at(c, {area.x0, y}, line, {Role::muted}, kSans13);
        y += c.px(ui::line_height(13));
    }
}

}  // namespace

void WorkbenchView::draw_tensor(Context& c, Rect area) {
    Rect left = area, right = area;
    const bool narrow = area.width() < c.px(640);
    std::vector<Figure> figures = lab_.figures();
    const bool changes = figures[1].id == "change", high = left.height() > c.px(330);
    if (narrow) {
        static const std::array<std::string, 3> kParts = {"Values", "Recipes", "Change"};
        const auto parts = std::span(kParts).first(changes ? 3 : 2);
        part_ = std::min(part_, static_cast<int>(parts.size()) - 1);
        const float width = c.px(changes ? 280 : 200);
        ImGui::SetCursorScreenPos({area.x1 - width, area.y0 - c.px(6)});
        ImGui::BeginChild("workbench.switch", {width, c.px(34)}, false, ImGuiWindowFlags_NoScrollbar);
        ui::segmented(c, "workbench.part", parts, part_);
        ImGui::EndChild();
        left.y0 = right.y0 = area.y0 + c.px(34);
    } else {
        const float middle = std::round(area.x0 + 0.497F * area.width());
        ui::fill_rect(c, {middle, area.y0 - c.px(4), middle + ui::hairline(c), area.y1}, {Role::line});
        left.x1 = middle - c.px(20), right.x0 = middle + c.px(20);
    }
    if (!narrow || part_ == 1) draw_recipes(c, right);
    if (narrow && part_ == 1) return;
    if (narrow && part_ == 2) {
        ui::plot(c, "workbench.change", figures[1], change_, left, {.y_tick_width = 24});
        return;
    }
    const CastDetail* const detail = lab_.detail();
    const auto heading =
        static_cast<float>(detail ? ui::wrap_lines(c, detail->title(), kBold15, left.width()).size() : 1);
    const float more = ui::line_height(15) * (heading - 1);
    const float places = changes ? (narrow ? 0 : 0.52F * left.height()) : c.px((high ? 146 : 88) + more);
    const Rect upper{left.x0, left.y0, left.x1, left.y1 - places};
    for (Series& series : figures[0].series) series.style.in_legend = false;
    const ScanRecipe& shown = lab_.scanned().recipes[lab_.recipe()];
    const float shown_from = upper.x1 - ui::text_width(c, shown.label, kBold13);
    ui::text_at(c, {shown_from, upper.y0 + c.px(1)}, shown.label, {shown.recipe.role, Tone::ink}, kBold13);
    const Rect head{upper.x0, upper.y0, shown_from - c.px(12), upper.y1};
    const float title = ui::heading(c, figures[0].title, head) + c.px(2);
    figures[0].title.clear();
    ui::plot(c, "workbench.histogram", figures[0], histogram_, {upper.x0, title, upper.x1, upper.y1},
             {.crosshair = false, .y_tick_width = 0, .title_height = 0});
    const Rect below{left.x0, upper.y1 + c.px(10), left.x1, left.y1};
    if (changes && narrow) return;
    if (changes) {
        ui::plot(c, "workbench.change", figures[1], change_, below, {.y_tick_width = 24});
        return;
    }
    draw_places(c, below);
}

// 64 cells in the order of the file, then what is known of a run like this.
void WorkbenchView::draw_places(Context& c, Rect area) {
    ui::region(c, "places", area);
    const CastDetail* const detail = lab_.detail();
    if (!detail || !lab_.row()) return;
    float y = ui::heading(c, detail->title(), area) + c.px(4);
    const auto cells = detail->cells(64);
    const float width = area.width() / static_cast<float>(std::max<std::size_t>(cells.size(), 1));
    const float height = c.px(20);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const float x = area.x0 + width * static_cast<float>(i);
        const Rect cell{x, y, x + std::max(width - ui::hairline(c), 1.0F), y + height};
        using enum CastDetail::Place;
        const Color fill = cells[i] == lost   ? Color{Role::under, Tone::fill}
                           : cells[i] == cut  ? Color{Role::sat, Tone::fill}
                           : cells[i] == zero ? Color{Role::field}
                                              : Color{Role::text};
        ui::fill_rect(c, cell, fill);
    }
    const Rect strip{area.x0, y, area.x1, y + height};
    ui::probe(c, "workbench.where", strip, {}, detail->title());
    ui::advance(strip);
    ui::tooltip(c, "Where",
                "Each cell is a part of the tensor, in the order of the file. Dark: most of it is kept. "
                "Grey: most of it becomes 0. Light: it is all 0.");
    y += height + c.px(12);
    const std::size_t n = detail->units;
    const float ends = ui::text_width(c, std::to_string(n), kMono13) + c.px(12);
    for (int quarter = 0; quarter <= 4; ++quarter) {
        const auto at = static_cast<float>(quarter) / 4;
        const Anchor anchor = quarter == 0 ? Anchor::left : quarter == 4 ? Anchor::right : Anchor::center;
        if (quarter % 2 == 1 && area.width() < 5 * ends) continue;
        ui::text_mid(c, {area.x0 + at * area.width(), y},
                     std::to_string(n * static_cast<std::size_t>(quarter) / 4), {Role::muted}, kMono13,
                     anchor);
    }
    y += c.px(12);
    if (detail->underflow == 0) return;
    const std::string mass =
        fmt::format("What becomes 0 is {} % of the absolute sum.", screen_number(detail->lost_l1_pct, 2));
    const std::string note = lab_.note();
    draw_note(c, note.empty() ? mass : mass + " " + note, {area.x0, y, area.x1, area.y1});
}

// Every recipe by its bits; a press makes it the one that the figures show.
void WorkbenchView::draw_recipes(Context& c, Rect area) {
    ui::region(c, "recipes", area);
    const ScanRow* const row = lab_.row();
    float y = ui::heading(c, lab_.advice_title(), area) + c.px(4);
    if (!row || row->outcomes.empty()) return;
    const auto& recipes = lab_.scanned().recipes;
    std::vector<std::size_t> order(recipes.size());
    for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
    std::ranges::stable_sort(order, {}, [&](std::size_t r) { return row->outcomes[r].bits; });
    const bool rows = area.width() >= c.px(490);
    const float meets_x = area.x1, bits_x = area.x1 - c.px(58), zero_x = bits_x - c.px(54),
                worst_x = zero_x - c.px(58), sqnr_x = rows ? worst_x - c.px(86) : zero_x - c.px(58);
    const float bar_x = area.x0 + c.px(114), bar_most = std::max(0.0F, sqnr_x - c.px(46) - bar_x);
    ui::text_mid(c, {area.x0, y + c.px(10)}, "recipe", {Role::muted}, kSans13);
    ui::head(c, {sqnr_x, y + c.px(10)}, "SQNR dB", "sqnr");
    if (rows) ui::head(c, {worst_x, y + c.px(10)}, "worst row", "sqnr");
    ui::head(c, {zero_x, y + c.px(10)}, "zero %", "underflow");
    ui::text_mid(c, {bits_x, y + c.px(10)}, "bits", {Role::muted}, kSans13, Anchor::right);
    ui::text_mid(c, {meets_x, y + c.px(10)}, "meets", {Role::muted}, kSans13, Anchor::right);
    y += c.px(22);
    const Demands demands = lab_.params().demands();
    const float pitch = std::clamp((area.y1 - y) / static_cast<float>(order.size()), c.px(18), c.px(22));
    for (const std::size_t r : order) {
        const CastOutcome& o = row->outcomes[r];
        const bool covered = lab_.params().covered && r != lab_.recipe();
        const Rect line{area.x0, y, area.x1, y + pitch};
        const Rect whole{line.x0 - c.px(7), line.y0, line.x1 + c.px(7), line.y1};
        const bool chosen = r == lab_.recipe();
        const bool fewest = lab_.advice().recipe == r && !lab_.params().covered;
        if (chosen) ui::fill_rect(c, whole, {Role::field}, 4);
        if (!chosen) ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
        const ui::Press press = ui::press(c, "workbench.recipe." + recipes[r].id, whole, 4);
        if (press.hovered) ui::stroke_rect(c, whole, {Role::axis}, 4);
        if (press.clicked) set("recipe=" + recipes[r].id);
        const float middle = (line.y0 + line.y1) / 2;
        ui::text_mid(c, {line.x0, middle}, recipes[r].label, {Role::text}, chosen ? kBold13 : kSans13);
        y += pitch;
        if (covered) continue;
        const auto share = static_cast<float>(std::clamp(o.sqnr_db / 60, 0.0, 1.0));
        if (bar_most > c.px(12) && share > 0) {
            const Rect bar{bar_x, middle - c.px(5), bar_x + bar_most * share, middle + c.px(5)};
            ui::fill_rect(c, bar, {recipes[r].recipe.role, Tone::fill});
            ui::stroke_rect(c, bar, {recipes[r].recipe.role, Tone::line});
        }
        const auto cell = [&](float x, std::string words, bool misses) {
            ui::text_mid(c, {x, middle}, words, misses ? Color{Role::sat, Tone::ink} : Color{Role::text},
                         misses ? kMonoBold13 : kMono13, Anchor::right);
        };
        const auto db = [](double value) {
            return std::isinf(value)   ? std::string("exact")
                   : std::isnan(value) ? "-"
                                       : fmt::format("{:.1f}", value);
        };
        cell(sqnr_x, db(o.sqnr_db), !(o.sqnr_db >= demands.min_sqnr_db));
        if (rows)
            cell(worst_x, db(o.worst_row_db),
                 !std::isinf(demands.min_row_db) && !(o.worst_row_db >= demands.min_row_db));
        cell(zero_x, percent_text(o.underflow_pct), o.underflow_pct > demands.max_underflow_pct);
        cell(bits_x, fmt::format("{:.2f}", o.bits), o.bits > demands.max_bits);
        const bool good = meets(o, demands) || row->summary.amax == 0;
        ui::text_mid(c, {meets_x, middle},
                     fewest ? "fewest"
                     : good ? "yes"
                            : "no",
                     {good ? Role::text : Role::muted}, fewest ? kBold13 : kSans13, Anchor::right);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    y += c.px(8);
    if (lab_.params().covered) return;
    std::string reasons;
    for (const std::string& reason : lab_.advice().reasons) reasons += (reasons.empty() ? "" : " ") + reason;
    draw_note(c, reasons, {area.x0, y, area.x1, area.y1});
}

}  // namespace fp8lab::workbench
