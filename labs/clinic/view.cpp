#include "labs/clinic/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/units.h"
#include "core/run/modes.h"
#include "labs/live/looks.h"
#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::clinic {

using ui::Context;

namespace {

constexpr float kChip = 30, kGauges = 58, kLook = 60, kTable = 282;  // heights, logical px
constexpr float kLow = 620;                  // a stage lower than this shows one of two parts
constexpr float kGutter = 64, kNames = 116;  // left and right of the plots

std::string letter_of(std::size_t place) { return std::string(1, kLetters.at(place)); }

}  // namespace

void ClinicView::stage(Context& c, Rect area) {
    if (std::exchange(sealed_again_, lab_->sealed_again()) != lab_->sealed_again())
        c.notice = {"All cases are sealed again", "Ctrl Z brings back what was said and done"};
    const float top = draw_chips(c, area);
    if (lab_->opened.busy() || !lab_->is_open()) {
        const double share = lab_->opened.share();
        if (!lab_->opened->patient) {
            ui::note(
                c, fmt::format("The patient and its twin are trained on this machine: {:.0f} %", 100 * share),
                {area.x0, top, area.x1, area.y1});
            return;
        }
    }
    const bool low = area.height() < c.px(kLow);
    const float look = area.y1 - c.px(kLook), gauges = look - c.px(kGauges);
    const float lower = low ? top : gauges - c.px(kTable);
    Rect line{area.x0, look, area.x1, area.y1};
    if (low) {
        constexpr float kSwitch = 190;
        ui::corner_switch(c, "clinic.part", {area.x1, look + c.px(20)}, kSwitch,
                          std::array<std::string, 2>{"Curves", "Tensors"}, part_);
        line.x1 -= c.px(kSwitch + 24);
    }
    if (!low || part_ == 0) draw_curves(c, {area.x0, top, area.x1, (low ? gauges : lower) - c.px(12)});
    if (!low || part_ == 1) draw_lower(c, {area.x0, lower, area.x1, gauges - c.px(10)});
    ui::hline(c, area.x0, area.x1, gauges, {Role::line});
    draw_gauges(c, {area.x0, gauges, area.x1, look});
    ui::hline(c, area.x0, area.x1, look, {Role::line});
    draw_look(c, line);
}

// ---- Cases
float ClinicView::draw_chips(Context& c, Rect area) {
    const float gap = c.px(8), width = (area.width() - 7 * gap) / static_cast<float>(kLetters.size());
    for (std::size_t i = 0; i < kLetters.size(); ++i) {
        const float x = area.x0 + static_cast<float>(i) * (width + gap);
        draw_chip(c, i, {std::round(x), area.y0, std::round(x + width), area.y0 + c.px(kChip)});
    }
    return area.y0 + c.px(kChip + 14);
}

void ClinicView::draw_chip(Context& c, std::size_t place, Rect chip) {
    const bool now = place == lab_->params.place();
    const std::string_view name = lab_->name_of(place);
    const bool solved = lab_->solved(place);
    const ui::Press press = ui::press(c, "clinic.case." + letter_of(place), chip);
    if (press.clicked) set("case=" + letter_of(place));
    const DiseaseInfo& info = info_of(lab_->params.disease(place));
    const auto mode = std::ranges::find(failure_modes(), info.diagnosis, &FailureMode::id);
    if (!name.empty())
        ui::tooltip(c, "Case " + letter_of(place) + (solved ? ", solved" : ", does not count"), mode->words);
    ui::fill_rect(c, chip, {now ? Role::surface : Role::field, Tone::fill, press.hovered ? 0.7F : 1.0F}, 6);
    ui::stroke_rect(c, chip, {now ? Role::axis : Role::line}, 6, now ? 1.5F : 1.0F);
    const float y = (chip.y0 + chip.y1) / 2;
    float x = chip.x0 + c.px(7);
    if (solved) {
        ui::disc_tick(c, {x + c.px(7), y}, c.px(7), {Role::text}, {Role::inverse});
        x += c.px(19);
    }
    ui::text_mid(c, {x, y}, letter_of(place), {name.empty() && !now ? Role::muted : Role::text}, kMonoBold13);
    x += c.px(13);
    // Where its name does not fit it is the number of the diagnosis.
    std::string words(name.empty() ? "sealed" : name);
    const auto fits = [&](Font font) { return x + ui::text_width(c, words, font) < chip.x1 - c.px(3); };
    if (!fits(kSans13) && !name.empty()) words = info.diagnosis == "10" ? "0" : info.diagnosis;
    const Font font = now && !name.empty() && fits(kBold13) ? kBold13 : kSans13;
    if (fits(font)) ui::text_mid(c, {x, y}, words, {name.empty() ? Role::muted : Role::text}, font);
}

