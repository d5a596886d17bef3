// What the panel shows of an exercise: question, conditions as they stand, hints, and the evidence of a pass.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/shell/exercises/exercises_tab.h"
#include "core/base/units.h"
#include "core/formats/format.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kIndent = 28, kDisc = 8.5F, kVerdict = 60, kColumn = 66, kLine = 20;
constexpr std::size_t kWhyRows = 3;  // of the explanation; a longer one makes its field taller
constexpr float kTwoPi = 6.2831853F, kNoon = -1.5707963F;

void caption(ui::Context& c, std::string_view left, std::string_view right) {
    const Rect area = ui::next_area(c, 22);
    const float y = (area.y0 + area.y1) / 2;
    ui::text_mid(c, {area.x0, y}, left, {Role::text}, kBold13);
    ui::text_mid(c, {area.x1, y}, right, {Role::muted}, kSans13, Anchor::right);
    ui::advance(area);
}

// Words left, a value right.
void pair_row(ui::Context& c, std::string_view left, std::string_view right) {
    const Rect area = ui::next_area(c, 24);
    const float y = (area.y0 + area.y1) / 2;
    ui::text_mid(c, {area.x0, y}, left, {Role::muted}, kSans13);
    ui::text_mid(c, {area.x1, y}, right, {Role::text}, kMono13, Anchor::right);
    ui::advance(area);
}

std::string ratio_text(double predicted, double measured) {
    if (!(predicted > 0) || !(measured > 0)) return format_number(measured - predicted, 2, true);
    const double times = measured / predicted;
    if (format_number(std::max(times, 1 / times), 2, true) == "1") return "nothing";
    return times >= 1 ? format_number(times, 2, true) + "\u00d7"
                      : "\u00f7" + format_number(1 / times, 2, true);
}

// "0.4"; of several lines, "E4M3 at 3".
std::string curve_place(const CurvePrediction& curve, std::size_t i) {
    const std::string at = format_number(curve.at[i % curve.at.size()], 3, true);
    return curve.lines.size() > 1 ? curve.lines[i / curve.at.size()] + " at " + at : at;
}

// A column that is headed by a format has its ink.
Role column_role(std::string_view head) {
    const auto found = std::ranges::find(formats(), head, &FormatInfo::label);
    return found == formats().end() ? Role::truth : found->role;
}

}  // namespace

void draw_ring(const ui::Context& c, Point center, float share) {
    const float radius = c.px(6.5F);
    if (share >= 1) return ui::disc_tick(c, center, 7.5F, {Role::text}, {Role::raised});
    auto& list = *ImGui::GetWindowDrawList();
    list.AddCircle({center.x, center.y}, radius, c.color(Role::line), 32, c.px(2));
    if (!(share > 0)) return;
    list.PathArcTo({center.x, center.y}, radius, kNoon, kNoon + kTwoPi * share, 32);
    list.PathStroke(c.color(Role::text), 0, c.px(2));
}

bool ExercisesTab::is_open(const Lab& lab, const Exercise& exercise) const {
    const Exercise* open = selected(lab);
    return open && open->id == exercise.id;
}

void ExercisesTab::draw_panel(Lab& lab) {
    session(lab);  // chooses what is open
    const auto exercises = lab.exercises();
    for (std::size_t i = 0; i < exercises.size(); ++i) {
        const Exercise& exercise = exercises[i];
        ImGui::PushID(exercise.id.c_str());
        if (i > 0) ui::divider(context_);
        if (draw_head(lab, exercise, i)) select(lab, i);
        if (is_open(lab, exercise)) {
            ImGui::Indent(context_.px(kIndent));
            const ExerciseRun* run = running(lab);
            const Evidence* evidence = progress_.passed(exercise.id);
            if (run)
                draw_running(lab, *run);
            else if (evidence && !session(lab).again)
                draw_passed(lab, exercise, *evidence);
            else
                draw_closed(lab, exercise);
            ImGui::Unindent(context_.px(kIndent));
        }
        ImGui::PopID();
    }
}

bool ExercisesTab::draw_head(const Lab& lab, const Exercise& exercise, std::size_t index) {
    const Rect row = ui::next_area(context_, 28);
    const bool open = is_open(lab, exercise), passed = progress_.passed(exercise.id) != nullptr;
    const ui::Press hit = ui::press(context_, "exercise." + exercise.id, row, 4);
    const Point center{row.x0 + context_.px(kDisc), (row.y0 + row.y1) / 2};
    auto& list = *ImGui::GetWindowDrawList();
    if (passed) {
        ui::disc_tick(context_, center, kDisc, {Role::text}, {Role::raised});
    } else {
        list.AddCircle({center.x, center.y}, context_.px(kDisc - 1),
                       context_.color(open ? Role::text : Role::line), 32, context_.px(2));
        if (open) list.AddCircleFilled({center.x, center.y}, context_.px(4), context_.color(Role::text));
    }
    const float x = row.x0 + context_.px(kIndent);
    const std::string title = fmt::format("{}  {}", index + 1, exercise.title);
    const Font font = open || passed ? kBold15 : kSans15;
    ui::text_mid(context_, {x, center.y}, title, {open || passed || hit.hovered ? Role::text : Role::muted},
                 font);
    const float word = row.x1 - ui::text_width(context_, "passed", kSans13);  // the disc says it too
    if (passed && x + ui::text_width(context_, title, font) + context_.px(8) <= word)
        ui::text_mid(context_, {row.x1, center.y}, "passed", {Role::muted}, kSans13, Anchor::right);
    ui::advance(row);
    return hit.clicked;
}

