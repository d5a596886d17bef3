// The selected tensor: its histogram, where it loses, and all recipes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

std::string db_text(double value) {
    if (std::isnan(value)) return "-";
    return std::isinf(value) ? "exact" : fmt::format("{:.1f}", value);
}

}  // namespace

void WorkbenchView::draw_tensor(Context& c, Rect area) {
    Rect left = area, right = area;
    const bool narrow = area.width() < c.px(640);
    std::vector<Figure> figures = lab_.figures();
    const bool changes = figures[1].id == "change";
    if (narrow) {
        static const std::array<std::string, 3> kParts = {"Values", "Recipes", "Change"};
        const auto parts = std::span(kParts).first(changes ? 3 : 2);
        part_ = std::min(part_, static_cast<int>(parts.size()) - 1);
        ui::corner_switch(c, "workbench.part", {area.x1, area.y0 - c.px(6)}, changes ? 280 : 200, parts,
                          part_);
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
    draw_values(c, std::move(figures), left, narrow);
}

// Against an original: how near the tensor is to it, or its fault, above the histogram.
float WorkbenchView::draw_fault(Context& c, Rect area) {
    if (const std::string scales = lab_->scale_words(); !scales.empty()) {
        const float y = area.y0 + c.px(9);
        ui::alert(c, {area.x0 + c.px(7), y}, {Role::warning});
        ui::text_mid(c, {area.x0 + c.px(22), y}, ui::cut_end(c, scales, kSans13, area.width() - c.px(22)),
                     {Role::warning}, kSans13);
        ui::probe(c, "workbench.scales", {area.x0, area.y0, area.x1, area.y0 + c.px(18)}, {}, scales);
        area.y0 += c.px(24);
    }
    const std::string words = lab_->verified_words();
    if (words.empty()) return area.y0;
    const Verified* const found = lab_->verified();
    const bool fault = found && found->is_fault();
    const float indent = fault ? c.px(22) : 0;
    const Font font = fault ? kBold13 : kSans13;
    float y = area.y0;
    if (fault) ui::alert(c, {area.x0 + c.px(7), y + c.px(9)}, {Role::warning});
    for (const std::string_view line : ui::wrap_lines(c, words, font, area.width() - indent)) {
        ui::text_mid(c, {area.x0 + indent, y + c.px(9)}, line, {fault ? Role::warning : Role::muted}, font);
        y += ui::line_height(13) * c.scale;
    }
    const Rect all{area.x0, area.y0, area.x1, y};
    ui::probe(c, "workbench.fault", all, {}, words);
    return y + c.px(6);
}

// The histogram over where it loses, or over the change between two files.
void WorkbenchView::draw_values(Context& c, std::vector<Figure> figures, Rect area, bool narrow) {
    area.y0 = draw_fault(c, area);
    const CastDetail* const detail = lab_->detail();
    const bool changes = figures[1].id == "change", high = area.height() > c.px(330);
    const auto heading =
        static_cast<float>(detail ? ui::wrap_lines(c, detail->title(), kBold15, area.width()).size() : 1);
    const float more = ui::line_height(15) * (heading - 1);
    const float places = changes ? (narrow ? 0 : 0.52F * area.height()) : c.px((high ? 146 : 88) + more);
    const Rect upper{area.x0, area.y0, area.x1, area.y1 - places};
    for (Series& series : figures[0].series) series.style.in_legend = false;
    const ScanRecipe& shown = lab_->scanned().recipes[lab_->recipe()];
    const float shown_from = upper.x1 - ui::text_width(c, shown.label, kBold13);
    ui::text_at(c, {shown_from, upper.y0 + c.px(1)}, shown.label, {shown.recipe.role, Tone::ink}, kBold13);
    const Rect head{upper.x0, upper.y0, shown_from - c.px(12), upper.y1};
    const float title = ui::heading(c, figures[0].title, head) + c.px(2);
    figures[0].title.clear();
    ui::plot(c, "workbench.histogram", figures[0], histogram_, {upper.x0, title, upper.x1, upper.y1},
             {.crosshair = false, .y_tick_width = 0, .title_height = 0});
    const Rect below{area.x0, upper.y1 + c.px(10), area.x1, area.y1};
    if (!changes)
        draw_places(c, below);
    else if (!narrow)
        ui::plot(c, "workbench.change", figures[1], change_, below, {.y_tick_width = 24});
}

// 64 cells in the order of the file, then what is known of a run like this.
void WorkbenchView::draw_places(Context& c, Rect area) {
    ui::region(c, "places", area);
    const CastDetail* const detail = lab_->detail();
    if (!detail || !lab_->row()) return;
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
    const std::string note = lab_->note();
    ui::paragraph(c, note.empty() ? mass : mass + " " + note, {area.x0, y, area.x1, area.y1});
}

// Every recipe by its bits; a press makes it the one that the figures show.
void WorkbenchView::draw_recipes(Context& c, Rect area) {
    ui::region(c, "recipes", area);
    const ScanRow* const row = lab_->row();
    float y = ui::heading(c, lab_->advice_title(), area) + c.px(4);
    if (!row || row->outcomes.empty()) return;
    const auto& recipes = lab_->scanned().recipes;
    std::vector<std::size_t> order(recipes.size());
    for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
    std::ranges::stable_sort(order, {}, [&](std::size_t r) { return row->outcomes[r].bits; });
    RecipeColumns at{.rows = area.width() >= c.px(490), .bar = area.x0 + c.px(114), .meets = area.x1};
    at.bits = at.meets - c.px(58), at.zero = at.bits - c.px(54), at.worst = at.zero - c.px(58);
    at.sqnr = at.rows ? at.worst - c.px(86) : at.worst;
    at.bar_end = std::max(at.bar, at.sqnr - c.px(46));
    const float heads = y + c.px(10);
    ui::text_mid(c, {area.x0, heads}, "recipe", {Role::muted}, kSans13);
    ui::head(c, {at.sqnr, heads}, "SQNR dB", "sqnr");
    if (at.rows) ui::head(c, {at.worst, heads}, "worst row", "sqnr");
    ui::head(c, {at.zero, heads}, "zero %", "underflow");
    ui::text_mid(c, {at.bits, heads}, "bits", {Role::muted}, kSans13, Anchor::right);
    ui::text_mid(c, {at.meets, heads}, "meets", {Role::muted}, kSans13, Anchor::right);
    y += c.px(22);
    const float pitch = std::clamp((area.y1 - y) / static_cast<float>(order.size()), c.px(18), c.px(22));
    for (const std::size_t r : order) {
        draw_recipe(c, r, at, {area.x0, y, area.x1, y + pitch});
        y += pitch;
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    if (lab_->params.covered) return;
    std::string reasons;
    for (const std::string& reason : lab_->advice.reasons) reasons += (reasons.empty() ? "" : " ") + reason;
    ui::paragraph(c, reasons, {area.x0, y + c.px(8), area.x1, area.y1});
}

void WorkbenchView::draw_recipe(Context& c, std::size_t r, const RecipeColumns& at, Rect line) {
    const ScanRecipe& recipe = lab_->scanned().recipes[r];
    const Rect whole{line.x0 - c.px(7), line.y0, line.x1 + c.px(7), line.y1};
    const bool chosen = r == lab_->recipe(), covered = lab_->params.covered;
    if (!chosen) ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
    if (ui::press_row(c, "workbench.recipe." + recipe.id, whole, chosen)) set("recipe=" + recipe.id);
    const float middle = (line.y0 + line.y1) / 2;
    ui::text_mid(c, {line.x0, middle}, recipe.label, {Role::text}, chosen ? kBold13 : kSans13);
    if (covered && !chosen) return;
    const ScanRow& row = *lab_->row();
    const CastOutcome& o = row.outcomes[r];
    const Demands demands = lab_->params.demands();
    const auto share = static_cast<float>(std::clamp(o.sqnr_db / 60, 0.0, 1.0));
    if (at.bar_end - at.bar > c.px(12) && share > 0) {
        const Rect bar{at.bar, middle - c.px(5), at.bar + (at.bar_end - at.bar) * share, middle + c.px(5)};
        ui::fill_rect(c, bar, {recipe.recipe.role, Tone::fill});
        ui::stroke_rect(c, bar, {recipe.recipe.role, Tone::line});
    }
    const auto cell = [&](float x, std::string_view words, bool misses) {
        ui::text_mid(c, {x, middle}, words, misses ? Color{Role::sat, Tone::ink} : Color{Role::text},
                     misses ? kMonoBold13 : kMono13, Anchor::right);
    };
    cell(at.sqnr, db_text(o.sqnr_db), !(o.sqnr_db >= demands.min_sqnr_db));
    if (at.rows)
        cell(at.worst, db_text(o.worst_row_db),
             !std::isinf(demands.min_row_db) && !(o.worst_row_db >= demands.min_row_db));
    cell(at.zero, percent_text(o.underflow_pct), o.underflow_pct > demands.max_underflow_pct);
    cell(at.bits, fmt::format("{:.2f}", o.bits), o.bits > demands.max_bits);
    const bool good = meets(o, demands) || row.summary.amax == 0;
    const bool fewest = lab_->advice.recipe == r && !covered;
    ui::text_mid(c, {at.meets, middle},
                 fewest ? "fewest"
                 : good ? "yes"
                        : "no",
                 {good ? Role::text : Role::muted}, fewest ? kBold13 : kSans13, Anchor::right);
}

}  // namespace fp8lab::workbench
