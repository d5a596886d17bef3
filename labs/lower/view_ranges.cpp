// The stages of L11's experiments ranges, cascade, kv and tokens.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/lower/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/imgui_canvas.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::lower {
namespace {

using ui::Context;

constexpr float kNarrow = 680, kBetweenHalves = 16;

// Words at the end of each line, from top to bottom without overlap; a leader goes from the line to its words, past the
// mark that its points have.
void name_lines(Context& c, const Figure& figure, const ui::PlotResult& plot, float right) {
    struct Name {
        float y, end;  // of the words, of the line
        std::string_view words;
        Style style;
    };
    std::vector<Name> names;
    for (const Series& series : figure.series) {
        const auto* line = std::get_if<LineSeries>(&series.shape);
        if (!line || !series.style.in_legend || !line->y || line->y->empty()) continue;
        const float y = plot.to_px(plot.extents.x.hi, line->y->back()).y;
        const float end = std::clamp(y, plot.area.y0, plot.area.y1);
        names.push_back({end, end, series.name, series.style});
    }
    ui::move_apart(names, c.px(16), plot.area.y0, plot.area.y1);
    constexpr float kLeader = 14, kMark = 10;
    ui::ImGuiCanvas canvas(c);
    for (const Name& name : names) {
        const bool marked = name.style.marker != Marker::none;
        const float from = plot.area.x1 + c.px(kLeader), x = from + c.px(marked ? kMark + 4 : 4);
        if (x + ui::text_width(c, name.words, kSans13) > right + 1) continue;
        const Color stroke{name.style.color.role, Tone::line};
        ImGui::GetWindowDrawList()->AddLine({plot.area.x1, name.end}, {from, name.y}, c.color(stroke),
                                            ui::hairline(c));
        if (marked)
            paint_marker(canvas, {(from + c.px(kMark / 2)) / c.scale, name.y / c.scale}, name.style.marker,
                         name.style.marker_size, stroke);
        ui::text_mid(c, {x, name.y}, name.words, {name.style.color.role, Tone::ink}, kSans13);
    }
}

}  // namespace

void LowerView::draw_cursor(Context& c, const ui::PlotResult& plot, std::string_view field, double step) {
    const std::vector<Field> fields = lab_.fields();
    const Field& target = *find_field(fields, field);
    const ui::Press press = ui::press(c, fmt::format("lower.{}", field), plot.area, 2);
    double value = *std::get<double*>(target.value);
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const int arrows = press.focused ? ui::arrow_step() : 0;
    const bool pointed = (press.held || press.clicked) && plot.area.contains({mouse.x, mouse.y});
    if (!pointed && arrows == 0) return;
    if (target.logarithmic) {
        const double at = pointed ? std::log2(plot.x_at(mouse.x)) : std::log2(value) + arrows * step;
        value = std::exp2(std::round(at / step) * step);
    } else {
        const double at = pointed ? plot.x_at(mouse.x) : value + arrows * step;
        value = std::round(at / step) * step;
    }
    set(fmt::format("{}={}", field, shortest(std::clamp(value, target.min, target.max))));
}

