#include "labs/ruler/view.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ruler {

namespace {

using ui::Context;

constexpr float kGutter = 56;  // y labels of the lower figure: 44 and the gap to the plot

std::string number_text(double value) { return format_number(value, 4, true); }

}  // namespace

void RulerView::stage(Context& context, Rect area) {
    // The table gives way where the figures would become too low to read.
    const float table = context.px(48 + 32 * static_cast<float>(lab_->outcome->lanes.size()));
    const bool has_table = area.height() - table >= context.px(280);
    draw_plots(context, {area.x0, area.y0, area.x1, has_table ? area.y1 - table : area.y1});
    if (has_table) draw_table(context, {area.x0, area.y1 - table + context.px(8), area.x1, area.y1});
}

void RulerView::draw_plots(Context& context, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const bool binades = lab_->params.axis == "binades";
    const bool has_data = !lab_->outcome->tensor.empty();

    const float share = binades ? 0.62F : lab_->outcome->lanes.size() < 4 ? 0.5F : 0.58F;
    const float split = std::round(area.y0 + share * area.height());
    Figure upper = figures.front();
    Rect upper_rect{area.x0, area.y0, area.x1, split - context.px(8)};
    ui::region(context, upper.id, upper_rect);
    if (!binades) {
        // Without a y axis of its own it keeps the lower figure's edges and x axis; its title starts at the
        // stage's.
        ui::text_mid(context, {area.x0, area.y0 + context.px(10)}, upper.title, {Role::text}, kBold15);
        upper.title.clear();
        upper.x.visible = false;
        upper_rect.x0 += context.px(kGutter);
        upper_rect.y0 += context.px(28);
    }
    const ui::PlotResult ruler = ui::plot(context, "ruler.marks", upper, ruler_plot_, upper_rect,
                                          {.crosshair = binades, .title_height = binades ? 28.0F : 0.0F});
    if (!binades) {
        draw_knob(context, ruler, true);
        draw_knob(context, ruler, false);
    }
    if (has_data)
        for (Series& series : figures[2].series)
            if (auto* words = std::get_if<TextMark>(&series.shape); words && words->anchor == Anchor::left)
                words->dx = words_dx_;
    const Rect lower_rect{area.x0, split + context.px(8), area.x1, area.y1};
    const ui::PlotResult lower = ui::plot(context, has_data ? "ruler.data" : "ruler.gaps",
                                          has_data ? figures[2] : figures[1], lower_plot_, lower_rect);
    if (has_data) draw_handle(context, lower);
    if (binades) return;
    // One x axis: whichever figure the mouse is in leads.
    ui::PlotState& leader = lower.hovered ? lower_plot_ : ruler_plot_;
    ui::PlotState& other = lower.hovered ? ruler_plot_ : lower_plot_;
    other.view.x = leader.view.x;
    other.follow = leader.follow;
}

void RulerView::draw_knob(Context& context, const ui::PlotResult& plot, bool low_end) {
    const Params& params = lab_->params;
    const float x =
        std::clamp(plot.to_px(low_end ? params.brush_lo : params.brush_hi, 0).x, plot.area.x0, plot.area.x1);
    const float y = plot.area.y1, reach = context.px(12);
    const ui::Press press = ui::press(context, low_end ? "ruler.interval_lo" : "ruler.interval_hi",
                                      {x - reach, y - reach, x + reach, y + reach}, 12);
    float to = x;
    if (press.held) to = std::clamp(ImGui::GetIO().MousePos.x, plot.area.x0, plot.area.x1);
    if (press.focused) to += context.px(4) * static_cast<float>(ui::arrow_step());
    if (to != x) {
        const double at = plot.x_at(to);
        low_end ? lab_->brush(std::min(at, params.brush_hi), params.brush_hi)
                : lab_->brush(params.brush_lo, std::max(at, params.brush_lo));
    }
    ui::knob(context, {to, y}, 8);
    ui::tooltip(
        context, "Interval",
        "Drag either end. The marks between them are counted, and the gaps between the marks measured.");
}

void RulerView::draw_handle(Context& context, const ui::PlotResult& plot) {
    const Outcome& outcome = *lab_->outcome;
    const Lane& first = outcome.lanes.front();
    const auto inside = [&](double x) { return std::clamp(plot.to_px(x, 0).x, plot.area.x0, plot.area.x1); };
    const float lo = inside(outcome.window.lo), hi = inside(outcome.window.hi),
                y = plot.area.y0 + context.px(14);
    ui::fill_rect(context, {lo, plot.area.y0, hi, plot.area.y0 + context.px(3)}, {first.role});

    const float half = context.px(68), tall = context.px(14);
    const float x = std::clamp(inside(outcome.handle), plot.area.x0 + half, plot.area.x1 - half);
    const Rect pill{std::round(x - half), y - tall, std::round(x + half), y + tall};
    const float aside = hi < plot.area.x1 ? std::max(0.0F, pill.x1 - hi) / context.scale : 0;
    if (aside != words_dx_) context.wants_redraw = true;
    words_dx_ = aside;
    const ui::Press press = ui::press(context, "ruler.handle", pill);
    ui::fill_rect(context, pill, {Role::accent}, 6);
    ui::text_mid(context, {x, y}, std::string(first.format.label) + " ruler", {Role::inverse}, kBold13,
                 Anchor::center);
    ui::chevron(context, {pill.x0 + context.px(14), y}, ui::Direction::left, {Role::inverse});
    ui::chevron(context, {pill.x1 - context.px(14), y}, ui::Direction::right, {Role::inverse});
    ui::tooltip(context, "Scale",
                "Drag: the scale changes, and the ruler moves over the tensor. Arrow keys: by an eighth of a "
                "binade.");
    // The handle follows the mouse: the middle of the window comes to where the handle is drawn, on every axis.
    if (press.held) {
        const ImGuiIO& io = ImGui::GetIO();
        if (!grabbed_) grabbed_ = io.MousePos.x - x;
        const double to = plot.x_at(io.MousePos.x - *grabbed_);
        if (io.MouseDelta.x != 0 && to > 0) lab_->slide(outcome.handle, to);
    } else {
        grabbed_.reset();
    }
    if (press.focused && ui::arrow_step() != 0) lab_->slide(1, std::exp2(ui::arrow_step() / 8.0));
}