// Not begun: what is to be predicted, the question with all its conditions, and the way in.
void ExercisesTab::draw_closed(Lab& lab, const Exercise& exercise) {
    const bool asks = predicting(lab);
    if (asks) draw_ask(lab, exercise);
    ui::wrapped(context_, exercise.question, Role::text, kSans15);
    if (!asks || !exercise.conditions_answer) draw_conditions(exercise, conditions_of(exercise), false);
    if (asks) return;
    const Prediction* known = exercise.predict.empty() ? nullptr : progress_.prediction(exercise.id);
    if (known) draw_prediction(exercise, *known, {});
    const bool stays = !progress_.passed(exercise.id) && !kept_events(lab, exercise).empty();
    ui::wrapped(context_, stays ? "Start keeps what you have done in the lab."
                                : "Start sets the lab to the settings of this exercise.");
    if (ui::button(context_, "exercise.start", "Start", {.primary = true, .width = 116})) {
        Prediction prediction = known ? *known : Prediction{.skipped = true, .values = {}, .at = {}};
        begin(lab, std::move(prediction));
    }
}

void ExercisesTab::draw_running(Lab& lab, const ExerciseRun& run) {
    const Exercise& exercise = run.exercise();
    Session& open = session(lab);
    ui::wrapped(context_, exercise.question, Role::text, kSans15);
    draw_answers(open, exercise);
    const Verdict& verdict = run.present();
    draw_conditions(exercise, verdict.conditions, true);
    if (!verdict.note.empty()) ui::wrapped(context_, verdict.note);
    if (const std::string why = lab.no_record(); !why.empty()) ui::warning(context_, why);
    if (!exercise.predict.empty()) draw_prediction(exercise, run.prediction(), verdict.measured);
    draw_hints(open);
}

void ExercisesTab::keep_explanation(Evidence evidence, const std::string& words) {
    evidence.explanation = words;
    try {
        progress_.keep(evidence);
    } catch (const std::exception& error) {
        hooks_.say("Not saved", error.what());
    }
}

void ExercisesTab::draw_passed(Lab& lab, const Exercise& exercise, const Evidence& evidence) {
    ui::wrapped(context_, exercise.question, Role::muted, kSans13);
    draw_conditions(exercise, evidence.conditions, false);
    draw_evidence(lab, evidence);
    if (!exercise.predict.empty()) draw_prediction(exercise, evidence.prediction, evidence.measured);
    ui::wrapped(context_, exercise.explanation, Role::text, kSans13);
    // The buttons below stay where they are while this is typed, and take the press that ends it.
    std::string words = evidence.explanation;
    const bool explained =
        ui::text_input(context_, "exercise.why", words,
                       "Why is it so? In your own words. It is kept, and never graded.", kSans13, kWhyRows);
    if (explained) keep_explanation(evidence, words);  // `evidence` is another one now
    const auto exercises = lab.exercises();
    const auto next =
        std::ranges::find_if(exercises, [&](const Exercise& other) { return !progress_.passed(other.id); });
    if (next != exercises.end()) {
        if (ui::button(context_, "exercise.next", "Next exercise", {.primary = true, .width = 140}))
            select(lab, static_cast<std::size_t>(next - exercises.begin()));
        ImGui::SameLine(0, context_.px(8));
    }
    if (ui::button(context_, "exercise.again", "Do it again", {.width = 124})) do_again(lab);
}

