// The two tables of L11: a row per layer with its chips, and the outputs against FP32.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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
std::string share_text(double pct) { return fmt::format("{:.1f}", pct); }

// Where what is no number stands in the table of layers, as shares of the width. Chips: their left edges and width.
struct LayerColumns {
    float shape, w, a, chip, bar, bar_end;
};
constexpr LayerColumns kWideLayers = {.028F, .200F, .345F, .133F, .490F, .640F},
                       kNarrowLayers = {.034F, .240F, .440F, .185F, .645F, .760F};

// A number of a layer.
struct LayerNumber {
    const char *head, *term;  // term: of the glossary
    const char* name;         // of its copy
    float wide, narrow;       // its right edge, as a share of the width; 0: no room for it
    double LayerRow::*value;
    std::string (*text)(double);
};
constexpr std::array<LayerNumber, 6> kNumbers = {
    {{"% of weights", "", "share", .180F, .215F, &LayerRow::share_pct, share_text},
     {"", "", "sensitivity", .715F, .870F, &LayerRow::sensitivity, divergence_text},
     {"W %", "underflow", "under_w", .792F, 0, &LayerRow::underflow_pct_w, pct_text},
     {"A %", "underflow", "under_a", .848F, 0, &LayerRow::underflow_pct_a, pct_text},
     {"dB W", "sqnr", "db_w", .915F, 0, &LayerRow::sqnr_db_w, db_text},
     {"dB A", "sqnr", "db_a", 1, 1, &LayerRow::sqnr_db_a, db_text}}};

bool is_wide(const Context& c, Rect area) { return area.width() >= c.px(760); }
float right_edge(const Context& c, const LayerNumber& number, Rect area) {
    return area.x0 + (is_wide(c, area) ? number.wide : number.narrow) * area.width();
}

void number_at(Context& c, float right, float y, const std::string& words, const std::string& name,
               double value) {
    const bool zero = words == "0";
    ui::text_mid(c, {right, y}, words, {zero ? Role::muted : Role::text}, kMono13, Anchor::right);
    const float reach = ui::text_width(c, words, kMono13) + c.px(4);
    ui::copyable(c, "value." + name, {right - reach, y - c.px(11), right, y + c.px(11)}, value);
}

void draw_layer_heads(Context& c, const Outcome& o, Rect area) {
    const bool wide = is_wide(c, area);
    const LayerColumns& at = wide ? kWideLayers : kNarrowLayers;
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    const float upper = area.y0 + c.px(1), y = area.y0 + c.px(34);
    ui::text_at(c, {area.x0, area.y0}, layers_title(o), {Role::text}, kBold15);
    if (wide) {
        ui::text_at(c, {x(kNumbers[3].wide), upper}, "underflow", {Role::muted}, kSans13, Anchor::right);
        ui::text_at(c, {x(kNumbers[5].wide), upper}, "SQNR", {Role::muted}, kSans13, Anchor::right);
    }
    const auto words = [&](float from, std::string_view text) {
        ui::text_mid(c, {from, y}, text, {Role::muted}, kSans13);
    };
    words(area.x0, "layer");
    words(x(at.w) + c.px(4), "W");
    words(x(at.a) + c.px(4), "A");
    words(x(at.bar), fmt::format("{} alone in {}", wide ? "divergence," : "",
                                 find_low_format(o.spec.probe, "probe").label));
    for (const LayerNumber& number : kNumbers) {
        const Point place{right_edge(c, number, area), y};
        if (*number.term == '\0')
            ui::text_mid(c, place, number.head, {Role::muted}, kSans13, Anchor::right);
        else if (wide || number.narrow > 0)
            ui::head(c, place, number.head, number.term);
    }
}

