// The prediction: asked in the panel, while what answers it is covered on the stage.
#include <algorithm>
#include <cmath>

#include "app/shell/exercises/exercises_tab.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kCurveHeight = 260, kLeastCurveHeight = 160, kKnobReach = 14;
constexpr float kCommitRow = 64;  // the buttons and what is around them
constexpr float kBleed = 6;       // a selected row and the words at an axis reach beyond their part

double clamp_to(const AxisSpec& axis, double value) {
    const Range range = axis.range.value_or(Range{});
    return std::clamp(value, range.lo, range.hi);
}

// Underlined words that can be pressed.
bool link(ui::Context& c, std::string_view name, std::string_view words) {
    Rect area = ui::next_area(c, 32);
    area.x1 = area.x0 + ui::text_width(c, words, {Face::sans, 15});
    const ui::Press hit = ui::press(c, name, area, 4);
    const Color ink{hit.hovered ? Role::text : Role::muted};
    const float y = (area.y0 + area.y1) / 2;
    ui::text_mid(c, {area.x0, y}, words, ink, {Face::sans, 15});
    ui::hline(c, area.x0, area.x1, y + c.px(9), ink);
    ui::advance(area);
    return hit.clicked;
}

// Writes in the middle of a cover, in as many lines as its width needs; nothing where they do not fit.
void say_when_shown(ui::Context& c, Rect room) {
    const auto lines = ui::wrap_lines(c, "shown after your prediction", kSans13, room.width());
    const float line = c.px(20), height = line * static_cast<float>(lines.size());
    const bool fits = height <= room.height() && std::ranges::all_of(lines, [&](std::string_view words) {
                          return ui::text_width(c, words, kSans13) <= room.width();
                      });
    if (!fits) return;
    float y = (room.y0 + room.y1 - height + line) / 2;
    for (const std::string_view words : lines) {
        ui::text_mid(c, {(room.x0 + room.x1) / 2, y}, words, {Role::muted}, kSans13, Anchor::center);
        y += line;
    }
}

}  // namespace

// Draws the question in the panel, beside the stage.
void ExercisesTab::draw_ask(Lab& lab, const Exercise& exercise) {
    Session& open = session(lab);
    ui::text(context_, "Predict first", Role::muted, kSans13);
    ui::wrapped(context_, exercise.predict, Role::text, kBold15);
    if (const auto* curve = std::get_if<CurvePrediction>(&exercise.prediction)) {
        // The buttons stay in sight in a low window too.
        const float room = (ImGui::GetWindowHeight() - ImGui::GetCursorPosY()) / context_.scale - kCommitRow;
        const float least = curve->lines.size() > 1 ? kCurveHeight : kLeastCurveHeight;  // knobs are apart
        const Rect area = ui::next_area(context_, std::clamp(room, least, kCurveHeight));
        // The last knob stands on the right end of the axis: half of it, and its reach, go beyond.
        edit_curve(open, *curve, {area.x0, area.y0, area.x1 - context_.px(kKnobReach), area.y1});
        ui::advance(area);
    }
    if (const auto* number = std::get_if<NumberPrediction>(&exercise.prediction)) edit_number(open, *number);
    if (const auto* choice = std::get_if<ChoicePrediction>(&exercise.prediction)) edit_choice(open, *choice);
    // Where a number begins may be what is expected; a choice and a curve are made first.
    const auto* number = std::get_if<NumberPrediction>(&exercise.prediction);
    const std::vector<double> values =
        open.draft.empty() && number ? std::vector{number->initial} : open.draft;
    const bool ready =
        !values.empty() && std::ranges::none_of(values, [](double v) { return std::isnan(v); });
    const bool curve = std::holds_alternative<CurvePrediction>(exercise.prediction);
    const std::string_view why = curve ? "Move a knob first." : "Choose an answer first.";
    if (ui::button(context_, "predict.commit", "Commit and start",
                   {.primary = ready, .disabled = !ready, .why_disabled = why, .width = 164}))
        return begin(lab, {.skipped = false, .values = values, .at = local_time()});
    ImGui::SameLine(0, context_.px(20));
    if (link(context_, "predict.skip", "Skip"))
        return begin(lab, {.skipped = true, .values = {}, .at = local_time()});
    ui::wrapped(context_, "Predictions are kept and never graded. The controls can be used after that.");
    ui::divider(context_);
}

