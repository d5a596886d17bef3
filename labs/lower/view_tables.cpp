// The two tables of L11: a row per layer with its chips, and the outputs against FP32.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/lower/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::lower {
namespace {

using ui::Context;

std::string db_text(double db) {
    if (std::isnan(db)) return "n/a";
    return std::isinf(db) ? "exact" : fmt::format("{:.1f}", db);
}
std::string pct_text(double pct) {
    if (pct == 0) return "0";
    return fmt::format("{:.{}f}", pct, pct < 10 ? 2 : 1);
}

// Right edges of the columns of the layers, as shares of the width; 0: no room for it.
struct LayerColumns {
    float number = 0, shape, share, w, a, chip, bar, bar_end, value, under_w, under_a, db_w, db_a;
};
LayerColumns columns_of(float width, float scale) {
    if (width >= 760 * scale)
        return {0, .028F, .180F, .200F, .345F, .133F, .490F, .640F, .715F, .792F, .848F, .915F, 1};
    return {0, .034F, .215F, .240F, .440F, .185F, .645F, .760F, .870F, 0, 0, 0, 1};
}

void number_at(Context& c, float right, float y, const std::string& words, const std::string& name,
               double value) {
    const bool zero = words == "0";
    ui::text_mid(c, {right, y}, words, {zero ? Role::muted : Role::text}, kMono13, Anchor::right);
    const float reach = ui::text_width(c, words, kMono13) + c.px(4);
    ui::copyable(c, "value." + name, {right - reach, y - c.px(11), right, y + c.px(11)}, value);
}

}  // namespace

float LowerView::draw_tables(Context& c, Rect area) {
    constexpr float kLayers = 46 + 34 * static_cast<float>(kMostRows);  // with its heads
    const float end =
        draw_layers(c, {area.x0, area.y0, area.x1, std::min(area.y1, area.y0 + c.px(kLayers))}, 34);
    return draw_outputs(c, {area.x0, end + c.px(14), area.x1, area.y1}, 30);
}

void LowerView::draw_chip(Context& c, std::size_t layer, bool activation, Rect cell) {
    const Mix& mix = lab_.outcome().mix;
    const LowFormat& format = *(activation ? mix.activations : mix.weights)[layer];
    const std::string name = fmt::format("{}{}", activation ? "a" : "w", layer + 1);
    const std::string field = layer < kLayerFields ? name : activation ? "a_more" : "w_more";
    const Color ink{format.role, Tone::ink};
    const bool dead =
        (activation && !lab_.params().both()) || std::ranges::find(c.locked, field) != c.locked.end();
    const Rect area = ui::inset(cell, c.px(4));
    if (dead) {
        ui::text_mid(c, {area.x0 + c.px(4), (area.y0 + area.y1) / 2}, format.label, ink, kMono13);
        return;
    }
    ui::stroke_rect(c, area, {Role::line}, 4);
    std::vector<std::string> labels;
    int selected = -1;
    const auto known = mix_formats();
    for (const LowFormat* choice : known) {
        if (choice == &format) selected = static_cast<int>(labels.size());
        labels.emplace_back(choice->label);
    }
    if (ui::cell_menu(c, "lower." + name, area, format.label, ink, labels, selected))
        lab_.choose(layer, activation, known.at(static_cast<std::size_t>(selected))->id);
}