void LowerView::draw_ranges(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const bool narrow = area.width() < c.px(kNarrow);
    const float middle = std::round((area.x0 + area.x1) / 2);
    Rect left{area.x0, area.y0, middle - c.px(kBetweenHalves), area.y1},
        right{middle + c.px(kBetweenHalves), area.y0, area.x1, area.y1};
    if (narrow) {
        static const std::array<std::string, 2> kPictures = {"Outliers", "Contrast"};
        ui::corner_switch(c, "lower.picture", {area.x1, area.y0}, 200, kPictures, picture_);
        left = right = {area.x0, area.y0 + c.px(38), area.x1, area.y1};
    }
    const float names = c.px(114);
    const auto draw = [&](Figure& figure, ui::PlotState& state, Rect room, const char* field) {
        const float top = ui::heading(c, figure.title, room);
        figure.title.clear();
        Figure plain = figure;
        for (Series& series : plain.series) series.style.in_legend = false;
        const ui::PlotResult plot = ui::plot(c, fmt::format("lower.{}_plot", field), plain, state,
                                             {room.x0, top, room.x1 - names, room.y1},
                                             {.interactive = false, .y_tick_width = 40, .title_height = 0});
        name_lines(c, figure, plot, room.x1);
        if (lab_.why_not(field).empty())
            draw_cursor(c, plot, field, field == std::string_view("contrast") ? 0.5 : 1);
    };
    if (!narrow || picture_ == 0) draw(figures[0], left_, left, "outlier_ratio");
    if (narrow && picture_ != 1) return;
    const float strip = right.height() > c.px(300) ? c.px(96) : 0;
    draw(figures[1], right_, {right.x0, right.y0, right.x1, right.y1 - strip}, "contrast");
    if (strip == 0) return;
    Figure& saturated = figures[2];
    saturated.x.visible = false;
    const Rect room{right.x0, right.y1 - strip + c.px(10), right.x1 - names, right.y1};
    ui::text_at(c, {room.x0, room.y0}, saturated.title, {Role::muted}, kSans13);
    saturated.title.clear();
    saturated.y.label.clear();
    ui::plot(c, "lower.saturated", saturated, third_, {room.x0, room.y0 + c.px(20), room.x1, room.y1},
             {.interactive = false, .crosshair = false, .y_tick_width = 40, .title_height = 0});
}

void LowerView::draw_cascade(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const bool narrow = area.width() < c.px(kNarrow);
    const Rect left{area.x0, area.y0, narrow ? area.x1 : area.x0 + 0.66F * area.width(), area.y1};
    const float height = left.height();
    const std::array<float, 4> tops = {left.y0, left.y0 + 0.40F * height, left.y0 + 0.64F * height, left.y1};
    std::array<ui::PlotState*, 3> states = {&upper_, &left_, &right_};
    const std::array<const char*, 3> names = {"cascade", "cost", "margins"};
    ui::PlotResult first;
    for (std::size_t i = 0; i < figures.size(); ++i) {
        const ui::PlotResult plot =
            ui::plot(c, fmt::format("lower.{}", names.at(i)), figures[i], *states.at(i),
                     {left.x0, tops.at(i), left.x1, tops.at(i + 1) - c.px(i == 2 ? 0 : 10)},
                     {.interactive = false, .y_tick_width = 44, .title_height = i == 0 ? 28.0F : 0.0F});
        if (i == 0) first = plot;
    }
    if (lab_->cascade->at.empty()) return;
    draw_cursor(c, first, "tau", 0.01);
    const float x = first.to_px(lab_->params.tau, first.extents.y.lo).x,
                y = (first.area.y0 + first.area.y1) / 2;
    ui::knob(c, {x, y}, 8);
    if (!narrow) draw_speed_up(c, {left.x1 + c.px(32), area.y0, area.x1, area.y1});
}

// The notebook's arithmetic of an average speed-up beside ours.
void LowerView::draw_speed_up(Context& c, Rect area) {
    const CascadeSweep& sweep = *lab_->cascade;
    const Cascade now = sweep.with(lab_->params.tau);
    const auto rest = [&](float y) { return Rect{area.x0, y, area.x1, area.y1}; };
    const auto note = [&](std::string_view words, float y) {
        return ui::paragraph(c, words, rest(y)) + c.px(6);
    };
    const auto row = [&](const std::string& words, const std::string& value, float y, bool strong = false) {
        return ui::row(c, {words, value, {Role::text}, strong}, rest(y), c.px(30));
    };
    const double e = now.repeated_pct / 100;
    float y = ui::heading(c, "What an average speed-up assumes", area) + c.px(6);
    y = row("rows repeated, e", fmt::format("{:.2f} %", now.repeated_pct), y);
    y = row("cost, low = 0.5", fmt::format("{:.3f}", now.cost), y, true);
    y = row("work saved", fmt::format("{:.1f} %", 100 * (1 - now.cost)), y);
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    y = note(
        "0.5: FP4 has twice the rate of FP8 on NVIDIA’s data sheet of the B200. No time is measured here.",
        y + c.px(8));
    y = ui::heading(c, "1 / (1/7 + e/2)", rest(y + c.px(8))) + c.px(6);
    y = note("A chapter of a course counts FP4 as 7 times and FP8 as 2 times as fast as FP16.", y);
    y = row("with this e", fmt::format("{:.1f}×", 1 / (1.0 / 7 + e / 2)), y, true);
    y = row("its 4× needs e =", "21 %", y);
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    note("Scales are dynamic, and per-tensor scales are those of the whole test set in both passes.",
         y + c.px(8));
}

