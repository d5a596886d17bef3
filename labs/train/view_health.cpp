// Tensor health: a table that is a figure. Every strip shares the run's steps from left to right.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/units.h"
#include "labs/live/view.h"
#include "labs/train/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::train {
namespace {

constexpr float kStrip = 40;        // width of a strip
constexpr double kFullBarPct = 50;  // underflow at which the bar is full: half of all elements

// Left edges of the columns that fit, logical px from the table's left; a negative one is dropped. Room that
// is left goes between them, as far as a row stays one to the eye.
struct Columns {
    float amax = 56, scale = 180, underflow = 304, l1 = 404, energy = 462, overflow = 524, width = 594;
};
Columns columns_for(float width) {
    Columns columns;
    for (auto [dropped, its_width] :
         {std::pair{&columns.scale, 124.0F}, {&columns.amax, 124.0F}, {&columns.energy, 58.0F}}) {
        if (width >= columns.width) break;
        const float at = std::exchange(*dropped, -1.0F);
        for (float* rest : {&columns.scale, &columns.underflow, &columns.l1, &columns.energy,
                            &columns.overflow, &columns.width})
            if (*rest > at) *rest -= its_width;
    }
    constexpr float kMostRoom = 320;
    const float room = std::clamp(width - columns.width, 0.0F, kMostRoom);
    for (auto [column, share] : {std::pair{&columns.scale, 1},
                                 {&columns.underflow, 2},
                                 {&columns.l1, 2},
                                 {&columns.energy, 2},
                                 {&columns.overflow, 3}})
        if (*column >= 0) *column += room * static_cast<float>(share) / 3;
    columns.width += room;
    return columns;
}

struct Row {
    float x, y0, y1;
    float middle() const { return (y0 + y1) / 2; }
};

Rect strip_area(const ui::Context& c, const Row& row, float column) {
    const float x = row.x + c.px(column), middle = row.middle();
    const float half = std::min(c.px(8), 0.5F * (row.y1 - row.y0) - c.px(3));
    return {x, middle - half, x + c.px(kStrip), middle + half};
}

void value(ui::Context& c, const Row& row, float right, const std::string& words, Color color = {Role::text},
           bool strong = false) {
    ui::text_mid(c, {row.x + c.px(right), row.middle()}, words, color,
                 {strong ? Face::mono_bold : Face::mono, 13}, Anchor::right);
}

void amax_cell(ui::Context& c, const Row& row, float column, const TensorTrack& track) {
    live::draw_strip(c, strip_area(c, row, column), track.amax_strip);
    value(c, row, column + 106, format_number(track.amax.last(), 3, true));
}

void scale_cell(ui::Context& c, const Row& row, float column, const TensorTrack& track,
                const Recipe& recipe) {
    const Point left{row.x + c.px(column), row.middle()};
    if (recipe.scale == ScaleSource::none) {
        ui::text_mid(c, left, "1", {Role::text}, kMono13);
        ui::text_mid(c, {left.x + c.px(16), left.y}, "fixed", {Role::muted}, {Face::sans, 13});
    } else if (!std::isfinite(track.scale.last())) {
        ui::text_mid(c, left, recipe.granularity == Granularity::row ? "one per row" : "one per block",
                     {Role::muted}, {Face::sans, 13});
    } else {
        live::draw_strip(c, strip_area(c, row, column), track.scale_strip);
        value(c, row, column + 104, format_number(track.scale.last(), 3, true));
    }
}

void underflow_cell(ui::Context& c, const Row& row, float column, const TensorTrack& track) {
    const double mean = track.underflow_mean_pct();
    if (std::isnan(mean)) return;  // not counted yet
    const Rect area = strip_area(c, row, column);
    const float base = row.middle() + c.px(5);
    ui::hline(c, area.x0, area.x1, base, {Role::line});
    if (mean > 0) {
        const float share = static_cast<float>(std::min(mean / kFullBarPct, 1.0));
        const Rect bar{area.x0, base - c.px(10), area.x0 + std::max(ui::hairline(c), share * area.width()),
                       base};
        ui::fill_rect(c, bar, {Role::under, Tone::fill});
    }
    const bool grave = mean >= kLostGradientPct;
    value(c, row, column + 84, format_number(std::round(mean * 100) / 100, 3, true),
          {mean >= 0.005 ? Role::text : Role::muted}, grave);
}

// The lost mass, which evidence of older versions does not have.
void lost_cell(ui::Context& c, const Row& row, float column, double mean_pct) {
    if (column < 0) return;
    if (std::isnan(mean_pct)) return value(c, row, column + 50, "\u2013", {Role::muted});
    value(c, row, column + 50, format_number(std::round(mean_pct * 100) / 100, 3, true),
          {mean_pct >= 0.005 ? Role::text : Role::muted});
}

// "0.38", "12.3", "100".
std::string share_text(double pct) {
    return pct > 0 ? fmt::format("{:.{}f}", pct, pct < 10 ? 2 : pct < 99.95 ? 1 : 0) : "0";
}

// Without micro-batches the number of steps; with them the share of the casts.
void overflow_cell(ui::Context& c, const Row& row, float column, const ArmTrack& arm,
                   const TensorTrack& track, int micro_batches) {
    const bool casts = !std::isnan(track.saturated_casts);
    Rect area = strip_area(c, row, column);
    if (casts) area.x1 -= c.px(6);  // its number is longer
    const float base = row.middle() + c.px(5);
    ui::hline(c, area.x0, area.x1, base, {Role::line});
    // A pixel stands for many steps: its tick is as high as their share, 12 px where each of them saturated.
    const float px = ui::hairline(c), least = c.px(2), most = c.px(12);
    const auto pixels = static_cast<std::size_t>(area.width() / px);
    const double steps = std::max(1.0, static_cast<double>(arm.step.size()));
    const double steps_of_pixel = std::max(1.0, steps / static_cast<double>(pixels));
    std::vector<int> counts(pixels);
    for (const int step : track.overflow_at)
        ++counts[std::min(pixels - 1, static_cast<std::size_t>(step / steps * static_cast<double>(pixels)))];
    for (std::size_t i = 0; i < pixels; ++i) {
        if (counts[i] == 0) continue;
        const float share = static_cast<float>(std::min(1.0, counts[i] / steps_of_pixel));
        const float x = area.x0 + px * static_cast<float>(i);
        ui::fill_rect(c, {x, base - std::max(least, share * most), x + px, base}, {Role::sat, Tone::fill});
    }
    const bool any = !track.overflow_at.empty();
    const std::string number = casts ? share_text(track.saturated_casts_pct(micro_batches))
                                     : std::to_string(track.overflow_at.size());
    value(c, row, column + 70, number, any ? Color{Role::sat, Tone::ink} : Color{Role::muted}, any);
}

void triangle(ui::Context& c, Point center, bool up, Color color, bool filled) {
    const float r = c.px(4), h = up ? r : -r;
    auto& list = *ImGui::GetWindowDrawList();
    const ImVec2 tip{center.x, center.y - h}, left{center.x - r, center.y + 0.8F * h},
        right{center.x + r, center.y + 0.8F * h};
    if (filled) {
        list.AddTriangleFilled(tip, left, right, c.color(color));
    } else {
        list.AddTriangle(tip, left, right, c.color(color), ui::hairline(c));
    }
}

void header(ui::Context& c, const Row& row, const Columns& columns, const ArmTrack& arm) {
    const auto label = [&](float x, std::string_view term) {
        if (x >= 0) ui::head(c, {row.x + c.px(x), row.middle()}, term, term, Anchor::left);
    };
    label(columns.amax, "amax");
    label(columns.scale, "scale");
    const auto right = [&](float x, std::string_view words, std::string_view term) {
        return ui::head(c, {row.x + c.px(x), row.middle()}, words, term) - c.px(10);
    };
    const bool lost =
        std::ranges::any_of(arm.tensors, [](const TensorTrack& t) { return t.underflow_sum > 0; });
    triangle(c, {right(columns.underflow + 84, "underflow", "underflow"), row.middle()}, false,
             {Role::under, Tone::fill}, lost);
    right(columns.l1 + 50, "lost L1", "lost-mass");
    if (columns.energy >= 0) right(columns.energy + 50, "energy", "lost-mass");
    triangle(c, {right(columns.overflow + 70, "overflow", "overflow"), row.middle()}, true,
             {Role::sat, Tone::fill}, arm.overflow_steps() > 0);
}

}  // namespace