// ---- Curves
void ClinicView::look_in(Context& c, const char* name, const ui::PlotResult& plot) {
    const ui::Press press = ui::press(c, fmt::format("clinic.{}.look", name), plot.area, 2);
    if (press.clicked || press.held) {
        const double at = std::round(plot.x_at(ImGui::GetIO().MousePos.x));
        set(fmt::format("look={:.0f}", std::clamp(at, 0.0, kSteps - 1.0)));
    }
    const int arrows = press.focused ? ui::arrow_step() : 0;
    if (arrows != 0) set(fmt::format("look={}", std::clamp(lab_->params.look + arrows, 0, kSteps - 1)));
}

// The mean of the last 100 losses, at the height of the curve's end.
void ClinicView::draw_ends(Context& c, const ui::PlotResult& plot, Rect area) {
    std::vector<ui::EndWords> ends;
    const auto add = [&](const RunPtr& run, const char* name, Color ink) {
        if (!run) return;
        const double last = run->arm().mean.last();
        const float y = std::isfinite(last) ? plot.to_px(0, last).y : plot.area.y0;
        ends.push_back({y, run->ended() ? "ended" : live::loss_text(run->tail()), name, ink});
    };
    add(lab_->opened->patient, "patient", {Role::e4m3, Tone::ink});
    add(lab_->opened->twin, "twin", {Role::bf16, Tone::ink});
    if (lab_->outcome()) add(lab_->cure->treated, "rerun", {Role::text});
    // Whole words above the lower edge, where the part ends that a prediction covers.
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(8),
                  {area.x0, plot.area.y0, area.x1, plot.area.y1 - c.px(10)});
}

void ClinicView::draw_curves(Context& c, Rect area) {
    const std::vector<Figure> all = lab_.figures();
    std::string title = all[0].title;
    if (!lab_->is_open())
        title = fmt::format("Case {} and its twin are trained: {:.0f} %", lab_->params.letter,
                            100 * lab_->opened.share());
    else if (shown_name() == "rerun")
        title += "; below: the rerun";
    const float top = ui::heading(c, title, area) + c.px(2);
    const float axis = c.px(22), rest = area.y1 - top - axis;
    const std::array<float, 3> heights = {0.60F * rest, 0.22F * rest, 0.18F * rest};
    float y = top;
    Rect above{};
    const auto draw = [&](std::size_t i, const char* name, ui::PlotState& state) {
        const bool last = i == 2;
        Figure figure = all[i];
        figure.title.clear();
        figure.subtitle.clear();
        figure.x.visible = false;
        for (Series& series : figure.series) series.style.end_label.clear();
        const Rect part{area.x0, std::round(y), area.x1, std::round(y + heights.at(i))};
        ui::region(c, name, part);
        // The strips have the edges of the plot above: without numbers on its axis a plot has no gutter of its own.
        const Rect drawn{i == 0 ? part.x0 : above.x0, part.y0, i == 0 ? part.x1 - c.px(kNames) : above.x1,
                         part.y1};
        const ui::PlotResult plot =
            ui::plot(c, fmt::format("clinic.{}", name), figure, state, drawn,
                     {.interactive = false, .y_tick_width = i == 0 ? kGutter : 0, .title_height = 0});
        if (i == 0) above = plot.area;
        if (i == 0) draw_ends(c, plot, part);
        if (i > 0) {
            const float middle = (plot.area.y0 + plot.area.y1) / 2;
            ui::text_mid(c, {area.x0, middle - c.px(9)}, name, {Role::muted}, kSans13);
            ui::text_mid(c, {area.x0, middle + c.px(9)}, lab_->params.tensor, {Role::text}, kMonoBold13);
        }
        look_in(c, name, plot);
        if (last) {
            constexpr std::array<std::pair<double, std::string_view>, 5> kTicks = {
                {{0, "0"}, {500, "500"}, {1000, "1000"}, {1500, "1500"}, {2000, "2000"}}};
            ui::axis_below(c, plot, "step", kTicks, area.x0);
        }
        y += heights.at(i);
    };
    draw(0, "loss", loss_);
    draw(1, "scale", scale_);
    draw(2, "underflow", underflow_);
}