void LowerView::draw_kv(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const bool narrow = area.width() < c.px(kNarrow);
    const float split = narrow ? area.y0 + 0.55F * area.height() : std::round(area.x0 + 0.56F * area.width());
    const Rect memory = narrow ? Rect{area.x0, area.y0, area.x1, split - c.px(12)}
                               : Rect{area.x0, area.y0, split - c.px(kBetweenHalves), area.y1 - c.px(70)};
    const Rect error = narrow ? Rect{area.x0, split, area.x1, area.y1 - c.px(20)}
                              : Rect{split + c.px(kBetweenHalves), area.y0, area.x1, area.y1 - c.px(70)};
    const auto draw = [&](Figure& figure, const char* name, ui::PlotState& state, Rect room) {
        const float top = ui::heading(c, figure.title, room);
        figure.title.clear();
        ui::plot(c, name, figure, state, {room.x0, top, room.x1, room.y1},
                 {.interactive = false, .y_tick_width = 44, .title_height = 24});
    };
    draw(figures[0], "lower.kv_memory", upper_, memory);
    const std::string label = figures[1].x.label;
    draw(figures[1], "lower.kv_error", left_, {error.x0, error.y0, error.x1, error.y1 - c.px(26)});
    ui::text_at(c, {error.x0, error.y1 - c.px(4)}, label, {Role::muted}, kSans13);
    if (narrow) return;
    ui::paragraph(c,
                  "Bytes per token = 2 × layers × KV heads × head size × bits / 8; FP8 has one scale per "
                  "tensor, NVFP4 one E4M3 scale per 16 values. The errors are of one head with 2 048 random "
                  "keys: how sharp real attention is, L13 shows.",
                  {area.x0, area.y1 - c.px(44), area.x1, area.y1});
}

void LowerView::draw_token_figures(Context& c, Rect area) {
    if (!lab_->tokens->sweep) return;
    std::vector<Figure> figures = lab_.figures();
    static const std::array<std::string, 2> kPictures = {"Divergence", "Against random"};
    const ui::Halves at = ui::halves(c, "lower.token_picture", area, kPictures, picture_);
    const Rect left{at.left.x0, at.left.y0, at.left.x1, at.left.y1 - c.px(52)};
    if (at.shows_left) {
        const float top = ui::heading(c, figures[0].title, left);
        figures[0].title.clear();
        const ui::PlotResult plot =
            ui::plot(c, "lower.tokens", figures[0], upper_, {left.x0, top, left.x1, left.y1},
                     {.interactive = false, .y_tick_width = 52, .title_height = 24});
        if (lab_.applies("token_share")) draw_cursor(c, plot, "token_share", 1);
        ui::paragraph(c, "The work is counted, in the linear layers, and not timed.",
                      {left.x0, left.y1 + c.px(12), left.x1, at.left.y1});
    }
    if (!at.shows_right) return;
    const Rect right{at.right.x0, at.right.y0, at.right.x1, at.right.y1 - c.px(52)};
    const float top = ui::heading(c, figures[1].title, right), names = c.px(150);
    figures[1].title.clear();
    Figure plain = figures[1];
    for (Series& series : plain.series) series.style.in_legend = false;
    const ui::PlotResult plot =
        ui::plot(c, "lower.token_ratio", plain, left_, {right.x0, top, right.x1 - names, right.y1},
                 {.interactive = false, .y_tick_width = 44, .title_height = 24});
    name_lines(c, figures[1], plot, right.x1);
}

}  // namespace fp8lab::lower
