// The Explore tab of a run: how its recipe is set, what other recipes come to, and what no log shows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view_run.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

constexpr std::size_t kShownNotes = 2;

// "delayed, history 64", as a row of this table.
std::string under_words(const UnderRecipe& row) {
    const Recipe recipe = parse_recipe(row.recipe);
    if (recipe.scale == ScaleSource::delayed) return "delayed, history " + group_thousands(recipe.history);
    if (row.from_above) return "MXFP8 (bound from above)";
    return std::string(recipe.base);
}

// Label and value field on one line, as a value that is seldom dragged.
void edit_in_line(Context& c, const Field& field, double value, std::string_view shown, auto&& store) {
    const Rect row = ui::next_area(c, 30);
    const float y = (row.y0 + row.y1) / 2;
    ui::text_mid(c, {row.x0, y}, field.info.label, {Role::text}, kSans15);
    ui::text_mid(c, {row.x0 + ui::text_width(c, field.info.label, kSans15) + c.px(9), y}, field.info.te_name,
                 {Role::muted}, kMono13);
    const Rect box{row.x1 - c.px(84), y - c.px(12), row.x1, y + c.px(12)};
    if (const auto typed = ui::value_field(c, field.info.name, box, value, shown))
        store(std::clamp(*typed, field.min, field.max));
    ui::advance(row);
    ui::tooltip(c, field.info.label, field.info.help);
}

void edit_history(Context& c, const Field& field) {
    int& value = **std::get_if<int*>(&field.value);
    double steps = value;
    static constexpr std::array kTicks = {1.0, 4.0, 16.0, 64.0, 256.0, 1024.0};
    if (ui::slider(c, field.info.name, field.info.label, field.info.te_name, steps, field.min, field.max,
                   {.logarithmic = true, .step = 1, .ticks = kTicks, .default_value = RunParams{}.history}))
        value = static_cast<int>(std::lround(steps));
    ui::tooltip(c, field.info.label, field.info.help);
}

}  // namespace

// Names of what is odd about the files.
void RunView::draw_notes(Context& c) {
    if (!run().log() || log().notes.empty())
        ui::wrapped(c, "or drop .jsonl, .csv, an inspect log on the window");
    if (!run().log()) return;
    const std::vector<std::string>& notes = log().notes;
    for (std::size_t i = 0; i < std::min(notes.size(), kShownNotes); ++i) ui::wrapped(c, notes[i]);
    if (notes.size() > kShownNotes)
        ui::wrapped(c, fmt::format("and {} more notes", notes.size() - kShownNotes));
    if (run().judges_own())
        ui::wrapped(
            c, fmt::format("Judged under its own recipe, {}, with the scales that it logged.", log().recipe));
}

bool RunView::draw_own(Context& c, const table::Row& row, const Field&) {
    const Field& field = row.field;
    const std::string& name = field.info.name;
    if (run().judges_own() && (name == "history" || name == "algo" || name == "margin")) return true;
    if (name == "arm") {  // those of the file, where it has several
        if (!run().log() || log().arms.size() < 2) return true;
        std::vector<std::string> labels = log().arms;
        int selected = ui::index_of_choice(labels, log().arm);
        ui::text(c, field.info.label, Role::muted, kSans13);
        if (ui::dropdown(c, "arm", labels, selected))
            set("arm=" + labels.at(static_cast<std::size_t>(selected)));
        ui::tooltip(c, field.info.label, field.info.help);
        return true;
    }
    if (name == "lost_at_most") {
        double& value = **std::get_if<double*>(&field.value);
        edit_in_line(c, field, value, format_number(value) + " %", [&](double typed) { value = typed; });
        return true;
    }
    if (!row.why_not.empty()) return name == "margin";
    if (name == "history") return edit_history(c, field), true;
    if (name == "margin") {
        int& value = **std::get_if<int*>(&field.value);
        edit_in_line(c, field, value, fmt::format("2^{} = \u00d7{:g}", value, std::exp2(value)),
                     [&](double typed) { value = static_cast<int>(std::lround(typed)); });
        return true;
    }
    return false;
}