namespace {

struct Column {
    std::string_view head, term;  // term: the glossary's entry
    bool of_tensor;
    int goes;  // where the heads have no room: 1 first, 2 next, 0 never
};
constexpr std::array kColumns = {Column{"values", "code", false, 0},
                                 Column{"smallest gap", "ulp", false, 1},
                                 Column{"largest gap", "ulp", false, 2},
                                 Column{"becomes 0 %", "underflow", true, 0},
                                 Column{"saturates %", "saturation", true, 0},
                                 Column{"in normals %", "subnormal", true, 1},
                                 Column{"SQNR dB", "sqnr", true, 0}};

// Indices of the columns that have room, and the width of each.
struct Shown {
    std::vector<std::size_t> columns;
    float pitch;
};
Shown shown_columns(const Context& context, float room, bool has_data) {
    for (int gone = 0;; ++gone) {
        Shown out{};
        float widest = 0;
        for (std::size_t i = 0; i < kColumns.size(); ++i) {
            const Column& column = kColumns[i];
            if ((column.goes != 0 && column.goes <= gone) || (!has_data && column.of_tensor)) continue;
            widest = std::max(widest, ui::text_width(context, column.head, kSans13));
            out.columns.push_back(i);
        }
        out.pitch = room / static_cast<float>(out.columns.size());
        if (gone == 2 || out.pitch >= widest + context.px(6)) return out;
    }
}

std::vector<ui::Cell> cells_of(const Lane& lane, std::span<const std::size_t> columns) {
    const CastStats& stats = lane.cast.stats;
    const std::array<double, kColumns.size()> values = {static_cast<double>(lane.brushed.count),
                                                        lane.brushed.min_gap,
                                                        lane.brushed.max_gap,
                                                        stats.underflow_pct(),
                                                        stats.overflow_pct(),
                                                        lane.cast.normal_pct,
                                                        stats.sqnr_db()};
    std::vector<ui::Cell> out = {{.text = std::string(lane.format.label),
                                  .role = lane.role,
                                  .mono = false,
                                  .strong = true,
                                  .anchor = Anchor::left}};
    for (const std::size_t i : columns) {
        const bool none = kColumns.at(i).term == "ulp" && values.at(i) == 0;
        const bool fault = kColumns.at(i).term == "saturation" && values.at(i) > 0;
        out.push_back({.text = none ? "none" : number_text(values.at(i)),
                       .role = fault               ? Role::sat
                               : values.at(i) == 0 ? Role::muted
                                                   : Role::text,
                       .strong = fault,
                       .value = none ? std::nullopt : std::optional(values.at(i))});
    }
    return out;
}

}  // namespace

void RulerView::draw_table(Context& context, Rect area) {
    const Params& params = lab_->params;
    const std::string caption =
        "from " + number_text(params.brush_lo) + " to " + number_text(params.brush_hi);
    const bool roomy = area.width() >= context.px(700);
    const float name_width =
        std::max(context.px(roomy ? 150 : 110), ui::text_width(context, caption, kSans13) + context.px(12));
    const Shown shown = shown_columns(context, area.width() - name_width, !lab_->outcome->tensor.empty());
    std::vector<float> widths(1 + shown.columns.size(), shown.pitch);
    widths[0] = name_width;
    float x = area.x0 + name_width;
    const float y = area.y0 + context.px(20);
    ui::text_mid(context, {area.x0, y}, caption, {Role::muted}, kSans13);
    for (const std::size_t i : shown.columns) {
        x += shown.pitch;
        ui::head(context, {x, y}, kColumns.at(i).head, kColumns.at(i).term);
    }
    float y_row = area.y0 + context.px(34);
    for (const Lane& lane : lab_->outcome->lanes) {
        ImGui::SetCursorScreenPos({area.x0, y_row});
        y_row += context.px(32);
        ui::table_row(context, cells_of(lane, shown.columns), widths);
    }
}

std::vector<std::pair<std::string, std::string>> RulerView::status() const {
    const TensorSpec& tensor = lab_->params.tensor;
    if (!tensor.file.empty())
        return {{"tensor", tensor.file + lab_->outcome->excluded.note()},
                {"drawn", group_thousands(std::ssize(lab_->outcome->tensor)) + " elements"}};
    if (tensor.kind == "none") return {{"tensor", "none"}};
    return {{"seed", std::to_string(tensor.seed)},
            {"tensor", tensor.kind + ", " + group_thousands(tensor.cols) + " elements"}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<RulerView>(static_cast<RulerLab&>(lab));
}

}  // namespace fp8lab::ruler