void health_table(ui::Context& c, Rect area, const ArmTrack& arm, const Recipe& recipe, const ModelPlan& plan,
                  int micro_batches, std::string& shown) {
    const Columns columns = columns_for(area.width() / c.scale);
    const float pitch = area.height() / static_cast<float>(arm.tensors.size() + 1);
    header(c, {area.x0, area.y0, area.y0 + pitch}, columns, arm);
    for (std::size_t i = 0; i < arm.tensors.size(); ++i) {
        const TensorTrack& track = arm.tensors[i];
        const std::string& name = track.spec.name;
        const float y = std::round(area.y0 + pitch * static_cast<float>(i + 1));
        const Row row{area.x0, y, std::round(y + pitch)};
        const Rect hit{row.x - c.px(8), row.y0, row.x + c.px(columns.width + 4), row.y1};
        const bool selected = name == shown;
        const ui::Press press = ui::press(c, "train.tensor." + name, hit, 4);
        if (press.clicked) shown = name;
        if (selected || press.hovered)
            ui::fill_rect(c, hit, {Role::field, Tone::fill, selected ? 1.0F : 0.5F}, 4);

        const float middle = row.middle();
        const Rect swatch{row.x, std::round(middle - c.px(5)), row.x + c.px(10),
                          std::round(middle + c.px(5))};
        const Role role = tensor_role(recipe, plan, track.id);
        ui::fill_rect(c, swatch, {role, Tone::fill}, 2);
        ui::stroke_rect(c, swatch, {role, Tone::line}, 2);
        ui::text_mid(c, {row.x + c.px(18), middle}, name, {Role::text},
                     {selected ? Face::mono_bold : Face::mono, 13});
        if (arm.step.size() == 0) continue;
        if (!track.applies()) {
            ui::text_mid(c, {row.x + c.px(56), middle}, "not cast", {Role::muted}, {Face::sans, 13});
            continue;
        }
        if (columns.amax >= 0) amax_cell(c, row, columns.amax, track);
        if (columns.scale >= 0) scale_cell(c, row, columns.scale, track, recipe);
        underflow_cell(c, row, columns.underflow, track);
        if (track.measured > 0) {
            lost_cell(c, row, columns.l1, track.lost_l1_mean_pct());
            lost_cell(c, row, columns.energy, track.lost_energy_mean_pct());
        }
        overflow_cell(c, row, columns.overflow, arm, track, micro_batches);
    }
}

}  // namespace fp8lab::train
