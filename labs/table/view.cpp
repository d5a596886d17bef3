#include "labs/table/view.h"

#include <algorithm>
#include <array>

#include "labs/ui/widgets.h"

namespace fp8lab::table {
namespace {

using ui::Context;

void draw_switch(Context& c, const Field& experiment) {
    if (experiment.choices.size() < 2 || ui::withheld(c, experiment)) return;
    std::vector<std::string> labels;
    for (const Choice& choice : experiment.choices) labels.push_back(choice.label);
    const auto now = std::ranges::find(experiment.choices, field_text(experiment), &Choice::id);
    auto selected = static_cast<int>(now - experiment.choices.begin());
    if (ui::segmented(c, experiment.info.name, labels, selected))
        set_field(experiment, experiment.choices.at(static_cast<std::size_t>(selected)).id);
    ImGui::Dummy({0, c.px(2)});
}

// A control without an effect stays, with the reason.
void draw_dead(Context& c, const Row& row) {
    const Field& field = row.field;
    if (field.info.more) return;
    ui::text(c, field.info.label, Role::muted, kSans13);
    const auto chosen = std::ranges::find(field.choices, field_text(field), &Choice::id);
    const std::string value = chosen == field.choices.end() ? field_text(field) : chosen->label;
    const std::array<std::string, 1> labels = {value + ": " + row.why_not};
    int selected = 0;
    ui::segmented(c, field.info.name, labels, selected, 1);
    ui::tooltip(c, field.info.label, row.why_not);
}

}  // namespace

void draw_rows(Context& c, std::vector<Row> rows, const std::vector<Field>& defaults, const Explore& explore,
               bool& more_open) {
    const auto tier = [&](bool more, auto&& visit) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Row& row = rows[i];
            if (row.field.info.more == more && !row.field.info.hidden && row.shown && explore.shows(row.of))
                visit(i);
        }
    };
    const auto draw = [&](std::size_t i) {
        const bool alive = rows[i].why_not.empty();
        if (!ui::withheld(c, rows[i].field) && !explore.own(rows[i], defaults[i])) {
            if (alive)
                ui::edit(c, rows[i].field, &defaults[i]);
            else
                draw_dead(c, rows[i]);
        }
        if (!rows[i].note.empty() && (alive || !rows[i].field.info.more)) ui::wrapped(c, rows[i].note);
    };
    for (const Row& row : rows)
        if (row.field.info.name == "experiment" && row.field.info.hidden) draw_switch(c, row.field);
    tier(false, draw);
    bool has_more = false;
    tier(true, [&](std::size_t i) { has_more = has_more || rows[i].why_not.empty(); });
    if (!has_more) return;
    ui::disclosure(c, std::string(explore.lab) + ".more", "More: " + explore.more_words, more_open);
    if (more_open) tier(true, draw);
}

}  // namespace fp8lab::table