void ExercisesTab::draw_answers(Session& open, const Exercise& exercise) {
    for (const Answer& answer : exercise.answers) {
        ui::text(context_, answer.unit.empty() ? answer.label : answer.label + ", " + answer.unit,
                 Role::muted, kSans13);
        std::string& typed = open.typed[answer.name];
        const std::string name = "answer." + answer.name;
        if (answer.choices.empty()) {
            const bool entered = ui::text_input(context_, name, typed, "a number, 1/8 or 2^-9", kMono13);
            const bool refused = !typed.empty() && std::isnan(parse_answer(typed));
            if (entered && !refused) open.run->answer(answer.name, typed);
            if (refused) {
                const std::string why =
                    "\u201c" + typed +
                    "\u201d is not a number and is not used. Write it as 0.125, 1/8 or 12.5 %.";
                ui::warning(context_, why);
                ui::probe(context_, "answer.refused." + answer.name, ui::next_area(context_, 1), {}, why);
            }
            continue;
        }
        const auto at = std::ranges::find(answer.choices, typed);
        int index = at == answer.choices.end() ? -1 : static_cast<int>(at - answer.choices.begin());
        const bool few = answer.choices.size() <= 4;
        if (few ? ui::segmented(context_, name, answer.choices, index)
                : ui::dropdown(context_, name, answer.choices, index)) {
            typed = answer.choices.at(static_cast<std::size_t>(index));
            open.run->answer(answer.name, typed);
        }
    }
}

// Words left, values under their heads, "yes" or "not yet" right. Without heads the values are below the
// words.
void ExercisesTab::draw_conditions(const Exercise& exercise, const std::vector<Condition>& conditions,
                                   bool verdicts) {
    const Rect all = ui::next_area(context_, 24);
    const float verdict = verdicts ? context_.px(kVerdict) : 0;
    const auto columns = static_cast<float>(exercise.columns.size());
    const float right = all.x1 - verdict, alone = right - all.x0 - context_.px(8),
                beside_values = alone - columns * context_.px(kColumn);
    float y = all.y0;
    if (columns > 0) {
        float x = right - (columns - 1) * context_.px(kColumn);
        for (const std::string& head : exercise.columns) {
            ui::text_mid(context_, {x, y + context_.px(12)}, head, {column_role(head), Tone::ink}, kBold13,
                         Anchor::right);
            x += context_.px(kColumn);
        }
        y += context_.px(24);
    }
    for (const Condition& condition : conditions) {
        ui::hline(context_, all.x0, all.x1, y, {Role::line});
        const auto lines = ui::wrap_lines(context_, condition.text, kSans13,
                                          condition.values.empty() ? alone : beside_values);
        const float first = y + context_.px(6 + kLine / 2);
        float at = first;
        for (const auto line : lines) {
            ui::text_mid(context_, {all.x0, at}, line, {Role::text}, kSans13);
            at += context_.px(kLine);
        }
        float x = right - (columns - 1) * context_.px(kColumn);
        for (const std::string& value : condition.values) {
            if (columns > 0) {
                ui::text_mid(context_, {x, first}, value, {Role::text}, kMono13, Anchor::right);
                x += context_.px(kColumn);
            } else if (!value.empty()) {
                ui::text_mid(context_, {all.x0, at}, value, {Role::text}, kMonoBold13);
                at += context_.px(kLine);
            }
        }
        if (verdicts)
            ui::text_mid(context_, {all.x1, first}, condition.met ? "yes" : "not yet",
                         {condition.met ? Role::text : Role::muted}, condition.met ? kBold13 : kSans13,
                         Anchor::right);
        y = at + context_.px(6 - kLine / 2);
        y = std::round(y);
    }
    ui::hline(context_, all.x0, all.x1, y, {Role::line});
    const Rect table{all.x0, all.y0, all.x1, y + context_.px(2)};
    ui::probe(context_, "exercise.conditions", table);
    ui::advance(table);
}

void ExercisesTab::draw_prediction(const Exercise& exercise, const Prediction& prediction,
                                   const std::vector<double>& measured) {
    if (prediction.skipped) {
        pair_row(context_, "Prediction", "skipped");
        return;
    }
    if (const auto* curve = std::get_if<CurvePrediction>(&exercise.prediction)) {
        if (measured.size() != curve->at.size() * curve->lines.size() ||
            prediction.values.size() != measured.size())
            return;
        caption(context_, curve->x.label, fmt::format("{}  {:>8}  {:>7}", "yours", "measured", "off by"));
        for (std::size_t i = 0; i < measured.size(); ++i)
            pair_row(context_, curve_place(*curve, i),
                     fmt::format("{}  {:>8}  {:>7}", format_number(prediction.values[i], 3, true),
                                 format_number(measured[i], 3, true),
                                 ratio_text(prediction.values[i], measured[i])));
        return;
    }
    const auto words = [&](double value) {
        const auto* choice = std::get_if<ChoicePrediction>(&exercise.prediction);
        if (!choice) return format_number(value, 4, true);
        const bool valid = value >= 0 && value < static_cast<double>(choice->choices.size());
        return valid ? choice->choices[static_cast<std::size_t>(value)] : std::string("\u2013");
    };
    if (!prediction.values.empty()) pair_row(context_, "You predicted", words(prediction.values.front()));
    if (!measured.empty()) pair_row(context_, "Measured", words(measured.front()));
}

