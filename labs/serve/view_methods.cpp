// The part "methods": a stem for each scheme, over the layers of the chosen one and what is left with lowered inputs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/choose.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
namespace {

using ui::Context;

constexpr float kHeads = 48, kRow = 36, kLowRow = 30, kNote = 26, kGap = 14;
constexpr float kGains = 24 + 26 + 2 * 28;
constexpr float kLeastFigure = 300;   // with room for the third table
constexpr std::size_t kMostRows = 5;  // of the layers; more scroll

// Edges as shares of the width.
struct Columns {
    float shape, w, w_end, out, out_end;
};
constexpr Columns kWide = {.03F, .168F, .52F, .574F, .86F}, kNarrow = {.04F, .20F, .51F, .54F, .82F};
Columns columns(const Context& c, Rect area) { return area.width() < c.px(660) ? kNarrow : kWide; }

std::string pct_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

Role bar_role(const LowFormat& scheme) { return scheme.role == Role::truth ? Role::axis : scheme.role; }

// What a title takes besides its first line, in logical px.
float more_lines(const Context& c, const std::string& title, float width) {
    const auto lines = static_cast<float>(ui::wrap_lines(c, title, kBold15, width).size());
    return ui::line_height(15) * std::max(0.0F, lines - 1);
}

std::string layers_note(const Chosen& chosen) {
    const std::string rows = fmt::format("{}, errors on {} {} of the training", label_of(chosen.spec.scheme),
                                         group_thousands(static_cast<std::int64_t>(chosen.seen)),
                                         chosen.tokens ? "tokens" : "rows");
    if (chosen.to_nearest()) return rows;
    return fmt::format("outline: rounded to nearest   filled: {}   {}", method_label(chosen.spec.method),
                       rows);
}

struct Pair {
    double nearest, own;
    bool both;
};

// The outline of to nearest over the filled bar of the method, with their values.
void draw_bars(Context& c, Rect area, Pair errors, double most, Role role) {
    const float middle = (area.y0 + area.y1) / 2, words = c.px(64);
    const auto bar = [&](float y, double value, bool filled) {
        const float x1 = area.x0 + (area.width() - words) * static_cast<float>(value / most);
        const Rect rect{area.x0, y - c.px(4.5F), x1, y + c.px(4.5F)};
        if (filled)
            ui::fill_rect(c, rect, {role, Tone::fill});
        else
            ui::stroke_rect(c, rect, {role, Tone::line});
        ui::text_mid(c, {x1 + c.px(8), y}, pct_text(value), {filled ? Role::text : Role::muted}, kMono13);
    };
    const float apart = area.height() / 4.6F;
    bar(errors.both ? middle - apart : middle, errors.nearest, false);
    if (errors.both) bar(middle + apart, errors.own, true);
}

}  // namespace

void ServeView::draw_methods(Context& c, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    const bool moved = !lab_->amax->factors.empty();
    const auto rows = static_cast<float>(std::min(lab_->chosen->layers.size(), kMostRows));
    const float height = area.height() / c.scale;
    const float title = more_lines(c, layers_title(*lab_->chosen), area.width());
    const float layers = title + kHeads + kRow * rows + kNote;
    const float third = kGains + more_lines(c, gains_title(*lab_->gains), area.width());
    // The rows are those of the amax as it is.
    const bool gains =
        !moved && lab_->gains->rows.size() == 2 && height - layers - third - 2 * kGap >= kLeastFigure;
    const bool low = height - layers - kGap < kLeastFigure;
    const float table = low ? title + kHeads + kLowRow * rows : layers;
    const float below = table + (gains ? third + kGap : 0);
    const float split = area.y1 - c.px(below);
    draw_stems(c, figures[moved ? 2 : 0], {area.x0, area.y0, area.x1, split - c.px(kGap)});
    draw_layers(c, {area.x0, split, area.x1, split + c.px(table)}, low ? kLowRow : kRow);
    if (gains) draw_gains(c, {area.x0, split + c.px(table + kGap), area.x1, area.y1});
}