// ---- Tensors
void ClinicView::draw_lower(Context& c, Rect area) {
    constexpr float kWide = 720;
    if (area.width() < c.px(kWide)) {
        constexpr float kSwitch = 180;
        ui::corner_switch(c, "clinic.tensors", {area.x1, area.y0}, kSwitch,
                          std::array<std::string, 2>{"Table", "Histogram"}, narrow_);
        // The heads of the columns are below the switch.
        const Rect rest{area.x0, area.y0 + c.px(12), area.x1, area.y1};
        if (narrow_ == 0)
            draw_health(c, rest);
        else
            draw_histogram(c, rest);
        return;
    }
    const float middle = std::round(area.x0 + 0.65F * area.width());
    ui::fill_rect(c, {middle, area.y0, middle + ui::hairline(c), area.y1}, {Role::line});
    draw_health(c, {area.x0, area.y0, middle - c.px(16), area.y1});
    draw_histogram(c, {middle + c.px(16), area.y0, area.x1, area.y1});
}

void ClinicView::draw_histogram(Context& c, Rect area) {
    Figure figure = lab_.figures()[3];
    ui::region(c, "histogram", area);
    const float top = ui::heading(c, figure.title, area);
    figure.title.clear();
    ui::plot(c, "clinic.histogram", figure, histogram_, {area.x0, top, area.x1, area.y1},
             {.interactive = false, .y_tick_width = 8, .title_height = 22});
}

// ---- Gauges and the cursor
namespace {

struct Gauge {
    std::string head, value, when, help;
};

// Of every kInstrumentSteps-th step, the newest at the cursor.
Gauge share_gauge(const char* head, const std::vector<std::vector<float>>& of, std::size_t layer, int look,
                  const char* help) {
    Gauge out{fmt::format("{}, layer {}", head, layer + 1), "–", "", help};
    const std::vector<float>& series = of.at(layer);
    if (series.empty()) return out;
    const int at = std::min(look / kInstrumentSteps, static_cast<int>(series.size()) - 1);
    const double value = value_at(series, at);
    if (!std::isnan(value)) out.value = format_number(value, 3, true) + " %";
    out.when = "step " + group_thousands(at * kInstrumentSteps);
    return out;
}

}  // namespace

void ClinicView::draw_gauges(Context& c, Rect area) {
    ui::region(c, "gauges", area);
    const bool of_rerun = shown_name() == "rerun";
    const Run& run = *lab_->shown();
    const int look = lab_->params.look;
    const auto tensor = run.plan.find(lab_->params.tensor);
    const std::size_t layer = tensor ? run.plan.tensor(*tensor).gemm : 0;
    const auto& stopped = run.arm().stopped;
    const RunPtr twin = of_rerun ? lab_->cure->twin : lab_->opened->twin, healthy = lab_->opened->reference;
    const std::array<Gauge, 4> gauges = {
        {{"first non-finite tensor", stopped ? stopped->tensor : "none",
          stopped ? fmt::format("step {}", stopped->step) : "whole run",
          "The first tensor that has an Inf or a NaN. The run ends in that step."},
         share_gauge(
             "weights that moved", run.moved_pct, layer, look,
             "How many of the layer’s weights the update of that step changed. Recorded in every 50th "
             "step: the newest record at or before the cursor."),
         share_gauge("products off by", run.product_error_pct, layer, look,
                     "How far the layer’s products are from exact sums of the same cast values. Recorded in "
                     "every 50th step. A dash: there is no product other than 0 to compare with."),
         {"twin / BF16 reference", healthy ? fmt::format("{:.2f}×", twin->tail() / healthy->tail()) : "–",
          "at the end",
          "The final loss of the twin to that of the BF16 reference, a BF16 run on the same data that is "
          "known "
          "to be healthy. 1.00: BF16 is healthy here."}}};
    // Smaller where the step beside one of the values would reach into the next column.
    const float width = area.width() / 4, between = c.px(8);
    Font font{Face::mono, 18};
    const bool fits = std::ranges::all_of(gauges, [&](const Gauge& gauge) {
        return ui::text_width(c, gauge.value, font) + ui::text_width(c, gauge.when, kSans13) + 2 * between <=
               width;
    });
    if (!fits) font = kMono13;
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    for (std::size_t i = 0; i < gauges.size(); ++i) {
        const Gauge& gauge = gauges.at(i);
        const float x = area.x0 + static_cast<float>(i) * width, y = area.y0 + c.px(39);
        ui::text_mid(c, {x, area.y0 + c.px(17)}, ui::cut_end(c, gauge.head, kSans13, width - c.px(8)),
                     {Role::muted}, kSans13);
        ui::text_mid(c, {x, y}, gauge.value, {Role::text}, font);
        const float when = x + ui::text_width(c, gauge.value, font) + between;
        if (when + ui::text_width(c, gauge.when, kSans13) <= x + width - c.px(8))  // else the table says it
            ui::text_mid(c, {when, y + c.px(fits ? 2 : 0)}, gauge.when, {Role::muted}, kSans13);
        ImGui::SetCursorScreenPos({x, area.y0});
        ImGui::Dummy({width - c.px(8), area.height()});
        ui::probe(c, fmt::format("clinic.gauge.{}", i));
        ui::tooltip(c, gauge.head, gauge.help);
    }
    ImGui::SetCursorScreenPos(cursor);
}

