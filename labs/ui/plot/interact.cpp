#include "labs/ui/plot/interact.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/figure/decimate.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

namespace {

constexpr float kDragPx = 3;         // less is a click
constexpr double kWheelStep = 0.85;  // of the range, a notch

// Which axes a gesture moves: both in the plot, one over an axis strip.
struct Axes {
    bool x = true, y = true;
};
Axes axes_at(const FigureLayout& layout, Point at) { return {at.x >= layout.plot.x0, at.y < layout.plot.y1}; }

void show(PlotState& state, Axes axes, Range x, Range y) {
    if (axes.x) state.view.x = x, state.follow = false;
    if (axes.y) state.view.y = y;
}

void start_drag(const FigureLayout& layout, PlotState& state, Point at) {
    const bool box = ImGui::IsMouseClicked(ImGuiMouseButton_Right);
    state.drag = {true, box, at, {}, {layout.x.range(), layout.y.range()}};
}

void pan(const FigureLayout& layout, PlotState& state, Point at) {
    const auto& drag = state.drag;
    const Axis x(layout.x.spec(), drag.from.x, layout.x.px_lo(), layout.x.px_hi());
    const Axis y(layout.y.spec(), drag.from.y, layout.y.px_lo(), layout.y.px_hi());
    show(state, axes_at(layout, drag.start), x.panned(static_cast<double>(at.x - drag.start.x)),
         y.panned(static_cast<double>(at.y - drag.start.y)));
}

// A side shorter than a few pixels leaves its axis as it is.
void zoom_to_box(const FigureLayout& layout, PlotState& state, Point at) {
    constexpr float kLeast = 8;
    const Point a = state.drag.start;
    const auto side = [](const Axis& axis, float p, float q) {
        const double from = axis.from_px(static_cast<double>(p)), to = axis.from_px(static_cast<double>(q));
        return drawable(axis.spec(), {from, to});  // in order
    };
    Axes axes = axes_at(layout, a);
    axes.x = axes.x && std::fabs(at.x - a.x) >= kLeast;
    axes.y = axes.y && std::fabs(at.y - a.y) >= kLeast;
    const Rect plot = layout.plot;
    at = {std::clamp(at.x, plot.x0, plot.x1), std::clamp(at.y, plot.y0, plot.y1)};
    show(state, axes, side(layout.x, a.x, at.x), side(layout.y, a.y, at.y));
}

void zoom(const FigureLayout& layout, PlotState& state, Point at) {
    const ImGuiIO& io = ImGui::GetIO();
    Axes axes = axes_at(layout, at);
    if (io.KeyShift) axes.y = false;
    if (io.KeyCtrl) axes.x = false;
    const double factor = std::pow(kWheelStep, static_cast<double>(io.MouseWheel));
    show(state, axes, layout.x.zoomed(static_cast<double>(at.x), factor),
         layout.y.zoomed(static_cast<double>(at.y), factor));
}

void fit_again(const FigureLayout& layout, PlotState& state, Point at) {
    const Axes axes = axes_at(layout, at);
    if (axes.x) state.view.x.reset(), state.follow = true;
    if (axes.y) state.view.y.reset();
}

void place_item(const Context& context, const std::string& id, Rect r, ImGuiButtonFlags buttons) {
    const ImVec2 cursor = ImGui::GetCursorPos();
    ImGui::SetCursorScreenPos({context.px(r.x0), context.px(r.y0)});
    // Handles that the view draws on top take the mouse first.
    button_below_others(
        id.c_str(), {std::max(1.0F, context.px(r.width())), std::max(1.0F, context.px(r.height()))}, buttons);
    ImGui::SetCursorPos(cursor);
}

std::string omitted_words(const Omitted& omitted) {
    std::string out;
    const auto say = [&](std::size_t count, const char* words) {
        if (count > 0) out += (out.empty() ? "Not drawn: " : ", ") + std::to_string(count) + words;
    };
    say(omitted.nan, " NaN (gaps)"), say(omitted.inf, " Inf (clipped)"),
        say(omitted.not_positive, " not positive (log axis)");
    return out.empty() ? out : out + ".";
}

}  // namespace

Pointer handle_mouse(Context& context, std::string_view name, const FigureLayout& layout, PlotState& state) {
    const Rect zone = {layout.outer.x0, layout.plot.y0, layout.outer.x1, layout.outer.y1};
    place_item(context, std::string(name), zone,
               ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight);
    const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
    const ImGuiIO& io = ImGui::GetIO();
    const Point at = {io.MousePos.x / context.scale, io.MousePos.y / context.scale};
    Pointer out{at, hovered && layout.plot.contains(at), false};
    auto& drag = state.drag;
    if (ImGui::IsItemActivated()) start_drag(layout, state, at);
    if (hovered || active) take_mouse_wheel();
    if (hovered && io.MouseWheel != 0 && !drag.active) zoom(layout, state, at);
    if (drag.active && drag.box && key_pressed(Key::escape)) drag = {};
    if (drag.active) {
        drag.moved = {std::max(drag.moved.x, std::fabs(at.x - drag.start.x)),
                      std::max(drag.moved.y, std::fabs(at.y - drag.start.y))};
        const bool dragged = std::max(drag.moved.x, drag.moved.y) >= kDragPx;
        if (dragged && !drag.box && active) pan(layout, state, at);
        if (!active) {
            if (dragged && drag.box) zoom_to_box(layout, state, at);
            out.clicked = !dragged && !drag.box && out.over_plot;
            drag = {};
        }
    }
    if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) fit_again(layout, state, at);
    return out;
}

void handle_legend(Context& context, std::string_view name, const Figure& figure, const FigureLayout& layout,
                   PlotState& state) {
    auto& hidden = state.view.hidden;
    for (const LegendEntry& entry : layout.legend) {
        const Series& series = figure.series[entry.series];
        const std::string id = std::string(name) + ".legend." + series.name;
        place_item(context, id, entry.rect, ImGuiButtonFlags_MouseButtonLeft);
        probe(context, id);
        const std::string omitted =
            omitted_words(ImGui::IsItemHovered() ? count_omitted(series, figure.x, figure.y) : Omitted{});
        tooltip(context, display_name(series), "Click hides it, double click shows it alone. " + omitted);
        if (!ImGui::IsItemActivated()) continue;
        if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
            hidden.clear();
            for (const LegendEntry& other : layout.legend)
                if (figure.series[other.series].name != series.name)
                    hidden.push_back(figure.series[other.series].name);
        } else if (const auto found = std::find(hidden.begin(), hidden.end(), series.name);
                   found != hidden.end()) {
            hidden.erase(found);
        } else {
            hidden.push_back(series.name);
        }
    }
}

}  // namespace fp8lab::ui