// A number of the outputs.
struct OutputColumn {
    const char* words;
    float at;  // its right edge, as a share of the width
    bool in_narrow;
    int digits;                         // after the point; -1: those of a divergence
    double (*value)(const OutputRow&);  // NaN: there is none
};
constexpr std::array<OutputColumn, 8> kOutputs = {
    {{"bits", .285F, true, 2, [](const OutputRow& row) { return row.bits; }},
     {"KB", .365F, false, 1, [](const OutputRow& row) { return row.kb; }},
     {"divergence", .485F, true, -1, [](const OutputRow& row) { return row.score.divergence; }},
     {"accuracy", .59F, true, 2, [](const OutputRow& row) { return row.score.accuracy_pct; }},
     {"changed", .69F, true, 0,
      [](const OutputRow& row) {
          const bool answers = !std::isnan(row.score.accuracy_pct);
          return answers ? static_cast<double>(row.score.changed) : row.score.accuracy_pct;
      }},
     {"mean error", .79F, false, 3, [](const OutputRow& row) { return row.score.mean_abs; }},
     {"max error", .885F, false, 2, [](const OutputRow& row) { return row.score.max_abs; }},
     {"relative %", 1, true, 1, [](const OutputRow& row) { return row.score.relative_pct; }}}};

void draw_output(Context& c, const OutputRow& row, const std::string& name, bool wide, Rect line) {
    const float middle = (line.y0 + line.y1) / 2;
    ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
    const Font font = row.format ? kSans13 : kBold13;
    const float room = kOutputs[0].at * line.width() - ui::text_width(c, "00.00", kMono13) - c.px(8);
    const bool fits = !row.format || ui::text_width(c, name, font) <= room;
    ui::text_mid(c, {line.x0, middle}, fits ? name : std::string(row.format->label),
                 row.format ? Color{row.format->role, Tone::ink} : Color{Role::text}, font);
    for (std::size_t i = 0; i < kOutputs.size(); ++i) {
        const OutputColumn& column = kOutputs.at(i);
        if (!wide && !column.in_narrow) continue;
        const double value = column.value(row);
        const std::string words = column.digits < 0   ? divergence_text(value)
                                  : std::isnan(value) ? "–"
                                                      : fmt::format("{:.{}f}", value, column.digits);
        number_at(c, line.x0 + column.at * line.width(), middle, words, fmt::format("output.{}.{}", name, i),
                  value);
    }
}

}  // namespace

void LowerView::draw_tables(Context& c, Rect area) {
    constexpr float kLayers = 46 + 34 * static_cast<float>(kMostRows);  // with its heads
    const float end =
        draw_layers(c, {area.x0, area.y0, area.x1, std::min(area.y1, area.y0 + c.px(kLayers))}, 34);
    draw_outputs(c, {area.x0, end + c.px(14), area.x1, area.y1}, 30);
}

void LowerView::draw_chip(Context& c, std::size_t layer, bool activation, Rect cell) {
    const Mix& mix = lab_->outcome->mix;
    const LowFormat& format = *(activation ? mix.activations : mix.weights)[layer];
    const std::string name = fmt::format("{}{}", activation ? "a" : "w", layer + 1);
    const std::string field = layer < kLayerFields ? name : activation ? "a_more" : "w_more";
    const Color ink{format.role, Tone::ink};
    const bool dead =
        (activation && !lab_->params.both()) || std::ranges::find(c.locked, field) != c.locked.end();
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
        lab_->choose(layer, activation, known.at(static_cast<std::size_t>(selected))->id);
}

float LowerView::draw_layers(Context& c, Rect area, float row) {
    const std::size_t rows = lab_->outcome->layers.size();
    draw_layer_heads(c, *lab_->outcome, area);
    float y = area.y0 + c.px(46);
    const float high = c.px(row), all = high * static_cast<float>(rows);
    const bool scrolls = y + all > area.y1 + 1;
    const float end = y + (scrolls ? high * std::max(1.0F, std::floor((area.y1 + 1 - y) / high)) : all);
    if (scrolls) {
        ImGui::SetCursorScreenPos({area.x0, y});
        ImGui::BeginChild("lower.layers", {area.width() + c.px(16), end - y}, false,
                          ImGuiWindowFlags_NoScrollbar);
        y = ImGui::GetCursorScreenPos().y;
    }
    for (std::size_t l = 0; l < rows; ++l) {
        const float top = y + high * static_cast<float>(l);
        draw_layer(c, l, {area.x0, top, area.x1, top + high});
    }
    if (scrolls) {
        ui::advance({area.x0, y, area.x0 + 1, y + all});
        ui::scroll_thumbs(c);
        ImGui::EndChild();
    }
    ui::hline(c, area.x0, area.x1, end, {Role::line});
    ui::region(c, "layers", {area.x0, area.y0, area.x1, end});
    return end;
}

