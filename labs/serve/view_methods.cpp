// The part "methods": a stem for each scheme, over the layers of the chosen one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/serve/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/choose.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
namespace {

using ui::Context;

constexpr float kHeads = 50, kRow = 40;

// Edges as shares of the width.
constexpr float kShape = 0.03F, kW = 0.168F, kWEnd = 0.5F, kOut = 0.574F, kOutEnd = 0.86F;

std::string pct_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

// Two bars, the outline of to nearest over the filled one of the method, with their values.
void draw_bars(Context& c, Rect area, double nearest, double own, double most, bool both, Role role) {
    const float middle = (area.y0 + area.y1) / 2, words = c.px(56);
    const auto bar = [&](float y, double value, bool filled) {
        const float x1 = area.x0 + (area.width() - words) * static_cast<float>(value / most);
        const Rect rect{area.x0, y - c.px(5), x1, y + c.px(5)};
        if (filled)
            ui::fill_rect(c, rect, {role, Tone::fill});
        else
            ui::stroke_rect(c, rect, {role, Tone::line});
        ui::text_mid(c, {x1 + c.px(8), y}, pct_text(value), {filled ? Role::text : Role::muted}, kMono13);
    };
    bar(both ? middle - c.px(8) : middle, nearest, false);
    if (both) bar(middle + c.px(8), own, true);
}

}  // namespace

void ServeView::draw_methods(Context& c, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    const bool moved = !lab_->amax->factors.empty();
    const auto rows = static_cast<float>(std::min<std::size_t>(lab_->chosen->layers.size(), 6));
    const float table = c.px(kHeads + kRow * rows + 30);
    const float split = std::max(area.y1 - table - c.px(14), area.y0 + 0.4F * area.height());
    draw_stems(c, figures[moved ? 2 : 0], {area.x0, area.y0, area.x1, split});
    draw_layers(c, {area.x0, split + c.px(14), area.x1, area.y1});
}

void ServeView::draw_stems(Context& c, const Figure& figure, Rect area) {
    const ui::PlotResult plot = ui::plot(c, "serve." + figure.id, figure, upper_, area,
                                         {.crosshair = figure.id == "amax", .y_tick_width = 52});
    const auto scheme_of = [&](const ui::PlotResult::Hit& hit) -> std::string {
        const std::string& name = figure.series[hit.series].name;
        const std::string id = name.substr(name.find("##") == name.npos ? 0 : name.find("##") + 2);
        return std::ranges::find(kSchemes, id) == kSchemes.end() ? "" : id;
    };
    const auto hit = ui::chosen_mark(c, plot, [&](const auto& one) { return !scheme_of(one).empty(); });
    if (hit) set("scheme=" + scheme_of(*hit));
}

void ServeView::draw_layers(Context& c, Rect area) {
    const Chosen& chosen = *lab_->chosen;
    if (chosen.layers.empty()) return;
    ui::text_at(c, {area.x0, area.y0}, layers_title(chosen), {Role::text}, kBold15);
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    const float heads = area.y0 + c.px(36);
    ui::head(c, {area.x0, heads}, "layer", "layer", Anchor::left);
    ui::head(c, {x(kW), heads}, "error of W, relative L2", "relative-l2", Anchor::left);
    ui::head(c, {x(kOut), heads}, "error of the output X W", "relative-l2", Anchor::left);
    ui::text_mid(c, {area.x1, heads}, "output", {Role::muted}, kSans13, Anchor::right);
    float y = area.y0 + c.px(kHeads);
    for (std::size_t l = 0; l < chosen.layers.size() && y + c.px(kRow) <= area.y1; ++l, y += c.px(kRow))
        draw_layer(c, l, {area.x0, y, area.x1, y + c.px(kRow)});
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(c, "outline: rounded to nearest   filled: the method", {area.x0, y + c.px(6), area.x1, area.y1});
    ui::region(c, "layers", area);
}

void ServeView::draw_layer(Context& c, std::size_t l, Rect line) {
    const Chosen& chosen = *lab_->chosen;
    const LayerErrors& layer = chosen.layers[l];
    const auto x = [&](float share) { return line.x0 + share * line.width(); };
    const float middle = (line.y0 + line.y1) / 2;
    ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
    ui::text_mid(c, {line.x0, middle}, layer.size.name, {Role::text}, kMonoBold13);
    const float shape =
        std::max(x(kShape), line.x0 + ui::text_width(c, layer.size.name, kMonoBold13) + c.px(8));
    ui::text_mid(c, {shape, middle}, fmt::format("{}→{}", layer.size.in, layer.size.out), {Role::muted},
                 kMono13);
    double most_w = 0, most_out = 0;
    for (const LayerErrors& one : chosen.layers)
        most_w = std::max({most_w, one.w, one.w_nearest}),
        most_out = std::max({most_out, one.out, one.out_nearest});
    const bool both = !chosen.to_nearest();
    const Role role = chosen.scheme().role == Role::truth ? Role::text : chosen.scheme().role;
    draw_bars(c, {x(kW), line.y0, x(kWEnd), line.y1}, layer.w_nearest, layer.w, most_w, both, role);
    draw_bars(c, {x(kOut), line.y0, x(kOutEnd), line.y1}, layer.out_nearest, layer.out, most_out, both, role);
    if (!both) return;
    const double ratio = layer.out_nearest / layer.out;
    ui::text_mid(
        c, {line.x1, middle},
        fmt::format("{}× {}", times_text(std::max(ratio, 1 / ratio)), ratio >= 1 ? "closer" : "further"),
        {Role::text}, kMonoBold13, Anchor::right);
}

void ServeView::draw_methods_rows(Context& c) {
    const Chosen& chosen = *lab_->chosen;
    if (chosen.layers.empty()) return;
    ui::headline(c, "serve.result",
                 {divergence_text(chosen.score.divergence),
                  fmt::format("nats, {:.2f} bits per weight", chosen.bits), chosen.score.divergence});
    const bool both = !chosen.to_nearest();
    const Rect top = ui::next_area(c, 28 * 4);
    float y = top.y0;
    const auto row = [&](const char* words, std::string value) {
        y = ui::row(c, {words, std::move(value)}, {top.x0, y, top.x1, y}, c.px(28));
    };
    const auto change = [&](double LayerErrors::*nearest, double LayerErrors::*own) {
        const double from = 100 * chosen.mean(nearest), to = 100 * chosen.mean(own);
        return both ? fmt::format("{:.1f} → {:.1f} %", from, to) : fmt::format("{:.1f} %", from);
    };
    row("to nearest", divergence_text(chosen.nearest.divergence));
    row("error of W", change(&LayerErrors::w_nearest, &LayerErrors::w));
    row("error of the output", change(&LayerErrors::out_nearest, &LayerErrors::out));
    const std::string changed = both ? fmt::format("{} → {}", chosen.nearest.changed, chosen.score.changed)
                                     : std::to_string(chosen.nearest.changed);
    row(fmt::format("answers changed, of {}", chosen.rows).c_str(), changed);
    ui::advance(top);
}

}  // namespace fp8lab::serve
