// The Explore tab of L16: the diagnosis, the treatment with its rerun, and what the rerun comes to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/run/modes.h"
#include "labs/clinic/view.h"
#include "labs/live/looks.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::clinic {

using ui::Context;

namespace {

// After the number of the rerun: "against healthy; before +56.5 %".
std::string result_words(const Run& rerun, const Opened& opened) {
    const auto end = [](const Run& run) { return run.arm().stopped->step; };
    const Run& patient = *opened.patient;
    if (rerun.ended() && patient.ended())
        return fmt::format("The rerun ends in step {}, before it was step {}.", end(rerun), end(patient));
    const std::string before = live::signed_percent(gap_pct(patient, *opened.reference));
    if (rerun.ended())
        return fmt::format("The rerun ends in step {}; before it was {} against healthy.", end(rerun),
                           before);
    return patient.ended() ? fmt::format("against healthy; before it ended in step {}", end(patient))
                           : fmt::format("against healthy; before {}", before);
}

// Below the rows.
std::vector<std::string> verdict_sentences(const Clinic& clinic, const Outcome& outcome) {
    std::vector<std::string> out;
    const Chart& chart = clinic.params.chart();
    if (clinic.changed_nothing()) out.emplace_back("The run is as it was: this change has no effect on it.");
    if (outcome.cured())
        out.push_back(chart.revealed
                          ? fmt::format("Case {} is cured. It was revealed before and does not count.",
                                        clinic.params.letter)
                          : fmt::format("Case {} is solved, {} of {}.", clinic.params.letter,
                                        clinic.solved_cases(), kLetters.size()));
    if (outcome.diagnosis_right && !clinic.first_right(clinic.params.place())) {
        const auto first = std::ranges::find(failure_modes(), chart.first, &FailureMode::id);
        out.push_back(fmt::format("Your first diagnosis was another one: {}.", first->words));
    }
    return out;
}

}  // namespace

bool ClinicView::draw_own(Context& c, const table::Row& row, const Field&) {
    const std::string& name = row.field.info.name;
    if (name.starts_with("diagnosis_"))
        draw_diagnoses(c, row.field);
    else if (name.starts_with("treatment_"))
        draw_treatment(c, row.field);
    else
        return false;
    return true;
}

// A row a diagnosis, with its key at the right.
void ClinicView::draw_diagnoses(Context& c, const Field& field) {
    ui::text(c, "Diagnosis", Role::muted, kSans13);
    const std::string now = field_text(field);
    for (const FailureMode& one : failure_modes()) {
        const Rect line = ui::next_area(c, 22);
        const bool chosen = one.id == now;
        if (ui::press_row(c, fmt::format("clinic.diagnosis.{}", one.id), line, chosen))
            set_field(field, one.id);
        const float y = (line.y0 + line.y1) / 2, r = c.px(6);
        auto& list = *ImGui::GetWindowDrawList();
        list.AddCircle({line.x0 + r + c.px(2), y}, r, c.color(chosen ? Role::text : Role::muted), 0,
                       ui::hairline(c));
        if (chosen) list.AddCircleFilled({line.x0 + r + c.px(2), y}, r / 2, c.color(Role::text));
        ui::text_mid(c, {line.x0 + c.px(24), y}, one.words, {Role::text}, chosen ? kBold13 : kSans13);
        ui::text_mid(c, {line.x1 - c.px(4), y}, one.id == "10" ? "0" : one.id, {Role::muted}, kMono13,
                     Anchor::right);
        ImGui::SetCursorScreenPos({line.x0, line.y1});
    }
    ImGui::Dummy({0, c.px(8)});
}

void ClinicView::draw_treatment(Context& c, const Field& field) {
    const Rect head = ui::next_area(c, 20);
    const float y = (head.y0 + head.y1) / 2;
    ui::text_mid(c, {head.x0, y}, field.info.label, {Role::muted}, kSans13);
    ui::text_mid(c, {head.x1, y}, field.info.te_name, {Role::muted}, kMono13, Anchor::right);
    ui::advance(head);
    std::vector<std::string> labels;
    for (const Choice& choice : field.choices) labels.push_back(choice.label);
    const auto at = std::ranges::find(field.choices, field_text(field), &Choice::id);
    int selected = static_cast<int>(at - field.choices.begin());
    if (ui::dropdown(c, field.info.name, labels, selected))
        set_field(field, field.choices.at(static_cast<std::size_t>(selected)).id);
    ui::tooltip(c, field.info.label, field.info.help);
    const bool done = lab_->params.chart().has_rerun();
    if (ui::button(
            c, "clinic.rerun", "Rerun",
            {.disabled = done, .why_disabled = "This change was trained: its run is shown.", .width = -1}))
        lab_.act("rerun");
}

void ClinicView::draw_outcome(Context& c, const Outcome& outcome) {
    ui::headline(c, "clinic.result",
                 {outcome.finite ? live::signed_percent(outcome.gap_pct) : "ended",
                  result_words(*lab_->cure->treated, *lab_->opened), outcome.gap_pct});
    const std::string limit = fmt::format("Within {:g} % of healthy", kCuredPct),
                      lost = fmt::format("Underflow at most {:g} %", kCuredUnderflowPct);
    const std::string ended = ": it ended before";
    const std::array<std::pair<std::string, bool>, 5> rows = {
        {{"The diagnosis is the case’s", outcome.diagnosis_right},
         {"One change; none where nothing is wrong", outcome.one_change},
         {"Nothing non-finite", outcome.finite},
         {outcome.finite ? limit : limit + ended, outcome.within()},
         {outcome.finite ? fmt::format("{}: {:.2f} %", lost, outcome.worst_underflow_pct) : lost + ended,
          outcome.finite && outcome.clean()}}};
    const Rect top = ui::next_area(c, 24 * static_cast<float>(rows.size()));
    float y = top.y0;
    for (const auto& [text, met] : rows)
        y = ui::row(c, {text, met ? "yes" : "no", {met ? Role::text : Role::sat, Tone::ink}},
                    {top.x0, y, top.x1, y}, c.px(24));
    ui::advance(top);
    for (const std::string& sentence : verdict_sentences(*lab_, outcome))
        ui::wrapped(c, sentence, Role::text, outcome.cured() ? kBold13 : kSans13);
}

void ClinicView::draw_below(Context& c, float) {
    if (std::exchange(sealed_again_, lab_->sealed_again()) != lab_->sealed_again())
        c.notice = {"All cases are sealed again", "Ctrl Z brings back what was said and done"};
    ui::divider(c);
    if (lab_->cure.busy()) {
        ui::wrapped(c, fmt::format("The run with the change is trained: {:.0f} %", 100 * lab_->cure.share()));
    } else if (const auto outcome = lab_->outcome()) {
        draw_outcome(c, *outcome);
        if (outcome->cured() && ui::button(c, "clinic.next", "Next case", {.primary = true, .width = -1}))
            lab_.act("next");
    } else {
        ui::wrapped(c, "Name the cause, choose one change, and train the run again.");
    }
    if (const std::string command = lab_->unsealed(); !command.empty()) {
        ui::text(c, "Behind the letter", Role::muted, kSans13);
        ui::wrapped(c, command, Role::text, kMono13);
    } else if (ui::button(c, "clinic.reveal", "Reveal the disease", {.key = "R", .width = -1})) {
        lab_.act("reveal");
    }
    ui::wrapped(
        c,
        "Emulated on the CPU: a small network; sums of 3 mantissa bits stand for a narrow accumulator, since "
        "14 bits cannot be seen at these sizes.");
}

}  // namespace fp8lab::clinic