// A run that has ended has no steps after its last one.
void ClinicView::draw_look(Context& c, Rect area) {
    const int last = steps_of(*lab_->shown()) - 1;
    if (last == 0) {
        ui::text_mid(c, {area.x0, area.y0 + c.px(17)}, "Step 0 is all that this run has.", {Role::muted},
                     kSans15);
        return;
    }
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos({area.x0, area.y0 + c.px(4)});
    ImGui::BeginChild("clinic.look", {area.width(), area.height() - c.px(4)}, false,
                      ImGuiWindowFlags_NoScrollbar);
    double look = std::min(lab_->params.look, last);
    if (ui::slider(c, "look", "Look at step", "", look, 0, last, {.step = 1, .format = "{0:.0f}"}))
        set(fmt::format("look={:.0f}", look));
    ImGui::EndChild();
    ImGui::SetCursorScreenPos(cursor);
}

// ---- Keys and status
std::string ClinicView::shown_name() const {
    return lab_->shown() == lab_->opened->patient ? "patient" : "rerun";
}

bool ClinicView::locked() const { return lab_->is_cured(lab_->params.place()); }

void ClinicView::reveal(Context& c) {
    const std::string now = lab_->params.dealt() + lab_->params.letter;
    if (std::exchange(armed_, now) == now) {
        lab_.act("reveal");
        return;
    }
    c.notice = {"R once more names the disease", "The case then no longer counts; undo does not change that"};
}

bool ClinicView::key(Context& c, ui::Key key) {
    const auto move = [&](std::size_t by) {
        set("case=" + letter_of((lab_->params.place() + by) % kLetters.size()));
        return true;
    };
    if (key == ui::Key::right) return move(1);
    if (key == ui::Key::left) return move(kLetters.size() - 1);
    if (key == ui::Key::r) {
        if (lab_->unsealed().empty()) reveal(c);
        return true;
    }
    if (key < ui::Key::digit_0 || key > ui::Key::digit_0 + 9) return false;
    if (diagnoses_drawn_ + 1 < ImGui::GetFrameCount() || locked()) return false;
    const int digit = key - ui::Key::digit_0;
    set(fmt::format("diagnosis_{}={}", small_letter(lab_->params.place()), digit == 0 ? 10 : digit));
    return true;
}

std::span<const ViewKey> ClinicView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{"0 to 9", "the diagnosis of that number", ui::Key::digit_0, ui::Key::digit_0 + 9},
        ViewKey{"Left, Right", "another case", ui::Key::right, ui::Key::left},
        ViewKey{"R", "twice: names the disease", ui::Key::r, ui::Key::r}};
    return kKeys;
}

std::vector<std::pair<std::string, std::string>> ClinicView::status() const {
    return {{"case", lab_->params.letter},
            {"draw", std::to_string(lab_->params.seed)},
            {"seed", std::to_string(lab_->params.trained_seed())},
            {"task", "teacher 32-64-64-1, batch 256, adamw"}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<ClinicView>(static_cast<ClinicLab&>(lab));
}

}  // namespace fp8lab::clinic
