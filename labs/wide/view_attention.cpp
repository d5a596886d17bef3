// The stage of L14's experiment "attention".
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

constexpr double kMuch_pct = 1;  // from here on a loss is drawn as a fault

}  // namespace

void WideView::draw_attention(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const float height = area.height() / c.scale;
    const float top = area.y0 + c.px(std::clamp(0.46F * height, 190.0F, 480.0F));
    if (height < 600)  // no room beside the labels of the lines
        std::erase_if(figures[0].series, [](const Series& series) { return series.name == "largest"; });
    ui::plot(c, "wide.mass", figures[0], upper_, {area.x0, area.y0, area.x1, top}, {.interactive = false});
    const float rule = top + c.px(height < 600 ? 6 : 12);
    ui::hline(c, area.x0, area.x1, rule, {Role::line});
    const ui::Halves below = ui::halves(
        c, "wide", {area.x0, rule + c.px(height < 600 ? 8 : 14), area.x1, area.y1}, {"Keys", "Casts"}, part_);
    if (below.shows_left) draw_keys(c, std::move(figures[1]), below.left);
    if (below.shows_right) draw_casts(c, below.right);
}

// A press or an arrow key sets the number of keys.
void WideView::draw_keys(Context& c, Figure figure, Rect area) {
    ui::region(c, "keys", area);
    const std::vector<SweepPoint>& sweep = *lab_->sweep;
    const float heading = ui::heading(c, figure.title, area);
    figure.title.clear();
    const bool note = area.height() > c.px(230);
    figure.x.visible = false;
    const Rect room{area.x0, heading, area.x1 - c.px(126), area.y1 - c.px(note ? 50 : 26)};
    const ui::PlotResult plot = ui::plot(c, "wide.keys", figure, left_, room,
                                         {.interactive = false, .y_tick_width = 44, .title_height = 0});
    constexpr std::array<std::pair<double, std::string_view>, 4> kTicks = {
        {{64, "64"}, {1024, "1k"}, {16384, "16k"}, {131072, "128k"}}};
    ui::axis_below(c, plot, "keys", kTicks, area.x0);
    const ui::Press press = ui::press(c, "wide.length", plot.area, 2);
    const auto choose = [&](double log2_keys) {
        const double at = std::clamp(std::round(log2_keys), std::log2(kLeastKeys), std::log2(kMostKeys));
        set(fmt::format("keys={:.0f}", std::exp2(at)));
    };
    if (press.clicked || press.held)
        if (const auto mouse = ImGui::GetIO().MousePos; plot.area.contains({mouse.x, mouse.y}))
            choose(std::log2(plot.x_at(mouse.x)));
    if (press.focused) {
        const int arrows = ui::arrow_step();
        if (arrows != 0) choose(std::log2(lab_->params.attention_spec().keys) + arrows);
    }
    if (sweep.empty()) return;
    std::vector<ui::EndWords> ends;
    const Role role = find_format(lab_->params.format).role;
    constexpr std::array<const char*, 4> kNames = {"normalised", "× 1", "× 256", "× 448"};
    for (std::size_t i = 0; i < kCasts.size(); ++i) {
        const double lost = sweep.back().lost_pct[i];
        const float y = lost > 0 ? plot.to_px(kMostKeys, std::max(lost, 0.001)).y : plot.area.y1;
        ends.push_back({y, share_text(lost), kNames.at(i), {role, Tone::ink}});
    }
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(8), {area.x0, plot.area.y0, area.x1, plot.area.y1});
    if (!note) return;
    const std::string words = fmt::format("Mean of {} rows, sigma {}. At the right: {} keys.", kRows,
                                          screen_number(lab_->params.sigma, 3), group_thousands(kMostKeys));
    if (ui::text_width(c, words, kSans13) <= area.width())
        ui::text_mid(c, {area.x0, area.y1 - c.px(8)}, words, {Role::muted}, kSans13);
}

