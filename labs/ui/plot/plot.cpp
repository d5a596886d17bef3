#include "labs/ui/plot/plot.h"

#include <algorithm>
#include <string>

#include "labs/ui/draw.h"
#include "labs/ui/plot/hover.h"
#include "labs/ui/plot/imgui_canvas.h"
#include "labs/ui/plot/interact.h"
#include "labs/ui/widgets.h"

namespace fp8lab::ui {

namespace {

View2D shown(const PlotState& state) {
    View2D view = state.view;
    if (state.follow) view.x.reset();
    return view;
}

Rect physical(const Context& context, Rect r) {
    return {context.px(r.x0), context.px(r.y0), context.px(r.x1), context.px(r.y1)};
}

Axis physical(const Context& context, const Axis& axis) {
    const auto scale = static_cast<double>(context.scale);
    return {axis.spec(), axis.range(), axis.px_lo() * scale, axis.px_hi() * scale};
}

void draw_box(Canvas& canvas, const FigureLayout& layout, const PlotState& state, Point at) {
    const Rect plot = layout.plot;
    const Point a = state.drag.start,
                b = {std::clamp(at.x, plot.x0, plot.x1), std::clamp(at.y, plot.y0, plot.y1)};
    const Rect box = {std::min(a.x, b.x), std::min(a.y, b.y), std::max(a.x, b.x), std::max(a.y, b.y)};
    canvas.rect(box, Color{Role::axis, Tone::line, 0.2F});
    const std::array<Point, 4> corners = {
        Point{box.x0, box.y0}, {box.x1, box.y0}, {box.x1, box.y1}, {box.x0, box.y1}};
    canvas.line_strip(corners, {Role::axis}, 1, Dash::solid, true);
}

// The way back from a part of the figure: a button in its upper right corner. True: pressed.
bool whole_view(Context& context, std::string_view name, Rect area) {
    constexpr std::string_view kWhole = "Whole view";
    const float width = text_width(context, kWhole, kSans13) + context.px(16), gap = context.px(4);
    const Rect box{std::round(area.x1 - gap - width), std::round(area.y0 + gap), std::round(area.x1 - gap),
                   std::round(area.y0 + gap + context.px(24))};
    const Press hit = press(context, std::string(name) + ".whole", box, 4);
    fill_rect(context, box, {Role::field}, 4);
    stroke_rect(context, box, {hit.hovered ? Role::axis : Role::line}, 4);
    text_mid(context, {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2}, kWhole, {Role::text}, kSans13,
             Anchor::center);
    tooltip(context, "Whole view",
            "Shows all of the figure again. A double click on the figure does the same.");
    return hit.clicked;
}

}  // namespace

void link_cursors(std::initializer_list<PlotState*> states) {
    const auto leader =
        std::find_if(states.begin(), states.end(), [](const PlotState* s) { return s->cursor_here; });
    for (PlotState* state : states)
        if (!state->cursor_here)
            state->cursor_x = leader == states.end() ? std::nullopt : (*leader)->cursor_x;
}

PlotResult plot(Context& context, std::string_view name, const Figure& bare, PlotState& state, Rect rect,
                PlotOptions options) {
    if (!bare.id.empty()) region(context, bare.id, rect);
    Figure together;
    const auto overlay = options.bare ? context.overlays.end() : context.overlays.find(bare.id);
    const bool laid_over = overlay != context.overlays.end();
    if (laid_over) {
        together = bare;
        together.series.insert(together.series.end(), overlay->second.begin(), overlay->second.end());
    }
    const Figure& figure = laid_over ? together : bare;
    ImGuiCanvas canvas(context);
    const Rect logical = {rect.x0 / context.scale, rect.y0 / context.scale, rect.x1 / context.scale,
                          rect.y1 / context.scale};
    const PaintOptions paint_options = {options.bare, options.y_tick_width, options.title_height};
    FigureLayout layout = lay_out(figure, shown(state), canvas, logical, paint_options);
    Pointer pointer;
    if (options.interactive && !options.bare) {
        const View2D before = shown(state);
        pointer = handle_mouse(context, name, layout, state);
        handle_legend(context, name, figure, layout, state);
        if (shown(state) != before) layout = lay_out(figure, shown(state), canvas, logical, paint_options);
    }
    const View2D view = shown(state);
    PlotResult out;
    out.hovered = pointer.over_plot;
    out.area = physical(context, layout.plot);
    out.x = physical(context, layout.x), out.y = physical(context, layout.y);
    out.extents = {layout.x.range(), layout.y.range()};
    if (pointer.over_plot) {
        out.cursor_x = layout.x.from_px(static_cast<double>(pointer.at.x));
        out.cursor_y = layout.y.from_px(static_cast<double>(pointer.at.y));
        out.nearest = nearest_sample(figure, view, layout, pointer.at);
        if (pointer.clicked) out.clicked = out.nearest;
    }
    if (pointer.over_plot)
        state.cursor_x = out.cursor_x;
    else if (state.cursor_here)
        state.cursor_x.reset();
    state.cursor_here = pointer.over_plot;

    paint(figure, view, layout, canvas);
    if (state.drag.active && state.drag.box)
        draw_box(canvas, layout, state, pointer.at);
    else if (options.crosshair && state.cursor_x && !options.bare)
        draw_crosshair(canvas, figure, view, layout, *state.cursor_x, pointer.over_plot && !state.drag.active,
                       options.below);
    probe(context, name, out.area, out.extents);
    const bool part = (!state.follow && state.view.x) || state.view.y;
    if (options.interactive && !options.bare && part && whole_view(context, name, out.area)) {
        state.view.x.reset(), state.view.y.reset();
        state.follow = true;
        out.hovered = true;  // it leads the figures that share its view
        context.wants_redraw = true;
    }
    return out;
}

}  // namespace fp8lab::ui