void ExercisesTab::draw_hints(Session& open) {
    static constexpr std::array<std::string_view, 3> kLevels = {"Nudge", "Which control", "Worked value"};
    ExerciseRun& run = *open.run;
    caption(context_, "Hints", "no penalty; kept in the evidence");
    for (int i = 0; i < static_cast<int>(kLevels.size()); ++i) {
        const auto level = static_cast<std::size_t>(i);
        const bool opened = i < run.hints(), next = i == run.hints();
        const Rect row = ui::next_area(context_, 30);
        ui::hline(context_, row.x0, row.x1, row.y0, {Role::line});
        const float y = (row.y0 + row.y1) / 2;
        const Role ink = opened ? Role::text : Role::muted;
        ui::text_mid(context_, {row.x0, y}, std::to_string(i + 1), {Role::muted}, kMono13);
        ui::text_mid(context_, {row.x0 + context_.px(20), y}, kLevels[level], {ink}, kBold13);
        if (next) {
            if (ui::press(context_, "exercise.hint", row, 4).clicked) run.open_hint();
            ui::chevron(context_, {row.x1 - context_.px(24), y}, ui::Direction::right, {Role::muted});
            ui::text_mid(context_, {row.x1, y}, "H", {Role::muted}, kMono13, Anchor::right);
        }
        ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
        ui::advance(row);
        if (opened) {
            ImGui::Indent(context_.px(20));
            ui::wrapped(context_, run.exercise().hints[level], Role::text, kSans13);
            ImGui::Unindent(context_.px(20));
            ImGui::Dummy({1, context_.px(8)});
        }
        ImGui::PopStyleVar();
    }
    const Rect end = ui::next_area(context_, 1);
    ui::probe(context_, "exercise.hint_end", end);
    if (run.hints() > open.hints_seen) {  // the hint that was just opened comes into view
        const float bottom = ImGui::GetCursorScreenPos().y - ImGui::GetWindowPos().y;
        if (bottom > ImGui::GetWindowHeight()) ImGui::SetScrollFromPosY(bottom, 1.0F);
        context_.wants_redraw = true;
    }
    open.hints_seen = run.hints();
}

void ExercisesTab::draw_evidence(Lab& lab, const Evidence& evidence) {
    const Rect row = ui::next_area(context_, 26);
    ui::fill_rect(context_, row, {Role::field}, 4);
    const float y = (row.y0 + row.y1) / 2;
    ui::text_mid(context_, {row.x0 + context_.px(8), y}, "evidence", {Role::muted}, kSans13);
    const std::vector<Field> fields = lab.fields();
    const Field* const field = find_field(fields, "seed");
    std::string called = field ? field->info.label : "seed";  // as the lab calls it
    called.front() = static_cast<char>(std::tolower(called.front()));
    const std::string seed = evidence.seed.empty() ? "" : called + " " + evidence.seed + " \u00b7 ";
    const std::string from = evidence.provenance.substr(0, evidence.provenance.find('-'));
    ui::text_mid(context_, {row.x1 - context_.px(8), y},
                 seed + from + " \u00b7 " + scene_hash(evidence).substr(0, 6), {Role::text}, kMono13,
                 Anchor::right);
    ui::probe(context_, "exercise.evidence", row);
    ui::advance(row);
    ui::tooltip(context_, "Evidence",
                fmt::format("{}, version {}, {}. {} hints opened. `fp8lab check {}` repeats it.", evidence.at,
                            evidence.version, evidence.device, evidence.hints,
                            progress_.file(evidence.exercise).string()));
}

float ExercisesTab::strip_height(const Lab& lab) const { return session(lab).run ? 56 : 0; }

bool ExercisesTab::draw_strip(const Lab& lab, Rect area) {
    const ExerciseRun& run = *session(lab).run;
    const ui::Press hit = ui::press(context_, "exercise.strip", area);
    ui::fill_rect(context_, area, {Role::field}, 6);
    if (hit.hovered) ui::stroke_rect(context_, area, {Role::axis}, 6);
    const auto& conditions = run.present().conditions;
    const auto met = std::ranges::count_if(conditions, [](const Condition& c) { return c.met; });
    const float y = (area.y0 + area.y1) / 2;
    const Point ring{area.x0 + context_.px(20), y};
    draw_ring(context_, ring,
              conditions.empty() ? 0 : static_cast<float>(met) / static_cast<float>(conditions.size()));
    ui::text_mid(context_, {area.x0 + context_.px(40), y}, run.exercise().title, {Role::text}, kBold15);
    ui::text_mid(context_, {area.x1 - context_.px(28), y}, fmt::format("{} of {}", met, conditions.size()),
                 {Role::muted}, kMono13, Anchor::right);
    ui::chevron(context_, {area.x1 - context_.px(14), y}, ui::Direction::right, {Role::muted});
    return hit.clicked;
}

}  // namespace fp8lab
