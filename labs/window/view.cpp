#include "labs/window/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/imgui_canvas.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::window {

namespace {

using ui::Context;

}  // namespace

void WindowView::stage(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    if (held_axis_) figures[0].x.range = *held_axis_;
    const float height = area.height() / c.scale;
    const float lower = height >= 620 ? 220 : height >= 430 ? 168 : 0;
    draw_numbers(c, {area.x0, area.y0, area.x1, area.y0 + c.px(56)});
    const Rect upper{area.x0, area.y0 + c.px(64), area.x1, area.y1 - c.px(lower > 0 ? lower + 16 : 0)};
    if (upper.height() < c.px(230))  // its words would lie on the handle
        std::erase_if(figures[0].series,
                      [](const Series& series) { return std::holds_alternative<TextMark>(series.shape); });
    draw_window(c, figures[0], upper);
    if (lower > 0) draw_lower(c, figures, {area.x0, area.y1 - c.px(lower), area.x1, area.y1});
}

// What the cast does, as five numbers over their names.
void WindowView::draw_numbers(Context& c, Rect area) {
    ui::region(c, "numbers", area);
    const Outcome& o = *lab_->outcome;
    const CastStats& stats = o.cast.stats;
    struct Number {
        std::string text, label;
        Role role = Role::text;
        Marker marker = Marker::none;
        bool fault = false;
    };
    const double no_number = 100.0 * static_cast<double>(o.cast.not_finite) / static_cast<double>(stats.n);
    const bool saturates = stats.overflow > 0 || no_number > 0;
    const std::array<Number, 5> numbers = {
        Number{screen_number(stats.underflow_pct(), 3) + " %", "underflow: 0 after the cast", Role::text,
               Marker::triangle_down, stats.underflow > 0},
        Number{screen_number(stats.lost_l1_pct(), 3) + " %",
               "lost L1; energy " + screen_number(stats.lost_energy_pct(), 2) + " %", Role::text},
        Number{screen_number(no_number > 0 ? no_number : stats.overflow_pct(), 3) + " %",
               o.cast.not_finite > 0 ? "overflow: NaN or Inf" : "saturated",
               saturates ? Role::sat : Role::text, Marker::triangle_up, saturates},
        Number{screen_number(stats.sqnr_db(), 3) + " dB", "SQNR", Role::text},
        Number{screen_number(o.cast.scale, 4), "scale = " + scale_rule(o), o.format.role}};
    const float pitch = area.width() / static_cast<float>(numbers.size());
    const Font large = pitch < c.px(160) ? kMono18 : kMono24;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const Number& number = numbers.at(i);
        float x = area.x0 + pitch * static_cast<float>(i);
        const float y = area.y0 + c.px(16);
        std::string label = number.label;  // "underflow" alone, where there is no room for more
        if (ui::text_width(c, label, kSans13) > pitch - c.px(8))
            label = label.substr(0, label.find_first_of(":;,="));
        ui::text_mid(c, {x, area.y0 + c.px(42)}, label, {Role::muted}, kSans13);
        if (number.marker != Marker::none) {
            ui::ImGuiCanvas canvas(c);
            const Role role = number.marker == Marker::triangle_up ? Role::sat : Role::under;
            paint_marker(canvas, {x / c.scale + 7, y / c.scale}, number.marker, 7,
                         {number.fault ? role : Role::axis, Tone::line});
            if (!number.fault)  // hollow: nothing there
                paint_marker(
                    canvas,
                    {x / c.scale + 7, y / c.scale + (number.marker == Marker::triangle_up ? 1.0F : -1.0F)},
                    number.marker, 4.5F, {Role::surface});
            x += c.px(24);
        }
        ui::text_mid(c, {x, y}, number.text, {number.role, Tone::ink}, large);
        static constexpr std::array kNames = {"underflow", "lost", "overflow", "sqnr", "scale"};
        ui::probe(c, std::string("window.number.") + kNames.at(i),
                  {x, y - c.px(14), x + ui::text_width(c, number.text, large), y + c.px(14)}, {},
                  number.text);
    }
}

void WindowView::draw_window(Context& c, const Figure& figure, Rect area) {
    const ui::PlotResult plot = ui::plot(c, "window.histogram", figure, window_plot_, area);
    draw_handle(c, plot);
}

void WindowView::present(Context& c, const Figure& figure, ui::PlotState& state, Rect area) {
    area.y1 -= figure.id == "loss" ? c.px(20) : 0;  // the names of the gradients are below the plot
    if (figure.id != "window") return LabView::present(c, figure, state, area);
    area.y0 += c.px(16);  // the handle stands half above the plot
    draw_handle(c,
                ui::plot(c, "present.figure", figure, state, area, {.crosshair = false, .title_height = 0}));
}