void RunView::draw_under(Context& c, float width) {
    const std::string limit = format_number(lab_->params.run.lost_at_most);
    ui::region(c, "under",
               {ImGui::GetCursorScreenPos().x, ImGui::GetCursorScreenPos().y,
                ImGui::GetCursorScreenPos().x + width, ImGui::GetCursorScreenPos().y + c.px(190)});
    const float over = 0.53F * width, pitch = 26;
    const Rect heads = ui::next_area(c, 22);
    const float y = (heads.y0 + heads.y1) / 2;
    ui::text_mid(c, {heads.x0, y}, "This run under", {Role::text}, kBold13);
    ui::text_mid(c, {heads.x0 + over, y}, fmt::format("over {} %", limit), {Role::muted}, kSans13,
                 Anchor::right);
    ui::text_mid(c, {heads.x1, y}, "worst, lost %", {Role::muted}, kSans13, Anchor::right);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(heads);
    const std::string now = recipe_text(run().diagnoses->recipe);
    for (const UnderRecipe& row : *run().unders) {
        const Rect line = ui::next_area(c, pitch);
        const float middle = (line.y0 + line.y1) / 2;
        const bool chosen = recipe_text(parse_recipe(row.recipe)) == now;
        const Recipe recipe = parse_recipe(row.recipe);
        ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
        if (ui::press_row(c, "doctor.under." + row.recipe, line, false)) {
            set("run_recipe=" + std::string(recipe.base));
            if (recipe.scale == ScaleSource::delayed)
                for (const std::string& each : {fmt::format("history={}", recipe.history),
                                                std::string("algo=max"), std::string("margin=0")})
                    set(each);
        }
        ui::text_mid(c, {line.x0, middle}, under_words(row), {row.from_above ? Role::muted : Role::text},
                     chosen ? kBold13 : kSans13);
        const bool ill = !row.from_above && row.worst_pct > lab_->params.run.lost_at_most;
        const bool known = run().diagnoses->unknown == 0 || (row.worst_pct > 0 && !row.from_above);
        if (known && !row.from_above)
            ui::text_mid(c, {line.x0 + over, middle}, std::to_string(row.over), {Role::text}, kMono13,
                         Anchor::right);
        const std::string pct =
            known ? (row.from_above ? "at most " : "") + bounds_text({row.worst_pct, row.worst_pct})
                  : "not known";
        const Color ink =
            ill ? Color{Role::sat, Tone::ink} : Color{row.from_above ? Role::muted : Role::text};
        ui::text_mid(c, {line.x1, middle}, pct, ink, kMono13, Anchor::right);
        const float end = line.x1 - ui::text_width(c, pct + " ", kMono13), from = line.x0 + over + c.px(8);
        if (!row.from_above && row.worst_pct > 0 && row.worst < log().tensors.size())
            ui::text_mid(c, {end, middle},
                         ui::cut_middle(c, run().diagnoses->short_name(row.worst), kMono13, end - from), ink,
                         kMono13, Anchor::right);
        ui::advance(line);
    }
    ImGui::PopStyleVar();
}

void RunView::draw_below(Context& c, float width) {
    if (!run().log() || covered()) return;
    ui::divider(c);
    draw_under(c, width);
    ImGui::Dummy({0, c.px(6)});
    if (const std::string words = run().not_known_words(); !words.empty()) {
        ui::text(c, "Not known of this run:", Role::text, kBold13);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ui::wrapped(c, words);
        ui::probe(c, "doctor.unknown", {at.x, at.y, at.x + width, ImGui::GetCursorScreenPos().y}, {}, words);
    }
    ui::text(c, "Cannot be seen in these statistics:", Role::text, kBold13);
    std::string hidden;
    for (const std::string_view each : cannot_be_seen())
        hidden += (hidden.empty() ? "" : ", ") + std::string(each);
    ui::wrapped(c, hidden + ".");
}

}  // namespace fp8lab::workbench
