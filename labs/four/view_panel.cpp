// The Explore tab of L12: the switches, then what they come to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/four/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::four {
using ui::Context;

void FourView::draw_below(Context& c, float width) {
    ui::divider(c);
    draw_result(c, width);
    draw_copies(c, width);
    ui::recipe_buttons(c, "four", transformer_engine_code(lab_->recipe()), recipe_text(lab_->recipe()));
}

void FourView::draw_result(Context& c, float width) {
    const Outcome& o = *lab_->outcome;
    const double sqnr = o.problem.empty() ? o.cast[o.shown()].numbers.sqnr_db : std::nan("");
    ui::headline(c, "four.sqnr",
                 {o.problem.empty() ? db_text(sqnr) + (std::isfinite(sqnr) ? " dB" : "") : "no maps",
                  fmt::format("SQNR, {}{}", format_name(o.params), o.params.rotates() ? " with RHT" : ""),
                  sqnr,
                  {Role::block, Tone::ink}});
    if (!o.problem.empty()) return;
    const std::vector<float> columns = {0.56F * width, 0.22F * width, 0.22F * width};
    const auto name = [](const char* text) {
        return ui::Cell{.text = text, .mono = false, .anchor = Anchor::left};
    };
    const Rect heads = ui::next_area(c, 14);
    ui::text_mid(c, {heads.x0 + 0.78F * width, heads.y0 + c.px(5)}, "as it is", {Role::muted}, kSans13,
                 Anchor::right);
    ui::text_mid(c, {heads.x0 + width, heads.y0 + c.px(5)}, "with RHT", {Role::muted}, kSans13,
                 Anchor::right);
    ui::advance(heads);
    const auto row = [&](const char* label, const std::array<double, 2>& values, auto text) {
        ui::table_row(c,
                      std::array{name(label), ui::Cell{.text = text(values[0]), .value = values[0]},
                                 ui::Cell{.text = text(values[1]), .value = values[1]}},
                      columns);
    };
    row("Blocks above 6 units, %", {o.cast[0].clip_pct, o.cast[1].clip_pct},
        [](double v) { return pct_text(v, 0); });
    if (o.params.nvfp4())
        row("SQNR with 4 or 6, dB", {o.four_or_six[0].sqnr_db, o.four_or_six[1].sqnr_db}, db_text);
    if (o.params.rounding == "stochastic") {
        const Means& means = *lab_->means;
        const std::string label = fmt::format("Mean of {} casts, dB", means.params.casts);
        const std::size_t r = o.shown();
        std::array cells = {name(label.c_str()), ui::Cell{.text = ""}, ui::Cell{.text = ""}};
        cells[1 + r].text = db_text(means.mean_db), cells[1 + r].value = means.mean_db;
        ui::table_row(c, cells, columns);
    }
    const Rect end = ui::next_area(c, 1);
    ui::hline(c, end.x0, end.x0 + width, end.y0, {Role::line});
    ui::advance(end);
    if (!o.note.empty()) ui::wrapped(c, o.note);
}

void FourView::draw_copies(Context& c, float width) {
    const Outcome& o = *lab_->outcome;
    const bool nvfp4 = o.params.nvfp4();
    const std::vector<float> columns = {0.56F * width, 0.22F * width, 0.22F * width};
    const auto head = [](const char* text) {
        return ui::Cell{.text = text, .role = Role::muted, .mono = false};
    };
    const Copies &row = nvfp4 ? o.row_copies : o.copies, &square = o.square_copies;
    ui::table_row(
        c,
        std::array{
            ui::Cell{.text = "W and its copy W^T", .mono = false, .strong = true, .anchor = Anchor::left},
            head(nvfp4 ? "1×16" : "1×32"), head(nvfp4 ? "16×16" : "")},
        columns);
    const auto line = [&](const char* label, double a, double b, auto text, bool fault) {
        std::array cells = {
            ui::Cell{.text = label, .mono = false, .anchor = Anchor::left},
            ui::Cell{.text = text(a), .role = fault && a > 0 ? Role::sat : Role::text, .value = a},
            ui::Cell{.text = nvfp4 ? text(b) : std::string()}};
        if (nvfp4) cells[2].value = b;
        ui::table_row(c, cells, columns);
    };
    line(
        "Elements that differ, %", row.differ_pct, square.differ_pct, [](double v) { return pct_text(v, 0); },
        true);
    line("SQNR, dB", row.sqnr_db, square.sqnr_db, db_text, false);
    ui::table_end(c, columns);
}

}  // namespace fp8lab::four
