// The numbers of every step under its column of the plot: a table that is a figure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/delayed/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/imgui_canvas.h"
#include "labs/ui/widgets.h"

namespace fp8lab::delayed {

namespace {

using ui::Context;

constexpr double kFault_db = 10;  // an SQNR below it is a fault
// Logical px: "0.0427" and air; "0.04" and air.
constexpr float kColumnForNumbers = 52, kLeastColumn = 41;

enum class Row { scale, saturated, underflow, sqnr, step };
constexpr std::array kRows = {Row::scale, Row::saturated, Row::underflow, Row::sqnr, Row::step};
constexpr std::array<const char*, 5> kNames = {"scale", "saturated", "underflow", "sqnr", "step"};
constexpr std::array<const char*, 5> kLabels = {"scale used", "saturated %", "underflow %", "SQNR dB",
                                                "step t"};

double value_of(const Run& run, Row row, std::size_t t) {
    switch (row) {
        case Row::scale:
            return static_cast<double>(run.steps[t].scale_used);
        case Row::saturated:
            return run.casts[t].overflow_pct();
        case Row::underflow:
            return run.casts[t].underflow_pct();
        case Row::sqnr:
            return run.casts[t].sqnr_db();
        case Row::step:
            return static_cast<double>(t);
    }
    return 0;
}

class Strips {
  public:
    Strips(Context& c, const Delayed& lab, const ui::PlotResult& plot, Rect area)
        : c_(c), run_(lab.shown()), plot_(plot), area_(area), at_(static_cast<std::size_t>(lab.cursor())) {
        pitch_ = plot.to_px(1, 1).x - plot.to_px(0, 1).x;
    }

    void draw(Row row, float y0, float y1) {
        const auto index = static_cast<std::size_t>(row);
        ui::hline(c_, area_.x0, area_.x1, y1, {Role::line});
        const float y = (y0 + y1) / 2;
        label(row, y);
        const bool numbers = pitch_ >= c_.px(kLeastColumn);
        const bool has_bar = row == Row::saturated || row == Row::underflow;
        double most = 0;
        for (std::size_t t = 0; t < run_.steps.size(); ++t) most = std::max(most, value_of(run_, row, t));
        ImGui::PushClipRect({plot_.area.x0, y0}, {plot_.area.x1, y1 + c_.px(2)}, true);
        for (std::size_t t = 0; t < run_.steps.size(); ++t) {
            const Rect column = cell(t, y0, y1);
            if (column.x1 < plot_.area.x0 || column.x0 > plot_.area.x1) continue;
            const double value = value_of(run_, row, t);
            if (has_bar && most > 0) bar(row, value / most, numbers, column);
            if (numbers) number(row, value, column, true);
            ui::probe(c_, fmt::format("delayed.strip.{}.{}", kNames.at(index), t), inset_rows(column), {},
                      words(row, value));
        }
        if (!numbers) number(row, value_of(run_, row, at_), cell(at_, y0, y1), false);
        ImGui::PopClipRect();
    }

