// The Explore tab of L16: the diagnosis, the treatment with its rerun, and what the rerun comes to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/run/modes.h"
#include "labs/clinic/view.h"
#include "labs/live/looks.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::clinic {

using ui::Context;

namespace {

std::string end_of(const Run& run) {
    const auto& stopped = *run.arm().stopped;
    return fmt::format("in step {}, where {} is not finite", stopped.step, stopped.tensor);
}

// After the number of the rerun: "against the BF16 reference; before +56.5 %".
std::string result_words(const Run& rerun, const Opened& opened) {
    const Run& patient = *opened.patient;
    if (rerun.ended() && patient.ended())
        return fmt::format("The rerun ends {}. Before it ended {}.", end_of(rerun), end_of(patient));
    const std::string before = live::signed_percent(gap_pct(patient, *opened.reference));
    if (rerun.ended())
        return fmt::format("The rerun ends {}. Before it was {} against the BF16 reference.", end_of(rerun),
                           before);
    return patient.ended() ? fmt::format("against the BF16 reference; before it ended in step {}",
                                         patient.arm().stopped->step)
                           : fmt::format("against the BF16 reference; before {}", before);
}

// A case that is not cured, and why that can be read from the rerun.
void add_reasons(const Clinic& clinic, const Outcome& outcome, std::vector<std::string>& out) {
    const Chart& chart = clinic.params.chart();
    const Cure& cure = *clinic.cure;
    if (chart.second != "none") out.emplace_back("Two changes: nobody knows which one helped.");
    if (clinic.changed_nothing() && chart.treatment != "none")
        out.emplace_back("The run is as it was: this change has no effect on it.");
    const double twin = gap_pct(*cure.twin, *cure.reference);
    if (outcome.finite && !outcome.within() && cure.spec.treated().lr < kDefaultRate && twin > kCuredPct)
        out.push_back(
            fmt::format("The learning rate is too low now: the twin too ends {} % above the reference.",
                        live::percent_text(twin)));
}

// Below the rows.
std::vector<std::string> verdict_sentences(const Clinic& clinic, const Outcome& outcome) {
    std::vector<std::string> out;
    const Chart& chart = clinic.params.chart();
    if (!outcome.cured()) add_reasons(clinic, outcome, out);
    if (outcome.cured())
        out.push_back(chart.revealed
                          ? fmt::format("Case {} is cured. It was revealed before and does not count.",
                                        clinic.params.letter)
                          : fmt::format("Case {} is solved, {} of {}.", clinic.params.letter,
                                        clinic.solved_cases(), kLetters.size()));
    if (outcome.diagnosis_right && !clinic.first_right(clinic.params.place())) {
        const auto first = std::ranges::find(failure_modes(), chart.first, &FailureMode::id);
        if (first != failure_modes().end())
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
    else if (name.starts_with("second_") && locked())
        draw_locked(c, row.field);
    else
        return false;
    return true;
}

// A row a diagnosis, with its key at the right.
void ClinicView::draw_diagnoses(Context& c, const Field& field) {
    diagnoses_drawn_ = ImGui::GetFrameCount();
    ui::text(c, locked() ? "Diagnosis: cured, so it stays" : "Diagnosis", Role::muted, kSans13);
    const std::string now = field_text(field);
    for (const FailureMode& one : failure_modes()) {
        const Rect line = ui::next_area(c, 22);
        const bool chosen = one.id == now;
        if (!locked() && ui::press_row(c, fmt::format("clinic.diagnosis.{}", one.id), line, chosen))
            set_field(field, one.id);
        const float y = (line.y0 + line.y1) / 2, r = c.px(6);
        auto& list = *ImGui::GetWindowDrawList();
        list.AddCircle({line.x0 + r + c.px(2), y}, r, c.color(chosen ? Role::text : Role::muted), 0,
                       ui::hairline(c));
        if (chosen) list.AddCircleFilled({line.x0 + r + c.px(2), y}, r / 2, c.color(Role::text));
        ui::text_mid(c, {line.x0 + c.px(24), y}, one.words, {locked() && !chosen ? Role::muted : Role::text},
                     chosen ? kBold13 : kSans13);
        ui::text_mid(c, {line.x1 - c.px(4), y}, one.id == "10" ? "0" : one.id, {Role::muted}, kMono13,
                     Anchor::right);
        ImGui::SetCursorScreenPos({line.x0, line.y1});
    }
    ImGui::Dummy({0, c.px(8)});
}

// Without a menu: of a case that is cured.
void ClinicView::draw_locked(Context& c, const Field& field) {
    ui::text(c, field.info.label, Role::muted, kSans13);
    const std::array<std::string, 1> labels = {
        std::ranges::find(field.choices, field_text(field), &Choice::id)->label};
    int selected = 0;
    ui::segmented(c, field.info.name, labels, selected, 0);
    ui::tooltip(c, field.info.label, "The case is cured. Open it again to change it.");
}

void ClinicView::draw_treatment(Context& c, const Field& field) {
    if (locked()) {
        draw_locked(c, field);
        if (ui::button(c, "clinic.reopen", "Open it again", {.width = -1})) lab_.act("reopen");
        return;
    }
    const Treatment& chosen = find_treatment(field_text(field), field.info.name);
    const Rect head = ui::next_area(c, 20);
    const float y = (head.y0 + head.y1) / 2;
    ui::text_mid(c, {head.x0, y}, field.info.label, {Role::muted}, kSans13);
    const std::string change =
        chosen.lr > 0
            ? fmt::format("lr {:g} → {:g}", lab_->params.patient(lab_->params.place()).lr, chosen.lr)
            : field.info.te_name;
    ui::text_mid(c, {head.x1, y}, change, {Role::muted}, kMono13, Anchor::right);
    ui::advance(head);
    std::vector<std::string> labels;
    for (const Choice& choice : field.choices) labels.push_back(choice.label);
    const auto at = std::ranges::find(field.choices, field_text(field), &Choice::id);
    int selected = static_cast<int>(at - field.choices.begin());
    if (ui::dropdown(c, field.info.name, labels, selected))
        set_field(field, field.choices.at(static_cast<std::size_t>(selected)).id);
    ui::tooltip(c, field.info.label, field.info.help);
    const Chart& chart = lab_->params.chart();
    const bool named = chart.diagnosis != "none", done = chart.has_rerun();
    if (ui::button(c, "clinic.rerun", "Rerun",
                   {.disabled = done || !named,
                    .why_disabled = named ? "This was trained: its run is shown." : "Name a diagnosis first.",
                    .width = -1})) {
        lab_.act("rerun");
        to_result_ = true;
    }
}

void ClinicView::draw_outcome(Context& c, const Outcome& outcome) {
    ui::headline(c, "clinic.result",
                 {outcome.finite ? live::signed_percent(outcome.gap_pct) : "ended",
                  result_words(*lab_->cure->treated, *lab_->opened), outcome.gap_pct});
    const std::string limit = fmt::format("Within {:g} % of the reference", kCuredPct),
                      lost = fmt::format("Underflow at most {:g} %", kCuredUnderflowPct);
    const std::string ended = ": it ended before";
    const std::array<std::pair<std::string, bool>, 5> rows = {
        {{"The diagnosis is the case’s", outcome.diagnosis_right},
         {lab_->params.chart().diagnosis == info_of(Disease::healthy).diagnosis
              ? "No change: nothing is wrong"
              : "One change",
          outcome.one_change},
         {"Nothing non-finite", outcome.finite},
         {outcome.finite ? limit : limit + ended, outcome.within()},
         {outcome.finite
              ? fmt::format("{}: {} {:.2f} %", lost, outcome.underflow.tensor, outcome.underflow.mean_pct)
              : lost + ended,
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

// As high as the highest one that was shown: a new choice takes the result away, and moves nothing.
void ClinicView::draw_result(Context& c) {
    const float top = ImGui::GetCursorScreenPos().y;
    bool there = false;
    if (lab_->cure.busy()) {
        ui::wrapped(c, fmt::format("The run with the change is trained: {:.0f} %", 100 * lab_->cure.share()));
    } else if (const auto outcome = lab_->outcome()) {
        there = true;
        draw_outcome(c, *outcome);
        const bool all = lab_->solved_cases() == static_cast<int>(kLetters.size());
        if (all)
            ui::wrapped(
                c, "All eight are solved. Another deal, under More, has other diseases behind the letters.");
        else if (outcome->cured() &&
                 ui::button(c, "clinic.next", "Next case", {.primary = true, .width = -1}))
            lab_.act("next");
    } else if (lab_->unsealed().empty()) {
        ui::wrapped(c, "Name the cause, choose one change, and train the run again.");
    }
    const float height = ImGui::GetCursorScreenPos().y - top;
    if (height < result_height_) ImGui::Dummy({0, result_height_ - height - ImGui::GetStyle().ItemSpacing.y});
    result_height_ = std::max(result_height_, height);
    if (!there || !std::exchange(to_result_, false)) return;
    const float bottom = ImGui::GetCursorScreenPos().y - ImGui::GetWindowPos().y;
    if (bottom > ImGui::GetWindowHeight()) ImGui::SetScrollFromPosY(bottom, 1.0F);
    c.wants_redraw = true;
}

void ClinicView::draw_reveal(Context& c) {
    const std::string command = lab_->unsealed();
    if (!command.empty()) {
        const DiseaseInfo& info = info_of(lab_->params.disease(lab_->params.place()));
        ui::text(c, "Behind the letter", Role::muted, kSans13);
        ui::wrapped(c, info.behind, Role::text, kSans13);
        ui::wrapped(c, command, Role::text, kMono13);
        return;
    }
    const bool sure = armed_ == lab_->params.dealt() + lab_->params.letter;
    if (ui::button(c, "clinic.reveal", sure ? "Reveal it: it will not count" : "Reveal the disease",
                   {.key = "R", .width = -1}))
        reveal(c);
}

void ClinicView::draw_below(Context& c, float) {
    ui::divider(c);
    draw_result(c);
    draw_reveal(c);
    ui::wrapped(
        c,
        "Emulated on the CPU: a small network; sums of 3 mantissa bits stand for a narrow accumulator, since "
        "14 bits cannot be seen at these sizes.");
}

}  // namespace fp8lab::clinic