void WideView::draw_casts(Context& c, Rect area) {
    ui::region(c, "casts", area);
    const Attention& a = *lab_->attention;
    const bool surprise = std::ranges::any_of(
        a.casts, [](const CastOutcome& cast) { return cast.zero_pct >= 30 && cast.lost_pct <= 0.1; });
    float y = ui::heading(c, surprise ? "Zeros do not count, mass does" : "What each cast loses", area);
    const std::array<float, 3> right = {area.x0 + 0.52F * area.width(), area.x0 + 0.74F * area.width(),
                                        area.x1};
    const float heads = y + c.px(12);
    ui::head(c, {right[0], heads}, "zero %", "underflow");
    ui::head(c, {right[1], heads}, "lost %", "lost-mass");
    ui::head(c, {right[2], heads}, "output dB", "sqnr");
    y += c.px(26);
    const float row = c.px(area.height() < c.px(240) ? 28 : 34);
    for (std::size_t i = 0; i < kCasts.size(); ++i) {
        const Rect line{area.x0 - c.px(8), y, area.x1 + c.px(8), y + row};
        const bool chosen = i == lab_->cast();
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        if (ui::press_row(c, fmt::format("wide.cast.{}", kCasts[i].id), line, chosen))
            set("cast=" + std::string(kCasts[i].id));
        const float middle = y + row / 2;
        const CastOutcome& cast = a.casts[i];
        ui::text_mid(c, {area.x0, middle}, i < 2 ? kCasts[i].label : kCasts[i].short_label, {Role::text},
                     chosen ? kBold13 : kSans13);
        const bool much = cast.lost_pct > kMuch_pct;
        ui::text_mid(c, {right[0], middle}, share_text(cast.zero_pct), {Role::text}, kMono13, Anchor::right);
        ui::text_mid(c, {right[1], middle}, share_text(cast.lost_pct),
                     much ? Color{Role::sat, Tone::ink} : Color{Role::text}, much ? kMonoBold13 : kMono13,
                     Anchor::right);
        const std::string output = std::isnan(cast.output_db)   ? "–"
                                   : std::isinf(cast.output_db) ? "exact"
                                                                : fmt::format("{:.1f}", cast.output_db);
        ui::text_mid(c, {right[2], middle}, output, {Role::text}, kMono13, Anchor::right);
        y += row;
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    draw_cuts(c, {area.x0, y + c.px(14), area.x1, area.y1});
}

// Where the format gives 0: half its smallest value, over the scale.
void WideView::draw_cuts(Context& c, Rect area) {
    const std::string format = format_label(lab_->params.format);
    const float row = c.px(28);
    const double least = std::log2(static_cast<double>(zero_threshold(lab_->params.format)));
    const auto cut = [&](std::size_t i) { return (least - std::log2(kCasts.at(i).scale)) * std::log(2); };
    if (area.height() < c.px(24) + 4 * row) {
        const std::string words = fmt::format(
            "{} loses a probability up to s − max = −{:.2f}, with × 256 −{:.2f}, with × 448 −{:.2f}.", format,
            -cut(1), -cut(2), -cut(3));
        ui::note(c, words, area);
        return;
    }
    float y = ui::heading(c, fmt::format("Where {} loses a probability", format), area) + c.px(4);
    y = ui::row(c, {fmt::format("{} rounds to 0 up to", format), power_of_two(static_cast<int>(least))},
                {area.x0, y, area.x1, y}, row);
    for (std::size_t i = 1; i < kCasts.size(); ++i) {
        const std::string words =
            i == 1 ? "× 1: lost up to s − max ="
                   : fmt::format("{}: {:.2f} further down", kCasts[i].short_label, std::log(kCasts[i].scale));
        y = ui::row(c, {words, fmt::format("−{:.2f}", -cut(i)), {Role::text}, i == lab_->cast()},
                    {area.x0, y, area.x1, y}, row);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(c, "More keys make every normalised p smaller; exp(s − max) always has a 1 in the row.",
             {area.x0, y + c.px(6), area.x1, area.y1});
}

}  // namespace fp8lab::wide