  private:
    Rect cell(std::size_t t, float y0, float y1) const {
        const float x0 = plot_.to_px(static_cast<double>(t), 1).x;
        return {x0, y0, x0 + pitch_, y1};
    }
    static Rect inset_rows(Rect cell) { return {cell.x0, cell.y0 + 2, cell.x1, cell.y1 - 2}; }
    std::string words(Row row, double value) const {
        const bool room = pitch_ >= c_.px(kColumnForNumbers) || pitch_ < c_.px(kLeastColumn);
        const int digits = room ? 3 : row != Row::scale && std::fabs(value) < 0.1 ? 1 : 2;
        if (row == Row::step) return group_thousands(static_cast<std::int64_t>(value));
        return format_number(value, row == Row::scale ? digits + 1 : digits, true);
    }
    Color ink(Row row, double value) const {
        if (row == Row::step) return {value == static_cast<double>(at_) ? Role::text : Role::muted};
        if (row == Row::scale) return {find_format(run_.machine.format).role, Tone::ink};
        if (row == Row::saturated && value > 0) return {Role::sat, Tone::ink};
        if (row == Row::sqnr && value < kFault_db) return {Role::sat, Tone::ink};
        return {value == 0 ? Role::muted : Role::text};
    }
    void label(Row row, float y) const {
        float x = area_.x0;
        if (row == Row::saturated || row == Row::underflow) {
            ui::ImGuiCanvas canvas(c_);
            const bool up = row == Row::saturated;
            paint_marker(canvas, {x / c_.scale + 5, y / c_.scale},
                         up ? Marker::triangle_up : Marker::triangle_down, 5,
                         {up ? Role::sat : Role::under, up ? Tone::line : Tone::fill});
            x += c_.px(16);
        }
        ui::text_mid(c_, {x, y}, kLabels.at(static_cast<std::size_t>(row)), {Role::muted}, kSans13);
    }
    // Under a number the bar runs from left to right, else it is vertical. The longest is the row's
    // largest.
    void bar(Row row, double share, bool numbers, Rect cell) const {
        if (!(share > 0)) return;
        const Color color{row == Row::saturated ? Role::sat : Role::under,
                          row == Row::saturated ? Tone::line : Tone::fill};
        const auto part = static_cast<float>(share);
        if (numbers) {
            const float room = cell.width() - c_.px(16), left = cell.x0 + c_.px(8);
            ui::fill_rect(
                c_, {left, cell.y1 - c_.px(5), left + std::max(c_.px(1.5F), part * room), cell.y1 - c_.px(2)},
                color);
            return;
        }
        const float room = cell.height() - c_.px(4), gap = cell.width() > c_.px(4) ? c_.px(1) : 0;
        ui::fill_rect(c_, {cell.x0, cell.y1 - std::max(c_.px(1.5F), part * room), cell.x1 - gap, cell.y1},
                      color);
    }
    void number(Row row, double value, Rect cell, bool centred) const {
        const std::string text = words(row, value);
        const bool strong =
            (row == Row::saturated && value > 0) || (row == Row::step && value == static_cast<double>(at_));
        const Font font = strong ? kMonoBold13 : kMono13;
        const float y = (cell.y0 + cell.y1) / 2 - (centred ? c_.px(1) : 0);
        if (centred)
            return ui::text_mid(c_, {(cell.x0 + cell.x1) / 2, y}, text, ink(row, value), font,
                                Anchor::center);
        // Beside its bar, over what is there.
        const float width = ui::text_width(c_, text, font);
        const bool right = cell.x1 + c_.px(6) + width < plot_.area.x1;
        const float x = right ? cell.x1 + c_.px(6) : cell.x0 - c_.px(6) - width;
        ui::fill_rect(c_, {x - c_.px(3), cell.y0 + c_.px(3), x + width + c_.px(3), cell.y1 - c_.px(2)},
                      {Role::surface});
        ui::text_mid(c_, {x, y}, text, ink(row, value), font);
    }

    Context& c_;
    const Run& run_;
    const ui::PlotResult& plot_;
    Rect area_;
    std::size_t at_;
    float pitch_;
};

}  // namespace

float draw_strips(Context& c, const Delayed& lab, const ui::PlotResult& plot, Rect area, bool all_rows) {
    const float x0 = std::max(plot.to_px(lab.cursor(), 1).x, plot.area.x0);
    const float x1 = std::min(plot.to_px(lab.cursor() + 1, 1).x, plot.area.x1);
    if (x1 > x0) ui::fill_rect(c, {x0, plot.area.y1, x1, area.y1}, {Role::field, Tone::fill, 0.75F});
    Strips strips(c, lab, plot, area);
    const float height = c.px(all_rows ? 32 : 26);
    float y = area.y0;
    for (const Row row : kRows) {
        if (!all_rows && (row == Row::scale || row == Row::sqnr)) continue;
        strips.draw(row, y, y + height);
        y += height;
    }
    return y;
}

}  // namespace fp8lab::delayed
