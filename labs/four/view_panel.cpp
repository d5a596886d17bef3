// The Explore tab of L12: the switches, then what they come to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/four/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::four {
namespace {

using ui::Context;

}  // namespace

// A switch without an effect stays, dead, and says why.
void FourView::draw_field(Context& c, const Field& field, const Field& default_field) {
    const std::string why = lab_.why_not(field.info.name);
    if (why.empty()) {
        ui::edit(c, field, &default_field);
        return;
    }
    if (field.info.more || ui::withheld(c, field)) return;
    std::vector<std::string> labels;
    int selected = 0;
    for (const Choice& choice : field.choices) labels.push_back(choice.label);
    if (field.info.name == "block") labels[0] = "1×32";
    if (field.choices.empty() || field.choices.size() > 4) return ui::edit(c, field, &default_field), void();
    ui::text(c, field.info.label, Role::muted, kSans13);
    ui::segmented(c, field.info.name, labels, selected, 1);  // the first is what there is
    ui::tooltip(c, field.info.label, why);
}

void FourView::explore(Context& c, float width) {
    const std::vector<Field> fields = lab_.fields(), default_fields = lab_.defaults();
    const auto draw = [&](bool more) {
        for (std::size_t i = 0; i < fields.size(); ++i)
            if (fields[i].info.more == more) draw_field(c, fields[i], default_fields[i]);
    };
    draw(false);
    ui::disclosure(c, "four.more", "More: casts, block, signs, seed, own tensor", more_open_);
    if (more_open_) draw(true);
    ui::divider(c);
    draw_result(c, width);
    draw_copies(c, width);
    draw_buttons(c, width);
}

void FourView::draw_result(Context& c, float width) {
    const Outcome& o = lab_.outcome();
    const Rect line = ui::next_area(c, 36);
    const float y = (line.y0 + line.y1) / 2;
    const double sqnr = o.problem.empty() ? o.cast[o.shown()].numbers.sqnr_db : std::nan("");
    const std::string words =
        o.problem.empty() ? db_text(sqnr) + (std::isfinite(sqnr) ? " dB" : "") : "no maps";
    ui::text_mid(c, {line.x0, y}, words, {Role::block, Tone::ink},
                 std::isfinite(sqnr) ? Font{Face::mono, 32} : kMono18);
    ui::probe(c, "four.sqnr", line, {}, words);
    if (std::isfinite(sqnr)) {
        const float reach = ui::text_width(c, words, {Face::mono, 32});
        ui::copyable(c, "value.sqnr", {line.x0, line.y0, line.x0 + reach, line.y1}, sqnr);
    }
    ui::text_mid(c, {line.x0 + width, y + c.px(6)},
                 fmt::format("SQNR, {}{}", format_name(o.params), o.params.rotates() ? " with RHT" : ""),
                 {Role::muted}, kSans13, Anchor::right);
    ui::advance(line);
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
        const Means& means = lab_.means();
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
    const Outcome& o = lab_.outcome();
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

std::string FourView::recipe_code() const { return transformer_engine_code(lab_.recipe()); }

void FourView::draw_buttons(Context& c, float width) {
    const float half = (width / c.scale - 8) / 2;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const std::string code = recipe_code();
    if (ui::button(c, "four.copy_recipe", "Copy TE recipe", {.width = half}))
        ImGui::SetClipboardText(code.c_str());
    ui::tooltip(c, "Copy as Transformer Engine recipe", code);
    ImGui::SetCursorScreenPos({at.x + c.px(half + 8), at.y});
    const std::string text = recipe_text(lab_.recipe());
    if (ui::button(c, "four.train", "Train with it", {.width = half})) {
        const std::size_t colon = std::min(text.find(':'), text.size());
        c.wanted_lab = {.lab = "train",
                        .fields = {"arm_b=" + text.substr(0, colon), "round=recipe",
                                   "options=" + text.substr(std::min(colon + 1, text.size()))}};
    }
    ui::tooltip(c, "Train with it", "Opens L8 with arm B = " + text + ".");
}

}  // namespace fp8lab::four