float LowerView::draw_layers(Context& c, Rect area, float row) {
    const Outcome& o = lab_.outcome();
    const float width = area.width();
    const LayerColumns at = columns_of(width, c.scale);
    const auto x = [&](float share) { return area.x0 + share * width; };
    ui::text_at(c, {area.x0, area.y0}, layers_title(o), {Role::text}, kBold15);
    if (at.under_w > 0) {
        ui::text_at(c, {x(at.under_a), area.y0 + c.px(1)}, "underflow", {Role::muted}, kSans13,
                    Anchor::right);
        ui::text_at(c, {x(at.db_a), area.y0 + c.px(1)}, "SQNR", {Role::muted}, kSans13, Anchor::right);
    }
    float y = area.y0 + c.px(34);
    const LowFormat& probe = find_low_format(o.spec.probe, "probe");
    ui::text_mid(c, {x(at.number), y}, "layer", {Role::muted}, kSans13);
    ui::text_mid(c, {x(at.share), y}, "% of weights", {Role::muted}, kSans13, Anchor::right);
    ui::text_mid(c, {x(at.w) + c.px(4), y}, "W", {Role::muted}, kSans13);
    ui::text_mid(c, {x(at.a) + c.px(4), y}, "A", {Role::muted}, kSans13);
    ui::text_mid(c, {x(at.bar), y},
                 fmt::format("{} alone in {}", at.under_w > 0 ? "divergence," : "", probe.label),
                 {Role::muted}, kSans13);
    if (at.under_w > 0) {
        ui::head(c, {x(at.under_w), y}, "W %", "underflow");
        ui::head(c, {x(at.under_a), y}, "A %", "underflow");
        ui::head(c, {x(at.db_w), y}, "dB W", "sqnr");
    }
    ui::head(c, {x(at.db_a), y}, "dB A", "sqnr");
    y += c.px(12);
    double most = 0;
    for (const LayerRow& layer : o.layers) most = std::max(most, layer.sensitivity);
    const float high = c.px(row), rows = static_cast<float>(o.layers.size());
    const bool scrolls = y + rows * high > area.y1 + 1;
    const float end =
        scrolls ? y + high * std::max(1.0F, std::floor((area.y1 + 1 - y) / high)) : y + rows * high;
    if (scrolls) {
        ImGui::SetCursorScreenPos({area.x0, y});
        ImGui::BeginChild("lower.layers", {area.width() + c.px(16), end - y}, false,
                          ImGuiWindowFlags_NoScrollbar);
        y = ImGui::GetCursorScreenPos().y;
    }
    const float first = y;
    for (std::size_t l = 0; l < o.layers.size(); ++l) {
        const LayerRow& layer = o.layers[l];
        const float middle = y + high / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const std::string name = std::to_string(l + 1);
        ui::text_mid(c, {x(at.number), middle}, name, {Role::text}, kMonoBold13);
        ui::text_mid(c, {x(at.shape), middle}, fmt::format("{}→{}", layer.inputs, layer.outputs),
                     {Role::muted}, kMono13);
        number_at(c, x(at.share), middle, fmt::format("{:.1f}", layer.share_pct), "share." + name,
                  layer.share_pct);
        draw_chip(c, l, false, {x(at.w) - c.px(4), y, x(at.w + at.chip), y + high});
        draw_chip(c, l, true, {x(at.a) - c.px(4), y, x(at.a + at.chip), y + high});
        const Rect track{x(at.bar), middle - c.px(6), x(at.bar_end), middle + c.px(6)};
        ui::fill_rect(c, track, {Role::grid}, 2);
        if (most > 0)
            ui::fill_rect(c,
                          {track.x0, track.y0,
                           track.x0 + static_cast<float>(layer.sensitivity / most) * track.width(), track.y1},
                          {probe.role == Role::truth ? Role::axis : probe.role, Tone::fill}, 2);
        number_at(c, x(at.value), middle, divergence_text(layer.sensitivity), "sensitivity." + name,
                  layer.sensitivity);
        if (at.under_w > 0) {
            number_at(c, x(at.under_w), middle, pct_text(layer.underflow_pct_w), "under_w." + name,
                      layer.underflow_pct_w);
            number_at(c, x(at.under_a), middle, pct_text(layer.underflow_pct_a), "under_a." + name,
                      layer.underflow_pct_a);
            number_at(c, x(at.db_w), middle, db_text(layer.sqnr_db_w), "db_w." + name, layer.sqnr_db_w);
        }
        number_at(c, x(at.db_a), middle, db_text(layer.sqnr_db_a), "db_a." + name, layer.sqnr_db_a);
        y += high;
    }
    if (scrolls) {
        ui::advance({area.x0, first, area.x0 + 1, y});
        ui::scroll_thumbs(c);
        ImGui::EndChild();
    }
    ui::hline(c, area.x0, area.x1, end, {Role::line});
    ui::region(c, "layers", {area.x0, area.y0, area.x1, end});
    return end;
}

