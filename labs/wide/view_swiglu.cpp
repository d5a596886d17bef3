// The stage of L14's experiment "swiglu".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"
#include "labs/wide/view.h"

namespace fp8lab::wide {
namespace {

using ui::Context;

constexpr float kStripNames = 56;  // px: gutter of the timeline, and the names of the strip's rows
constexpr float kStripRow = 24;

// A whole number for the strip.
std::string whole(double value) {
    return std::isfinite(value) ? fmt::format("{:.0f}", std::round(value) + 0.0) : std::string("–");
}

void draw_triangle(const Context& c, Point at, Role role) {
    const float half = c.px(4.5F);
    ImGui::GetWindowDrawList()->AddTriangleFilled({at.x, at.y - half}, {at.x + half, at.y + half},
                                                  {at.x - half, at.y + half},
                                                  c.color(Color{role, Tone::fill}));
}

}  // namespace

void WideView::draw_swiglu(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const float height = area.height() / c.scale;
    const int rows = height >= 600 ? 5 : 4;
    const float strip = kStripRow * static_cast<float>(rows),
                upper = std::clamp(0.29F * height, 120.0F, 320.0F);
    Figure& timeline = figures[0];
    timeline.x.visible = false;  // the strip has the steps
    const double at = lab_->params.step;
    timeline.series.insert(
        timeline.series.begin(),
        {"cursor", XSpan{at, at + 1}, {.color = {Role::field, Tone::fill, 0.75F}, .in_legend = false}});
    const float top = area.y0 + c.px(upper);
    const ui::PlotResult plot =
        ui::plot(c, "wide.timeline", timeline, upper_, {area.x0, area.y0, area.x1, top},
                 {.interactive = false, .crosshair = false, .y_tick_width = kStripNames - 12});
    // The words of the brackets are above the plot.
    const Rect columns{plot.area.x0, plot.area.y0 - c.px(22), plot.area.x1, plot.area.y1};
    const ui::Press press = ui::press(c, "wide.steps", columns, 2);
    if (press.clicked || press.held)
        go_to(static_cast<int>(std::floor(plot.x_at(ImGui::GetIO().MousePos.x))));
    ui::region(c, "timeline", {area.x0, area.y0, area.x1, top + c.px(strip)});
    draw_strip(c, plot, {area.x0, top, area.x1, top + c.px(strip)}, rows);
    const float scrub = top + c.px(strip + 11);
    draw_scrub(c, plot, scrub);
    const float rule = scrub + c.px(height < 600 ? 12 : 16);
    ui::hline(c, area.x0, area.x1, rule, {Role::line});
    const ui::Halves below =
        ui::halves(c, "wide", {area.x0, rule + c.px(height < 600 ? 8 : 13), area.x1, area.y1},
                   {"Norm", "Repairs"}, part_);
    if (below.shows_left) {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const bool shown = pair_held_ || ImGui::GetTime() < pair_until_;
        if (shown) c.wants_redraw = true;  // it goes away without an event
        if (shown && below.left.contains({mouse.x, mouse.y}))
            pair_until_ = std::max(pair_until_, ImGui::GetTime() + 0.5);
        if (shown)
            draw_pair(c, std::move(figures[2]), below.left);
        else
            draw_norms(c, std::move(figures[1]), below.left);
    }
    if (below.shows_right) draw_inliers(c, below.right);
}

// Numbers under their steps.
void WideView::draw_strip(Context& c, const ui::PlotResult& plot, Rect area, int rows) {
    const std::vector<SwigluStep>& steps = lab_->swiglu->steps;
    const float height = c.px(kStripRow);
    struct Row {
        const char* name;
        std::string (*text)(const SwigluStep&, int);
    };
    static const std::array<Row, 5> kRowsOf = {
        {{"elem.", [](const SwigluStep& s, int) { return std::to_string(s.saturated); }},
         {"SQNR", [](const SwigluStep& s, int) { return whole(s.channel_db); }},
         {"lost %", [](const SwigluStep& s, int) { return whole(std::max(0.0, s.lost_l1_pct)); }},
         {"zero %", [](const SwigluStep& s, int) { return whole(s.zero_pct); }},
         {"step", [](const SwigluStep&, int t) { return std::to_string(t); }}}};
    std::vector<std::size_t> shown = {0, 1, 2, 3, 4};
    if (rows < 5) shown = {0, 1, 2, 4};
    const int cursor = lab_->params.step;
    const Point from = plot.to_px(cursor, 1), to = plot.to_px(cursor + 1, 1);
    ui::fill_rect(c, {from.x, area.y0, to.x, area.y1}, {Role::field, Tone::fill, 0.75F});
    for (std::size_t r = 0; r < shown.size(); ++r) {
        const Row& row = kRowsOf[shown[r]];
        const float top = area.y0 + static_cast<float>(r) * height, y = top + height / 2;
        ui::hline(c, area.x0, area.x1, top, {Role::line});
        float x = area.x0;
        if (shown[r] == 0) {
            draw_triangle(c, {x + c.px(5), y}, Role::sat);
            x += c.px(15);
        }
        ui::text_mid(c, {x, y}, row.name, {Role::muted}, kSans13);
        for (std::size_t t = 0; t < steps.size(); ++t) {
            const bool fault = steps[t].saturated > 0, here = static_cast<int>(t) == cursor;
            const bool number = shown[r] == 1, label = shown[r] == 4;
            const Color ink = label                    ? Color{here ? Role::text : Role::muted}
                              : fault && shown[r] != 3 ? Color{Role::sat, Tone::ink}
                                                       : Color{number ? Role::text : Role::muted};
            const bool strong = label ? here : fault && shown[r] != 3;
            ui::text_mid(c, {plot.to_px(static_cast<double>(t) + 0.5, 1).x, y},
                         row.text(steps[t], static_cast<int>(t)), ink, strong ? kMonoBold13 : kMono13,
                         Anchor::center);
        }
    }
    ui::probe(c, "wide.strip", area);
}

void WideView::draw_scrub(Context& c, const ui::PlotResult& plot, float y) {
    const Rect area{plot.area.x0, y - c.px(9), plot.area.x1, y + c.px(9)};
    const ui::Press press = ui::press(c, "wide.scrub", area);
    if (press.held) go_to(static_cast<int>(std::floor(plot.x_at(ImGui::GetIO().MousePos.x))));
    if (press.focused) {
        const int arrows = ui::arrow_step();
        if (arrows != 0) go_to(lab_->params.step + arrows);
    }
    const float thick = 2 * ui::hairline(c), top = std::round(y - thick / 2);
    const float knob = plot.to_px(lab_->params.step + 0.5, 1).x;
    ui::fill_rect(c, {area.x0, top, area.x1, top + thick}, {Role::line});
    ui::fill_rect(c, {area.x0, top, knob, top + thick}, {Role::text});
    ui::knob(c, {knob, y});
}

// The knob is at the chosen norm; a press anywhere moves it.
void WideView::draw_norms(Context& c, Figure figure, Rect area) {
    const std::vector<NormPoint>& norms = lab_->swiglu->norms;
    const float heading = ui::heading(c, figure.title, area);
    figure.title.clear();
    const bool note = area.height() > c.px(230);
    const Rect room{area.x0, heading, area.x1 - c.px(124), area.y1 - c.px(note ? 50 : 26)};
    figure.x.visible = false;
    const ui::PlotResult plot = ui::plot(c, "wide.quadratic", figure, left_, room,
                                         {.interactive = false, .y_tick_width = 44, .title_height = 0});
    constexpr std::array<std::pair<double, std::string_view>, 5> kTicks = {
        {{1, "1"}, {2, "2"}, {4, "4"}, {8, "8"}, {16, "16"}}};
    ui::axis_below(c, plot, "k", kTicks, area.x0);
    const ui::Press press = ui::press(c, "wide.norm", plot.area, 2);
    const auto choose = [&](double k) { set(fmt::format("k={:.3g}", std::clamp(k, 1.0, 16.0))); };
    if (press.held) choose(plot.x_at(ImGui::GetIO().MousePos.x));
    const double k = lab_->params.swiglu.k;
    if (press.focused) {
        const int arrows = ui::arrow_step();
        if (arrows != 0) choose(k * std::exp2(0.25 * arrows));
    }
    if (norms.empty()) return;
    const double position = std::clamp(2 * std::log2(k), 0.0, 8.0), low = std::floor(position);
    const auto i = static_cast<std::size_t>(std::min(low, 7.0));
    const double part = position - static_cast<double>(i);
    const Point knob = plot.to_px(k, norms[i].swiglu * std::pow(norms[i + 1].swiglu / norms[i].swiglu, part));
    ui::knob(c, knob);
    const auto slope = [&](double NormPoint::*act) {
        return fmt::format("×{:.1f} per doubling", std::pow(norms[8].*act / norms[4].*act, 0.5));
    };
    const float x = plot.area.x1 + c.px(8);
    const auto y_of = [&](double value) { return plot.to_px(16, value).y; };
    const auto name = [&](float y, const char* words, const std::string& below, Role role) {
        ui::text_mid(c, {x, y}, words, {role}, role == Role::text ? kBold13 : kSans13);
        if (x + ui::text_width(c, below, kSans13) <= area.x1 + c.px(14))
            ui::text_mid(c, {x, y + c.px(17)}, below, {Role::muted}, kSans13);
    };
    const float swiglu = y_of(norms[8].swiglu), clamp = std::max(y_of(norms[8].clamp10), swiglu + c.px(36)),
                gelu = std::max(y_of(norms[8].gelu), clamp + c.px(18));
    name(swiglu, "SwiGLU", slope(&NormPoint::swiglu), Role::text);
    ui::text_mid(c, {x, clamp}, "clamp 10", {Role::text}, kSans13);
    name(gelu, "GELU", slope(&NormPoint::gelu), Role::muted);
    ui::text_mid(c, {x, std::max(y_of(1), gelu + c.px(34))}, "Smooth-SwiGLU", {Role::muted}, kSans13);
    if (note)
        ui::text_mid(c, {area.x0, area.y1 - c.px(8)}, "k: both weight rows of channel 0 times k",
                     {Role::muted}, kSans13);
}

// Two weight rows as arrows from a point, and what they make of channel 0.
void WideView::draw_pair(Context& c, Figure figure, Rect area) {
    const float heading = ui::heading(c, figure.title, area);
    figure.title.clear();
    const float side = std::min(0.4F * area.width(), area.height() * 0.6F);
    const Rect arrows{area.x0, heading + c.px(16), area.x0 + side, heading + c.px(16) + side};
    const Point foot{arrows.x0 + c.px(6), arrows.y1 - c.px(6)};
    const float reach = side - c.px(16);
    const float angle = static_cast<float>(std::acos(std::clamp(lab_->params.swiglu.rho, 0.0, 1.0)));
    const Point gate{foot.x + reach, foot.y},
        up{foot.x + reach * std::cos(angle), foot.y - reach * std::sin(angle)};
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.AddLine({foot.x, foot.y}, {gate.x, gate.y}, c.color(Role::text), c.px(2));
    list.AddLine({foot.x, foot.y}, {up.x, up.y}, c.color(Role::text), c.px(2));
    const float head = c.px(6);
    list.AddTriangleFilled({gate.x + head, gate.y}, {gate.x - head, gate.y - head},
                           {gate.x - head, gate.y + head}, c.color(Role::text));
    ui::text_mid(c, {foot.x, foot.y + c.px(18)}, "gate", {Role::muted}, kSans13);
    ui::text_mid(c, {foot.x, arrows.y0 - c.px(6)}, "up: drag its end", {Role::muted}, kSans13);
    const Rect knob{up.x - c.px(12), up.y - c.px(12), up.x + c.px(12), up.y + c.px(12)};
    const ui::Press press = ui::press(c, "wide.pair", knob, 12);
    pair_held_ = press.held;
    if (press.held) {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const double turned =
            std::atan2(static_cast<double>(foot.y - mouse.y), static_cast<double>(mouse.x - foot.x));
        set(fmt::format("rho={:.2f}", std::clamp(std::cos(std::clamp(turned, 0.0, 1.5707)), 0.0, 1.0)));
    }
    ui::knob(c, {up.x, up.y});
    ui::plot(c, "wide.channel", figure, left_, {arrows.x1 + c.px(20), heading, area.x1, area.y1},
             {.interactive = false, .y_tick_width = 28, .title_height = 0});
}

namespace {

// As many rows as fit, the ones without a saturated step as one.
void draw_repairs(Context& c, const Swiglu& s, Rect area, float row) {
    float y = area.y0;
    if (y + c.px(24) + 3 * row > area.y1 + 1) {
        std::string words = "Saturated steps:";
        for (std::size_t i = 0; i < std::min<std::size_t>(5, s.repairs.size()); ++i)
            words += fmt::format("{} {} with {}", i == 0 ? "" : ",", s.repairs[i].saturated_steps,
                                 s.repairs[i].label);
        ui::note(c, words + ".", {area.x0, y, area.x1, area.y1});
        return;
    }
    ui::text_mid(c, {area.x0, y + c.px(11)}, "What repairs the growth", {Role::text}, kBold15);
    ui::text_mid(c, {area.x1, y + c.px(11)}, "saturated steps", {Role::muted}, kSans13, Anchor::right);
    y += c.px(26);
    std::string whole;
    std::vector<Repair> rows;
    for (const Repair& repair : s.repairs) {
        const bool margin = repair.label.starts_with("margin"), gelu = repair.label.starts_with("GELU");
        if (gelu) continue;
        if (margin || repair.saturated_steps > 0)
            rows.push_back(repair);
        else
            whole += (whole.empty() ? "" : ", ") + std::string(repair.label);
    }
    for (const Repair& repair : rows) {
        const bool bad = repair.saturated_steps > 0;
        y = ui::row(c,
                    {std::string(repair.label), std::to_string(repair.saturated_steps),
                     bad ? Color{Role::sat, Tone::ink} : Color{Role::text}, false},
                    {area.x0, y, area.x1, y}, row);
    }
    if (!whole.empty()) y = ui::row(c, {whole, "0"}, {area.x0, y, area.x1, y}, row);
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    if (s.repairs.size() < 7 || y + c.px(24) > area.y1 + 1) return;
    ui::text_mid(c, {area.x0, y + c.px(15)},
                 fmt::format("GELU: {} with margin 0, {} with margin 1; its amax grows linearly.",
                             s.repairs[5].saturated_steps, s.repairs[6].saturated_steps),
                 {Role::muted}, kSans13);
}

}  // namespace

void WideView::draw_inliers(Context& c, Rect area) {
    ui::region(c, "repairs", area);
    const Swiglu& s = *lab_->swiglu;
    if (s.steps.empty()) return;  // before the first result
    const float height = area.height() / c.scale;
    const float row = c.px(height < 300 ? 21 : 27);
    float y = ui::heading(c, "The outlier costs FP8 nothing, INT8 everything", area);
    const std::array<float, 4> right = {area.x0 + 0.1F * area.width(), area.x0 + 0.36F * area.width(),
                                        area.x0 + 0.66F * area.width(), area.x1};
    const float heads = y + c.px(11);
    ui::text_mid(c, {right[0], heads}, "k", {Role::muted}, kSans13, Anchor::right);
    ui::head(c, {right[1], heads}, "amax", "amax");
    ui::head(c, {right[2], heads}, "E4M3 dB", "sqnr");
    ui::head(c, {right[3], heads}, "INT8 dB", "int8");
    y += c.px(22);
    for (const InlierRow& inlier : s.inliers) {
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const float middle = y + row / 2;
        const bool bad = inlier.int8_db < 20;
        ui::text_mid(c, {right[0], middle}, screen_number(inlier.k), {Role::text}, kMono13, Anchor::right);
        ui::text_mid(c, {right[1], middle}, fmt::format("{:.0f}", inlier.amax), {Role::text}, kMono13,
                     Anchor::right);
        ui::text_mid(c, {right[2], middle}, fmt::format("{:.1f}", inlier.e4m3_db), {Role::e4m3, Tone::ink},
                     kMono13, Anchor::right);
        ui::text_mid(c, {right[3], middle}, fmt::format("{:.1f}", inlier.int8_db),
                     bad ? Color{Role::sat, Tone::ink} : Color{Role::text}, bad ? kMonoBold13 : kMono13,
                     Anchor::right);
        y += row;
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    if (height >= 300) {
        ui::text_mid(c, {area.x0, y + c.px(14)}, "SQNR of the other 511 channels, current scaling",
                     {Role::muted}, kSans13);
        y += c.px(28);
    }
    draw_repairs(c, s, {area.x0, y + c.px(8), area.x1, area.y1}, row);
}

}  // namespace fp8lab::wide