void LowerView::draw_layer(Context& c, std::size_t l, Rect line) {
    const Outcome& o = *lab_->outcome;
    const LayerRow& layer = o.layers[l];
    const bool wide = is_wide(c, line);
    const LayerColumns& at = wide ? kWideLayers : kNarrowLayers;
    const auto x = [&](float share) { return line.x0 + share * line.width(); };
    const float middle = (line.y0 + line.y1) / 2;
    const std::string name = std::to_string(l + 1);
    const auto draw = [&](const LayerNumber& number) {
        const double value = layer.*number.value;
        if (wide || number.narrow > 0)
            number_at(c, right_edge(c, number, line), middle, number.text(value),
                      fmt::format("{}.{}", number.name, name), value);
    };
    ui::hline(c, line.x0, line.x1, line.y0, {Role::line});
    ui::text_mid(c, {line.x0, middle}, name, {Role::text}, kMonoBold13);
    ui::text_mid(c, {x(at.shape), middle}, fmt::format("{}→{}", layer.inputs, layer.outputs), {Role::muted},
                 kMono13);
    draw(kNumbers[0]);
    draw_chip(c, l, false, {x(at.w) - c.px(4), line.y0, x(at.w + at.chip), line.y1});
    draw_chip(c, l, true, {x(at.a) - c.px(4), line.y0, x(at.a + at.chip), line.y1});
    const Rect track{x(at.bar), middle - c.px(6), x(at.bar_end), middle + c.px(6)};
    ui::fill_rect(c, track, {Role::grid}, 2);
    const Role role = find_low_format(o.spec.probe, "probe").role;
    double most = 0;
    for (const LayerRow& other : o.layers) most = std::max(most, other.sensitivity);
    if (most > 0) {
        const float part = static_cast<float>(layer.sensitivity / most) * track.width();
        ui::fill_rect(c, {track.x0, track.y0, track.x0 + part, track.y1},
                      {role == Role::truth ? Role::axis : role, Tone::fill}, 2);
    }
    for (const LayerNumber& number : std::span(kNumbers).subspan(1)) draw(number);
}

void LowerView::draw_outputs(Context& c, Rect area, float row) {
    ui::region(c, "outputs", area);
    const Outcome& o = *lab_->outcome;
    const bool wide = area.width() >= c.px(680);
    ui::text_at(c, {area.x0, area.y0}, outputs_title(o), {Role::text}, kBold15);
    if (wide)
        ui::text_at(c, {area.x1, area.y0 + c.px(1)},
                    fmt::format("{}, against FP32", o.setup->subject->data.name), {Role::muted}, kSans13,
                    Anchor::right);
    float y = area.y0 + c.px(34);
    for (const OutputColumn& column : kOutputs)
        if (wide || column.in_narrow)
            ui::text_mid(c, {area.x0 + column.at * area.width(), y}, column.words, {Role::muted}, kSans13,
                         Anchor::right);
    y += c.px(12);
    const auto draw = [&](const OutputRow& line, const std::string& name) {
        draw_output(c, line, name, wide, {area.x0, y, area.x1, y + c.px(row)});
        y += c.px(row);
    };
    draw(o.own, "Your mix");
    for (const char* id : {"nvfp4", "mxfp6-e2m3", "e4m3"}) {
        const auto line = std::ranges::find(o.uniforms, id, [](const OutputRow& r) { return r.format->id; });
        const std::string label(line->format->label);
        if (y + c.px(row) <= area.y1 + 1)
            draw(*line,
                 line->format->id == "e4m3" ? label + ", one scale per tensor" : label + " everywhere");
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
}

}  // namespace fp8lab::lower