float LowerView::draw_outputs(Context& c, Rect area, float row) {
    ui::region(c, "outputs", area);
    const Outcome& o = lab_.outcome();
    const bool classifies = o.setup->network.classifies, wide = area.width() >= c.px(680);
    ui::text_at(c, {area.x0, area.y0}, outputs_title(o), {Role::text}, kBold15);
    if (wide)
        ui::text_at(c, {area.x1, area.y0 + c.px(1)},
                    fmt::format("{}, against FP32", o.setup->subject->data.name), {Role::muted}, kSans13,
                    Anchor::right);
    // Right edges.
    struct Column {
        const char* words;
        float at;
        bool in_narrow;
    };
    constexpr std::array<Column, 8> kColumns = {{{"bits", .285F, true},
                                                 {"KB", .365F, false},
                                                 {"divergence", .485F, true},
                                                 {"accuracy", .59F, true},
                                                 {"changed", .69F, true},
                                                 {"mean error", .79F, false},
                                                 {"max error", .885F, false},
                                                 {"relative %", 1, true}}};
    float y = area.y0 + c.px(34);
    for (const Column& column : kColumns)
        if (wide || column.in_narrow)
            ui::text_mid(c, {area.x0 + column.at * area.width(), y}, column.words, {Role::muted}, kSans13,
                         Anchor::right);
    y += c.px(12);
    const auto draw = [&](const OutputRow& line, const std::string& name, bool strong) {
        const float middle = y + c.px(row) / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const Font font = strong ? kBold13 : kSans13;
        const float room = kColumns[0].at * area.width() - ui::text_width(c, "00.00", kMono13) - c.px(8);
        const bool fits = !line.format || ui::text_width(c, name, font) <= room;
        ui::text_mid(c, {area.x0, middle}, fits ? name : std::string(line.format->label),
                     line.format ? Color{line.format->role, Tone::ink} : Color{Role::text}, font);
        const Score& s = line.score;
        const auto accuracy = classifies ? fmt::format("{:.2f}", s.accuracy_pct) : std::string("–");
        const std::array<std::string, 8> cells = {fmt::format("{:.2f}", line.bits),
                                                  fmt::format("{:.1f}", line.kb),
                                                  divergence_text(s.divergence),
                                                  accuracy,
                                                  classifies ? std::to_string(s.changed) : "–",
                                                  fmt::format("{:.3f}", s.mean_abs),
                                                  fmt::format("{:.2f}", s.max_abs),
                                                  fmt::format("{:.1f}", s.relative_pct)};
        const std::array<double, 8> values = {
            line.bits,  line.kb,   s.divergence,  s.accuracy_pct, static_cast<double>(s.changed),
            s.mean_abs, s.max_abs, s.relative_pct};
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (wide || kColumns.at(i).in_narrow)
                number_at(c, area.x0 + kColumns.at(i).at * area.width(), middle, cells.at(i),
                          fmt::format("output.{}.{}", name, i), values.at(i));
        y += c.px(row);
    };
    draw(o.own, "Your mix", true);
    for (const char* id : {"nvfp4", "mxfp6-e2m3", "e4m3"}) {
        const auto line = std::ranges::find(o.uniforms, id, [](const OutputRow& r) { return r.format->id; });
        const std::string label(line->format->label);
        if (y + c.px(row) <= area.y1 + 1)
            draw(*line, line->format->id == "e4m3" ? label + ", one scale per tensor" : label + " everywhere",
                 false);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    return y;
}

}  // namespace fp8lab::lower