// Over the whole stage, so that nothing in it can be used; over what answers the question, so that it is not seen.
void ExercisesTab::draw_covers(const Lab& lab, Rect stage) {
    const float bleed = context_.px(kBleed);
    ImGui::SetCursorScreenPos({stage.x0 - bleed, stage.y0});
    ImGui::BeginChild("predict.lid", {stage.width() + 2 * bleed, stage.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    for (const std::string& name : selected(lab)->covers) {
        const auto part = context_.regions.find(name);
        if (part == context_.regions.end()) continue;  // not on the stage in this state of the lab
        const Rect rect{part->second.x0 - bleed, part->second.y0, part->second.x1 + bleed, part->second.y1};
        ui::fill_rect(context_, rect, {Role::raised}, 6);
        ui::stroke_rect(context_, rect, {Role::line}, 6);
        say_when_shown(context_, ui::inset(rect, context_.px(8)));
        ui::probe(context_, "cover." + name, part->second);
    }
    ImGui::EndChild();
}

void ExercisesTab::edit_number(Session& open, const NumberPrediction& spec) {
    double value = open.draft.empty() ? spec.initial : open.draft.front();
    if (ui::slider(context_, "predict.number", spec.label, spec.unit, value, spec.min, spec.max,
                   {.logarithmic = spec.logarithmic, .step = spec.step}))
        open.draft = {value};
}

void ExercisesTab::edit_choice(Session& open, const ChoicePrediction& spec) {
    for (std::size_t i = 0; i < spec.choices.size(); ++i) {
        const Rect row = ui::next_area(context_, 36);
        const ui::Press hit = ui::press(context_, "predict.choice" + std::to_string(i), row);
        const auto value = static_cast<double>(i);
        if (hit.clicked) open.draft = {value};
        const bool on = open.draft == std::vector{value};
        ui::fill_rect(context_, row, {Role::field, Tone::line, on ? 1.0F : 0.5F}, 6);
        if (on || hit.hovered) ui::stroke_rect(context_, row, {Role::axis}, 6);
        const float y = (row.y0 + row.y1) / 2;
        auto& list = *ImGui::GetWindowDrawList();
        list.AddCircle({row.x0 + context_.px(20), y}, context_.px(7), context_.color(Role::axis), 0,
                       context_.px(1.5F));
        if (on)
            list.AddCircleFilled({row.x0 + context_.px(20), y}, context_.px(3.5F),
                                 context_.color(Role::text));
        ui::text_mid(context_, {row.x0 + context_.px(40), y}, spec.choices[i], {Role::text},
                     {on ? Face::sans_bold : Face::sans, 15});
        ui::advance(row);
    }
}

// Empty axes and a polyline whose knobs move up and down.
void ExercisesTab::edit_curve(Session& open, const CurvePrediction& spec, Rect area) {
    std::vector<double> values = open.draft;
    for (std::size_t i = values.size(); i < spec.at.size() * spec.lines.size(); ++i) {
        // A second line begins below the first, not on it.
        const double apart = (spec.y.range->hi - spec.y.range->lo) / 6;
        const auto line = static_cast<double>(i / spec.at.size());
        values.push_back(clamp_to(spec.y, spec.initial - line * apart));
    }
    Figure figure{.id = "prediction", .x = spec.x, .y = spec.y};
    for (std::size_t line = 0; line < spec.lines.size(); ++line) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(line * spec.at.size());
        figure.line(spec.lines[line], data(spec.at),
                    data({first, first + static_cast<std::ptrdiff_t>(spec.at.size())}),
                    {.color = {Role::text}, .dash = line == 0 ? Dash::dash : Dash::dot});
    }
    const ui::PlotResult plot = ui::plot(context_, "predict.axes", figure, open.axes, area,
                                         {.interactive = false, .crosshair = false});
    const float reach = context_.px(kKnobReach);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Point at = plot.to_px(spec.at[i % spec.at.size()], values[i]);
        const ui::Press hit = ui::press(context_, "predict.knob" + std::to_string(i),
                                        {at.x - reach, at.y - reach, at.x + reach, at.y + reach}, kKnobReach);
        float to = at.y;
        if (hit.held) to = std::clamp(ImGui::GetIO().MousePos.y, plot.area.y0, plot.area.y1);
        if (hit.focused) {
            const float step = plot.area.height() / 40;
            if (ui::key_pressed(ui::Key::up)) to -= step;
            if (ui::key_pressed(ui::Key::down)) to += step;
        }
        if (to != at.y) {
            values[i] = clamp_to(spec.y, plot.y_at(to));
            open.draft = values;
        }
        auto& list = *ImGui::GetWindowDrawList();
        list.AddCircleFilled({at.x, to}, context_.px(6), context_.color(Role::surface));
        list.AddCircle({at.x, to}, context_.px(6), context_.color(Role::text), 0,
                       context_.px(hit.hovered ? 3 : 2));
    }
}

}  // namespace fp8lab