void ServeView::draw_stems(Context& c, const Figure& figure, Rect area) {
    const bool sweep = figure.id == "amax";
    const ui::PlotResult plot =
        ui::plot(c, "serve." + figure.id, figure, upper_, area, {.crosshair = sweep, .y_tick_width = 52});
    const auto scheme_of = [&](const ui::PlotResult::Hit& hit) -> std::string {
        const std::string& name = figure.series[hit.series].name;
        const std::string id = name.starts_with("##") ? name.substr(2) : "";
        return std::ranges::find(kSchemes, id) == kSchemes.end() ? "" : id;
    };
    const auto hit = ui::chosen_mark(c, plot, [&](const auto& one) { return !scheme_of(one).empty(); });
    if (hit) set("scheme=" + scheme_of(*hit));
}

void ServeView::draw_layers(Context& c, Rect area, float row) {
    const Chosen& chosen = *lab_->chosen;
    if (chosen.layers.empty()) return;
    ui::region(c, "layers", area);
    const std::string title = layers_title(chosen);
    const float first = ui::heading(c, title, area);
    ui::probe(c, "serve.layers_title", {area.x0, area.y0, area.x1, first}, {}, title);
    area.y0 = first - c.px(ui::line_height(15));
    const Columns at = columns(c, area);
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    const bool wide = at.w == kWide.w;
    const float heads = area.y0 + c.px(34);
    ui::head(c, {area.x0, heads}, "layer", "linear-layer", Anchor::left);
    ui::head(c, {x(at.w), heads}, wide ? "error of W, relative L2" : "error of W", "relative-l2",
             Anchor::left);
    ui::head(c, {x(at.out), heads}, wide ? "error of the output X W, relative L2" : "error of X W",
             "relative-l2", Anchor::left);
    if (!chosen.to_nearest())
        ui::text_mid(c, {area.x1, heads}, "output", {Role::muted}, kSans13, Anchor::right);
    float y = area.y0 + c.px(kHeads);
    const float high = c.px(row), all = high * static_cast<float>(chosen.layers.size());
    const float end = y + std::min(all, high * static_cast<float>(kMostRows));
    const bool scrolls = all > end - y + 1;
    if (scrolls) {
        ImGui::SetCursorScreenPos({area.x0, y});
        ImGui::BeginChild("serve.layers", {area.width() + c.px(16), end - y}, false,
                          ImGuiWindowFlags_NoScrollbar);
        y = ImGui::GetCursorScreenPos().y;
    }
    for (std::size_t l = 0; l < chosen.layers.size(); ++l) {
        const float top = y + high * static_cast<float>(l);
        draw_layer(c, l, {area.x0, top, area.x1, top + high});
    }
    if (scrolls) {
        ui::advance({area.x0, y, area.x0 + 1, y + all});
        ui::scroll_thumbs(c);
        ImGui::EndChild();
    }
    ui::hline(c, area.x0, area.x1, end, {Role::line});
    ui::note(c, layers_note(chosen), {area.x0, end + c.px(6), area.x1, area.y1});
}

void ServeView::draw_layer(Context& c, std::size_t l, Rect line) {
    const Chosen& chosen = *lab_->chosen;
    const LayerErrors& layer = chosen.layers[l];
    const Columns at = columns(c, line);
    const auto x = [&](float share) { return line.x0 + share * line.width(); };
    const float middle = (line.y0 + line.y1) / 2;
    ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
    ui::text_mid(c, {line.x0, middle}, layer.size.name, {Role::text}, kMonoBold13);
    const float name_end = line.x0 + ui::text_width(c, layer.size.name, kMonoBold13) + c.px(8);
    const std::string shape = fmt::format("{}→{}", layer.size.in, layer.size.out);
    const float shape_x = std::max(x(at.shape), name_end);
    if (shape_x + ui::text_width(c, shape, kMono13) < x(at.w))
        ui::text_mid(c, {shape_x, middle}, shape, {Role::muted}, kMono13);
    double most_w = 0, most_out = 0;
    for (const LayerErrors& one : chosen.layers)
        most_w = std::max({most_w, one.w, one.w_nearest}),
        most_out = std::max({most_out, one.out, one.out_nearest});
    const bool both = !chosen.to_nearest();
    const Role role = bar_role(chosen.scheme());
    draw_bars(c, {x(at.w), line.y0, x(at.w_end), line.y1}, {layer.w_nearest, layer.w, both}, most_w, role);
    draw_bars(c, {x(at.out), line.y0, x(at.out_end), line.y1}, {layer.out_nearest, layer.out, both}, most_out,
              role);
    if (!both) return;
    const double ratio = layer.out_nearest / layer.out;
    constexpr double kSame = 0.005;
    const std::string words =
        std::fabs(ratio - 1) < kSame
            ? "the same"
            : fmt::format("{}× {}", times_text(std::max(ratio, 1 / ratio)), ratio > 1 ? "closer" : "further");
    ui::text_mid(c, {line.x1, middle}, words, {Role::text}, kMonoBold13, Anchor::right);
}