void WindowView::draw_handle(Context& c, const ui::PlotResult& plot) {
    const Outcome& o = *lab_->outcome;
    const Role role = o.format.role;
    if (!std::isfinite(o.window.hi) || !(o.window.hi > 0)) return;
    const auto inside = [&](double x) { return std::clamp(plot.to_px(x, 0).x, plot.area.x0, plot.area.x1); };
    const float lo = inside(o.zero_to), hi = inside(o.window.hi), top = plot.area.y0;
    ui::fill_rect(c, {lo, top, hi, top + c.px(3)}, {role});
    if (o.zero_to > plot.extents.x.lo) ui::fill_rect(c, {lo, top, lo + c.px(2), plot.area.y1}, {role});
    if (o.window.hi < plot.extents.x.hi) ui::fill_rect(c, {hi - c.px(2), top, hi, plot.area.y1}, {role});

    const float half = c.px(76), tall = c.px(15), y = top + c.px(2);
    const float x = std::clamp((lo + hi) / 2, plot.area.x0 + half, plot.area.x1 - half);
    const Rect pill{std::round(x - half), std::round(y - tall), std::round(x + half), std::round(y + tall)};
    const ui::Press press = ui::press(c, "window.handle", pill);
    ui::fill_rect(c, pill, {Role::accent}, 6);
    ui::text_mid(c, {x, y}, std::string(o.format.label) + " window", {Role::inverse}, kBold13,
                 Anchor::center);
    ui::chevron(c, {pill.x0 + c.px(14), y}, ui::Direction::left, {Role::inverse});
    ui::chevron(c, {pill.x1 - c.px(14), y}, ui::Direction::right, {Role::inverse});
    const bool manual = lab_->params.source == "manual";
    ui::tooltip(c, manual ? "Scale" : "Margin",
                manual ? "Drag: the scale changes, and the window moves over the tensor. Arrow keys: by an "
                         "eighth of a binade."
                       : "Drag: the window moves by whole powers of two.");
    if (press.held) {
        const double at = plot.x_at(ImGui::GetIO().MousePos.x);
        if (!(grabbed_ > 0)) {
            grabbed_ = plot.x_at(ImGui::GetIO().MouseClickedPos[0].x);
            held_axis_ = axis_of(o);
        }
        const CastSpec before = lab_->params;
        if (at > 0) slide(grabbed_, at);
        // A margin moves in whole steps: what was not enough for one is kept.
        if (manual)
            grabbed_ = at;
        else
            grabbed_ *= std::exp2(lab_->params.margin - before.margin);
    } else {
        grabbed_ = 0;
        held_axis_.reset();
    }
    if (press.focused && ui::arrow_step() != 0) slide(1, std::exp2(ui::arrow_step() * (manual ? 0.125 : 1)));
}

void WindowView::draw_lower(Context& c, const std::vector<Figure>& figures, Rect area) {
    ui::hline(c, area.x0, area.x1, area.y0 - c.px(8), {Role::line});
    const float split = std::round(area.x0 + 0.66F * area.width());
    ui::plot(c, picture_ == 0 ? "window.margin_sweep" : "window.loss", figures[picture_ == 0 ? 1 : 2],
             lower_plot_, {area.x0, area.y0, split - c.px(20), area.y1},
             {.interactive = false, .crosshair = false});
    ui::fill_rect(c, {split, area.y0, split + ui::hairline(c), area.y1}, {Role::line});
    draw_probe(c, {split + c.px(20), area.y0, area.x1, area.y1});
}

// One number and the one after it: where the format ends, and what lies behind.
void WindowView::draw_probe(Context& c, Rect area) {
    ui::region(c, "probe", area);
    const Outcome& o = *lab_->outcome;
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild("window.probe", {area.width(), area.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    double value = lab_->params.probe;
    static constexpr double kMost = 1e6;
    if (ui::slider(c, "probe", "Number x", "", value, 0x1p-10, kMost, {.logarithmic = true}))
        set_field(lab_.fields(), "probe=" + shortest(value));
    const Rect rows = ui::next_area(c, 64);
    const auto row = [&](const std::string& what, double result, float y) {
        const bool fault = !std::isfinite(result);
        ui::text_mid(c, {rows.x0, y}, what, {Role::muted}, {Face::mono, 15});
        ui::text_mid(c, {rows.x1, y}, screen_number(result), {fault ? Role::sat : Role::text, Tone::ink},
                     kMono18, Anchor::right);
    };
    row("cast(x)", o.probe_cast, rows.y0 + c.px(14));
    row("cast(x + 1)", o.probe_next, rows.y0 + c.px(44));
    ui::probe(c, "window.probe_cast", {rows.x0, rows.y0, rows.x1, rows.y0 + c.px(28)}, {},
              screen_number(o.probe_cast));
    ui::probe(c, "window.probe_next", {rows.x0, rows.y0 + c.px(30), rows.x1, rows.y1}, {},
              screen_number(o.probe_next));
    ui::advance(rows);
    const std::array<std::string, 2> labels = {"Margin", "Loss scale"};
    ImGui::SetCursorScreenPos({area.x0, area.y1 - c.px(34)});
    ui::segmented(c, "window.picture", labels, picture_);
    ImGui::SetCursorScreenPos({area.x0, rows.y1 + c.px(4)});
    if (area.height() > c.px(200)) {
        const std::string limit = screen_number(overflow_threshold(o.format).value);
        ui::wrapped(c, "x × scale is cast, then divided by scale. Scaled, up to " + limit + " becomes " +
                           screen_number(max_finite(o.format)) + ".");
    }
    ImGui::EndChild();
}

std::vector<std::pair<std::string, std::string>> WindowView::status() const {
    const TensorSpec& tensor = lab_->params.tensor;
    const std::string size = group_thousands(lab_->outcome->cast.stats.n) + " elements";
    if (!tensor.file.empty())
        return {{"tensor", tensor.file + ", " + size + lab_->outcome->tensor->excluded.note()}};
    std::string kind = tensor.kind;
    if (tensor.kind == "lognormal") kind += ", sigma " + screen_number(tensor.sigma);
    return {{"seed", std::to_string(tensor.seed)}, {"tensor", kind + ", " + size}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<WindowView>(static_cast<WindowLab&>(lab));
}

}  // namespace fp8lab::window
