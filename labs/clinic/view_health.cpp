// Tensor health at the cursor: a row a tensor, with the run of its amax and its scale as strips.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/units.h"
#include "labs/clinic/view.h"
#include "labs/live/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::clinic {

using ui::Context;

namespace {

constexpr float kStrip = 36;

// Right edges of the numbers, logical px from the left of the table; a negative column is left out.
struct Columns {
    float amax, scale, underflow, overflow, sqnr;
    bool strips;
};
Columns columns_for(float width) {
    constexpr float kWithStrips = 470;
    const bool strips = width >= kWithStrips;
    const float name = 48, number = (width - name) / (strips ? 5.4F : 5);
    if (!strips)
        return {name + 0.8F * number,
                name + 1.8F * number,
                name + 2.95F * number,
                name + 4.2F * number,
                width,
                false};
    return {name + 1.2F * number,
            name + 2.45F * number,
            name + 3.55F * number,
            name + 4.62F * number,
            width,
            true};
}

// The share as a bar with its right end at `right`.
void underflow_bar(Context& c, float right, float middle, double pct) {
    const float base = middle + c.px(5);
    const Rect bar{right - c.px(kStrip), base - c.px(10), right, base};
    ui::hline(c, bar.x0, bar.x1, base, {Role::line});
    const float share = std::isnan(pct) ? 0 : static_cast<float>(pct) / 100;
    if (share > 0)
        ui::fill_rect(c, {bar.x0, bar.y0, bar.x0 + std::max(ui::hairline(c), share * bar.width()), bar.y1},
                      {Role::under, Tone::fill});
}

void name_cell(Context& c, float x0, float middle, const OperandSpec& tensor, bool chosen) {
    const Role role = tensor.tensor == TensorClass::dy ? Role::e5m2 : Role::e4m3;
    const Rect swatch{x0, std::round(middle - c.px(5)), x0 + c.px(10), std::round(middle + c.px(5))};
    ui::fill_rect(c, swatch, {role, Tone::fill}, 2);
    ui::stroke_rect(c, swatch, {role, Tone::line}, 2);
    ui::text_mid(c, {x0 + c.px(18), middle}, tensor.name, {Role::text}, chosen ? kMonoBold13 : kMono13);
}

// A cast that is not finite has no SQNR.
std::string number_text(double value) {
    return std::isnan(value) || (std::isinf(value) && value < 0) ? "–" : format_number(value, 3, true);
}

std::string row_help(const std::string& name, std::size_t saturated) {
    return fmt::format(
        "A press shows {} in the strips and the histogram. Overflow counts the steps of the whole run in "
        "which "
        "an element was above the largest value: {} here. A healthy run has up to {}, all tensors together.",
        name, saturated, kUsualOverflow);
}

}  // namespace

void ClinicView::draw_health(Context& c, Rect area) {
    const RunPtr shown = lab_->shown();
    const Run& run = *shown;
    const int look = std::min(lab_->params.look, steps_of(run) - 1);
    ui::region(c, "health", area);
    const float top = ui::heading(
        c, fmt::format("Tensors of the {} in step {}", shown_name(), group_thousands(look)), area);
    const Columns columns = columns_for(area.width() / c.scale);
    const auto& tracks = run.arm().tensors;
    const float pitch = std::min(c.px(24), (area.y1 - top) / static_cast<float>(tracks.size() + 1));
    const float head = top + pitch / 2;
    const auto x = [&](float column) { return area.x0 + c.px(column); };
    ui::head(c, {x(columns.amax), head}, "amax", "amax");
    ui::head(c, {x(columns.scale), head}, "scale", "scale");
    ui::head(c, {x(columns.underflow), head}, "underflow %", "underflow");
    ui::head(c, {x(columns.overflow), head}, "overflow, run", "overflow");
    ui::head(c, {x(columns.sqnr), head}, "SQNR dB", "sqnr");
    for (std::size_t t = 0; t < tracks.size(); ++t) {
        const live::TensorTrack& track = tracks[t];
        const std::string& name = track.spec.name;
        const float y0 = std::round(top + pitch * static_cast<float>(t + 1)), y1 = std::round(y0 + pitch);
        const float middle = (y0 + y1) / 2;
        const bool chosen = name == lab_->params.tensor;
        if (ui::press_row(c, "clinic.tensor." + name, {area.x0 - c.px(8), y0, area.x1 + c.px(4), y1}, chosen))
            set("tensor=" + name);
        const std::size_t saturated = track.overflow_at.size();
        ui::tooltip(c, name, row_help(name, saturated));
        name_cell(c, area.x0, middle, track.spec, chosen);
        const auto value = [&](float column, const std::string& words, Color ink = {Role::text}) {
            ui::text_mid(c, {x(column), middle}, words, ink, kMono13, Anchor::right);
        };
        const auto strip = [&](float column, const live::Envelope& envelope) {
            if (!columns.strips) return;
            const float right = x(column) - c.px(66), half = std::min(c.px(8), (y1 - y0) / 2 - c.px(3));
            live::draw_strip(c, {right - c.px(kStrip), middle - half, right, middle + half}, envelope);
        };
        strip(columns.amax, track.amax_strip);
        strip(columns.scale, track.scale_strip);
        value(columns.amax, number_text(value_at(track.amax.values(), look)));
        value(columns.scale, number_text(value_at(track.scale.values(), look)));
        const double underflow = value_at(track.underflow_pct.values(), look);
        if (columns.strips) underflow_bar(c, x(columns.underflow) - c.px(46), middle, underflow);
        constexpr double kShown = 0.005;
        value(columns.underflow, std::isnan(underflow) ? "–" : number_text(std::round(underflow * 100) / 100),
              {underflow >= kShown ? Role::text : Role::muted});
        value(columns.overflow,
              saturated == 0   ? "none"
              : saturated == 1 ? "1 step"
                               : fmt::format("{} steps", saturated),
              saturated > kUsualOverflow ? Color{Role::sat, Tone::ink}
              : saturated > 0            ? Color{Role::text}
                                         : Color{Role::muted});
        const double sqnr = value_at(run.sqnr_db.at(t), look);
        value(columns.sqnr, std::isinf(sqnr) && sqnr > 0 ? "exact" : number_text(sqnr));
    }
}

}  // namespace fp8lab::clinic