void ServeView::draw_gains(Context& c, Rect area) {
    ui::region(c, "gains", area);
    const Gains& gains = *lab_->gains;
    area.y0 = ui::heading(c, gains_title(gains), area) - c.px(ui::line_height(15));
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    constexpr std::array kEdges = {0.39F, 0.55F, 0.71F, 1.0F};
    constexpr std::array kNames = {"to nearest", "AWQ", "GPTQ", "gain of GPTQ"};
    float y = area.y0 + c.px(36);
    ui::text_mid(c, {area.x0, y}, divergence_name(lab_->chosen->classifies), {Role::muted}, kSans13);
    for (std::size_t i = 0; i < kNames.size(); ++i)
        ui::text_mid(c, {x(kEdges.at(i)), y}, kNames.at(i), {Role::muted}, kSans13, Anchor::right);
    y = area.y0 + c.px(50);
    for (std::size_t r = 0; r < gains.rows.size(); ++r, y += c.px(28)) {
        const Gain& gain = gains.rows[r];
        const float middle = y + c.px(14);
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const bool now = (r == 1) == (lab_->params.lower == "both");
        ui::text_mid(c, {area.x0, middle}, r == 0 ? "weights only" : "weights and activations", {Role::text},
                     now ? kBold13 : kSans13);
        const std::array values = {divergence_text(gain.nearest), divergence_text(gain.awq),
                                   divergence_text(gain.gptq), times_text(gain.factor()) + "×"};
        for (std::size_t i = 0; i < values.size(); ++i)
            ui::text_mid(c, {x(kEdges.at(i)), middle}, values.at(i), {Role::text},
                         i == 3 ? kMonoBold13 : kMono13, Anchor::right);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
}

void ServeView::draw_methods_rows(Context& c) {
    const Chosen& chosen = *lab_->chosen;
    if (chosen.layers.empty()) return;
    ui::headline(c, "serve.result",
                 {divergence_text(chosen.score.divergence),
                  fmt::format("{}, {:.2f} bits per weight",
                              chosen.classifies ? "nats" : divergence_name(false), chosen.bits),
                  chosen.score.divergence});
    const bool both = !chosen.to_nearest();
    const Rect top = ui::next_area(c, 28 * 4);
    float y = top.y0;
    const auto row = [&](const std::string& words, std::string value) {
        y = ui::row(c, {words, std::move(value)}, {top.x0, y, top.x1, y}, c.px(28));
    };
    const auto change = [&](double LayerErrors::*nearest, double LayerErrors::*own) {
        const double from = 100 * chosen.mean(nearest), to = 100 * chosen.mean(own);
        return both ? fmt::format("{:.1f} → {:.1f} %", from, to) : fmt::format("{:.1f} %", from);
    };
    row("to nearest", divergence_text(chosen.nearest.divergence));
    row("error of W", change(&LayerErrors::w_nearest, &LayerErrors::w));
    row("error of the output", change(&LayerErrors::out_nearest, &LayerErrors::out));
    if (chosen.classifies)
        row(fmt::format("answers changed, of {}", chosen.rows),
            both ? fmt::format("{} → {}", chosen.nearest.changed, chosen.score.changed)
                 : std::to_string(chosen.nearest.changed));
    ui::advance(top);
}

}  // namespace fp8lab::serve
